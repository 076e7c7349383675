#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a step of convoy::DistributedDataParallel and a step of torch's DistributedDataParallel over Gloo, in turn: the same
network, rows and weights on two ranks. Prints a table; a ratio above 1 means that Convoy is faster.

  bench/library_ddp.py --python PYTHON_WITH_TORCH [--bin build/bin] [--ranks N] [--rounds N]

Build `ninja convoy library_ddp_bench` first. Both start under `convoy launch`, with one thread a rank.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

SHAPES = [  # name, width, depth, rows, steps
    ("wide: 6 x 1024, 6.3 M", 1024, 6, 32, 60),
    ("deep: 40 x 128, 0.66 M", 128, 40, 32, 120),
    ("small: 4 x 64, 17 k", 64, 4, 16, 400),
]
# The median step; the tenth fastest of a hundred steps, for a busy machine; and the processor time of
# all threads of rank 0.
FIGURES = [("step_ms", "step"), ("fast_step_ms", "fast step"), ("processor_ms", "processor")]


def step(convoy, ranks, program):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [convoy, "launch", "--nproc-per-node", str(ranks), "--", *program]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}")
    line = ended.stdout.strip().splitlines()[-1]
    return json.loads(
        line[line.index("{") :]
    )  # without the launcher's prefix, which names the rank


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--python", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    convoy = os.path.join(options.bin, "convoy")
    own = [os.path.join(options.bin, "library_ddp_bench")]
    peer = [options.python, os.path.join(os.path.dirname(__file__), "peers", "ddp_step.py")]
    print(
        f"{'network':26}{'':12}{'Convoy ms':>11}{'torch ms':>11}{'ratio':>8}   (medians of {options.rounds} rounds in turn)"
    )
    for name, *shape in SHAPES:
        arguments = [str(each) for each in shape]
        pairs = []
        for _ in range(options.rounds):
            pairs.append(
                (
                    step(convoy, options.ranks, own + arguments),
                    step(convoy, options.ranks, peer + arguments),
                )
            )
        for mine, other in pairs:
            assert abs(mine["loss"] - other["loss"]) <= 1e-5 * abs(other["loss"]) + 1e-7, (
                mine,
                other,
            )
        for key, label in FIGURES:
            ratio = statistics.median(other[key] / mine[key] for mine, other in pairs)
            print(
                f"{name:26}{label:12}{statistics.median(m[key] for m, _ in pairs):11.2f}"
                f"{statistics.median(o[key] for _, o in pairs):11.2f}{ratio:8.2f}",
                flush=True,
            )
    print("load", os.getloadavg())


if __name__ == "__main__":
    main()
