#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Right answers before and after each round of `task: rejection`, by the command itself, for several seeds.

  bench/rejection.py [--problems 100] [--rounds 3] [--seeds 1,2,3] [--threads 2] [--convoy build/bin/convoy]
                     [--json] [SECTION.KEY=VALUE ...]

Trains tally-3m on examples/sums, with examples/sums/rejection.yaml. The first rows of its train set are the problems. Each
round is measured on the same number of problems from its test set. Prints the table of
docs/how-to/learn-from-right-solutions.md with the rows that each round learnt and the seconds of the seed.
Ends with 1 if the last round of a seed has no more right answers than its start.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def first_rows(source, count, to):
    lines = source.read_text().splitlines(keepends=True)
    to.write_text("".join(lines[:count]))


def run_of(options, seed, folder):
    first_rows(ROOT / "examples/sums/train.jsonl", options.problems, folder / "problems.jsonl")
    first_rows(ROOT / "examples/sums/test.jsonl", options.problems, folder / "others.jsonl")
    command = [
        str(pathlib.Path(options.convoy).resolve()),
        "train",
        "examples/sums/rejection.yaml",
        "--quiet",
        "--run-dir",
        str(folder / "run"),
        f"seed={seed}",
        f"data.train_path={folder}/problems.jsonl",
        f"data.val_path={folder}/others.jsonl",
        f"data.cache_dir={folder}/cache",
        f"rejection.rounds={options.rounds}",
        "rejection.min_gain=-1",  # runs every round, even if a round brings no gain
        *options.settings,
    ]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    begin = time.monotonic()
    subprocess.run(command, check=True, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - begin
    rounds = [json.loads(line) for line in (folder / "run/rounds.jsonl").read_text().splitlines()]
    return {"seed": seed, "seconds": seconds, "rounds": rounds}


def share(one):
    if "eval_accuracy" not in one:
        return "nothing learnt"
    text = f"{100 * one['eval_accuracy']:.1f} %"
    return f"{text} ({one['kept']} learnt)" if "kept" in one else text


def heading(num_rounds):
    names = ["seed", "start", *(f"round {number}" for number in range(1, num_rounds + 1)), "time"]
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def line(result, num_rounds):
    cells = [share(one) for one in result["rounds"]]
    cells += [""] * (num_rounds + 1 - len(cells))
    return f"| {result['seed']} | {' | '.join(cells)} | {result['seconds']:.0f} s |"


def gained(result):
    last = result["rounds"][-1]
    return last.get("eval_accuracy", 0) > result["rounds"][0]["eval_accuracy"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--convoy", default="build/bin/convoy")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("settings", nargs="*", metavar="SECTION.KEY=VALUE")
    options = parser.parse_args()
    results = []
    if not options.json:
        print(heading(options.rounds))
    for seed in map(int, options.seeds.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            results.append(run_of(options, seed, pathlib.Path(folder)))
        if not options.json:
            print(line(results[-1], options.rounds), flush=True)
    if options.json:
        print(json.dumps(results))
    sys.exit(0 if all(gained(result) for result in results) else 1)


if __name__ == "__main__":
    main()
