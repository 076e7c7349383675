#!/usr/bin/env python3
"""A training on one rank and on several of this host, Convoy beside torchrun + accelerate, in turn.

    bench/ranks.py --python PYTHON_WITH_PEERS [--convoy build/bin/convoy] [--geometry small] [--mode lora]
                   [--ranks 2] [--threads 2] [--seq 512] [--steps 5] [--rounds 3] [--json FILE]

Every line has the same global batch (a row for each rank) and the same total number of threads.
`efficiency` is the speed of several ranks divided by the speed of one rank: it shows the cost of
sharing the machine's cores between processes. `waits` is the share of a step that Convoy's ranks
spend blocked in collectives. The numbers are medians of the rounds.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

PEER = pathlib.Path(__file__).parent / "peers" / "hf_train.py"


def measured(command, threads):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])


def commands(options):
    """For each name the command, and the number of threads of each of its ranks."""
    work = [
        "--mode",
        options.mode,
        "--geometry",
        options.geometry,
        "--seq",
        str(options.seq),
        "--steps",
        str(options.steps),
        "--dtype",
        "bf16",
    ]
    own = [options.convoy, "bench", "train", "--no-peer", *work]
    one = ["--batch", str(options.ranks), "--threads", str(options.threads)]
    share = options.threads // options.ranks
    several = ["--batch", "1", "--threads", str(share)]
    launcher = [
        options.python,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(options.ranks),
    ]
    return {
        ("convoy", 1): (own + one, options.threads),
        ("convoy", options.ranks): (
            own + several + ["--ranks", str(options.ranks), "--strategy", "ddp"],
            share,
        ),
        ("accelerate", 1): ([options.python, str(PEER), *work, *one], options.threads),
        ("accelerate", options.ranks): ([*launcher, str(PEER), *work, *several], share),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", required=True)
    parser.add_argument("--convoy", default="build/bin/convoy")
    parser.add_argument("--geometry", default="small")
    parser.add_argument("--mode", default="lora", choices=["lora", "full"])
    for name, default in {"ranks": 2, "threads": 2, "seq": 512, "steps": 5, "rounds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.ranks < 2 or options.threads % options.ranks != 0:
        sys.exit("--threads is a multiple of --ranks, which is at least 2")

    runs = {name: [] for name in commands(options)}
    for _ in range(options.rounds):
        for name, (command, threads) in commands(options).items():
            runs[name].append(measured(command, threads))
    print(f"{'':<12}{'ranks':>6}{'tokens/s':>10}{'efficiency':>12}{'waits':>8}")
    table = []
    for (side, ranks), results in runs.items():
        speed = statistics.median(result["tokens_per_s"] for result in results)
        alone = statistics.median(result["tokens_per_s"] for result in runs[side, 1])
        waits = statistics.median(result.get("communication_share", 0) for result in results)
        table.append(
            {
                "side": side,
                "ranks": ranks,
                "tokens_per_s": speed,
                "efficiency": speed / alone,
                "waits": waits if side == "convoy" else None,
            }
        )
        shown = f"{waits:.0%}" if side == "convoy" else "-"
        print(f"{side:<12}{ranks:>6}{speed:>10.0f}{speed / alone:>12.0%}{shown:>8}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
