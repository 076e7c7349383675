#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Right answers in the course of `task: grpo`, by the command itself, for several seeds.

  bench/learning_from_rewards.py [--seeds 1,2,3] [--threads 2] [--wanted 0.9] [--convoy build/bin/convoy]
                                 [--json] [SECTION.KEY=VALUE ...]

tally-3m on examples/sums, with examples/sums/grpo.yaml. Prints for each seed the mean reward of the texts of the first
step, which is the share of right ones, the share of right greedy answers to the test problems at each evaluation, and
the seconds of the run. Ends with 1 where a seed ends below --wanted.
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


def run_of(options, seed, folder):
    command = [
        str(pathlib.Path(options.convoy).resolve()),
        "train",
        "examples/sums/grpo.yaml",
        "--quiet",
        "--run-dir",
        str(folder / "run"),
        f"seed={seed}",
        *options.settings,
    ]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    begin = time.monotonic()
    subprocess.run(command, check=True, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - begin
    events = [json.loads(line) for line in (folder / "run/events.jsonl").read_text().splitlines()]
    return {
        "seed": seed,
        "seconds": seconds,
        "first_reward": next(event["reward"] for event in events if event["event"] == "step"),
        "accuracies": {
            event["step"]: event["accuracy"] for event in events if event["event"] == "eval"
        },
        "largest_kl": max(
            event.get("kl_engine_trainer", 0) for event in events if event["event"] == "step"
        ),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--wanted", type=float, default=0.9)
    parser.add_argument("--convoy", default="build/bin/convoy")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("settings", nargs="*", metavar="SECTION.KEY=VALUE")
    options = parser.parse_args()
    results = []
    for seed in map(int, options.seeds.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            result = run_of(options, seed, pathlib.Path(folder))
        results.append(result)
        if options.json:
            continue
        if len(results) == 1:
            steps = " | ".join(f"step {step}" for step in result["accuracies"])
            print(f"| seed | texts of step 1 | {steps} | kl(engine, trainer) | time |")
            print(f"|{'---|' * (4 + len(result['accuracies']))}")
        shares = " | ".join(f"{100 * share:.1f} %" for share in result["accuracies"].values())
        print(
            f"| {seed} | {100 * result['first_reward']:.1f} % | {shares} | {result['largest_kl']} "
            f"| {result['seconds']:.0f} s |",
            flush=True,
        )
    if options.json:
        print(json.dumps(results))
    ends = [list(result["accuracies"].values())[-1] for result in results]
    sys.exit(0 if min(ends) >= options.wanted else 1)


if __name__ == "__main__":
    main()
