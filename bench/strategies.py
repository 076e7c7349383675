#!/usr/bin/env python3
"""Strategies and numbers of ranks beside each other, on one machine, as one table.

    bench/strategies.py [--convoy build/bin/convoy] [--geometry small] [--mode full] [--dtype bf16]
                        [--ranks 1,2,4] [--strategies ddp,zero1,zero2,zero3] [--global-batch 8]
                        [--seq 256] [--steps 4] [--rounds 1] [--json FILE]

Each line is `convoy bench train` with the same global batch. `scaling` is tokens/s divided by the tokens/s of
one rank times the number of ranks. Ranks on the CPUs of one machine share its cores, so there `scaling` shows
the cost of sharing and not the gain of further machines. `waits` is the share of a step that ranks spend
blocked in collectives. Each round runs all lines in turn, so that drift of the machine affects all of them;
the median is printed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys


def run(options, strategy, ranks):
    command = [
        options.convoy,
        "bench",
        "train",
        "--no-peer",
        "--geometry",
        options.geometry,
        "--mode",
        options.mode,
        "--dtype",
        options.dtype,
        "--seq",
        str(options.seq),
        "--batch",
        "1",
        "--steps",
        str(options.steps),
        "--global-batch",
        str(options.global_batch),
        "--strategy",
        strategy,
    ]
    if ranks > 1:
        command += ["--nproc", str(ranks)]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--convoy", default="build/bin/convoy")
    parser.add_argument("--geometry", default="small")
    parser.add_argument("--mode", default="full")
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--strategies", default="ddp,zero1,zero2,zero3")
    parser.add_argument("--global-batch", type=int, default=8)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of each rank, the lone one too")
    parser.add_argument("--json")
    options = parser.parse_args()

    lines = []
    for ranks in (int(count) for count in options.ranks.split(",")):
        lines += (
            [("none", 1)]
            if ranks == 1
            else [(strategy, ranks) for strategy in options.strategies.split(",")]
        )
    results = {line: [] for line in lines}
    for _ in range(options.rounds):
        for line in lines:
            results[line].append(run(options, *line))

    def median(line, figure):
        return statistics.median(result[figure] for result in results[line])

    alone = median(("none", 1), "tokens_per_s") if ("none", 1) in results else None
    print(
        f"{'strategy':<10}{'ranks':>6}{'tokens/s':>10}{'a rank':>9}{'scaling':>9}{'waits':>8}"
        f"{'peak MiB':>10}{'planned':>9}{'loss':>9}"
    )
    for strategy, ranks in lines:
        line = (strategy, ranks)
        speed = median(line, "tokens_per_s")
        scaling = f"{100 * speed / alone / ranks:>8.0f}%" if alone else f"{'':>9}"
        print(
            f"{strategy:<10}{ranks:>6}{speed:>10.0f}{speed / ranks:>9.0f}{scaling}"
            f"{100 * median(line, 'communication_share'):>7.1f}%{median(line, 'peak_rss_mb'):>10.0f}"
            f"{median(line, 'planned_mb'):>9.0f}{median(line, 'loss'):>9.4f}"
        )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(
                [
                    {"strategy": strategy, "ranks": ranks, "rounds": results[(strategy, ranks)]}
                    for strategy, ranks in lines
                ],
                file,
                indent=2,
            )


if __name__ == "__main__":
    main()
