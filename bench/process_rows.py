#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of the ledger and the coordinator when workers share rows, and the loss when one worker is slow.
An engine that sleeps takes the place of a model. Build `ninja row_probe`, then run bench/process_rows.py [--bin build/bin]
[--rows 860000]; prints Markdown."""

import argparse
import json
import os
import subprocess
import tempfile

TEXTS = [
    "samples=1",
    "judges=0",
    "batch=16",
    "rows_in_flight=16",
    "step_us=2000",
    "min_tokens=10",
    "max_tokens=90",
]


def run(probe, *words):
    with tempfile.TemporaryDirectory(prefix="convoy-bench-") as folder:
        done = subprocess.run(
            [probe, "coordinate", f"folder={folder}", *words], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return json.loads(done.stdout)


def speed_up(probe, rows):
    print(f"\n| workers | seconds for {rows} rows | speed-up | efficiency |\n|---|---|---|---|")
    one = None
    for workers in (1, 2, 4):
        seconds = run(probe, f"rows={rows}", f"workers={workers}", *TEXTS)["seconds"]
        one = one or seconds
        print(
            f"| {workers} | {seconds:.2f} | {one / seconds:.2f} | {one / seconds / workers:.1%} |",
            flush=True,
        )
    return one


def slowed(probe, rows, one, factor=4):
    print(
        f"\n| two workers, one {factor} times slower | seconds | of the ideal | rows of each |\n|---|---|---|---|"
    )
    ideal = one / (1 + 1 / factor)
    for first in (0, 1):
        end = run(
            probe,
            f"rows={rows}",
            "workers=2",
            "slow_worker=1",
            f"slow_factor={factor}",
            f"longest_first={first}",
            *TEXTS,
        )
        name = "cost unrelated to priority" if first else "in the order of the data"
        print(
            f"| {name} | {end['seconds']:.2f} | {end['seconds'] / ideal:.3f} | "
            f"{end['each']['0']} and {end['each']['1']} |",
            flush=True,
        )


def many(probe, rows):
    end = run(
        probe,
        f"rows={rows}",
        "workers=2",
        "samples=1",
        "judges=0",
        "rows_in_flight=512",
        "batch=512",
        "max_tokens=1",
        "row_bytes=400",
    )
    print(
        f"\n{rows} rows of 400 bytes, 2 workers, no time in the engine: planned in {end['plan_seconds']:.1f} s, worked "
        f"in {end['seconds']:.1f} s, published in {end['publish_seconds']:.1f} s; the coordinator took "
        f"{end['coordinator_kib'] / 1024:.0f} MiB, a worker {end['largest_worker_kib'] / 1024:.0f} MiB."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--rows", type=int, default=860_000)
    options = parser.parse_args()
    probe = os.path.join(os.path.abspath(options.bin), "row_probe")
    rows = 4000
    slowed(probe, rows, speed_up(probe, rows))
    many(probe, options.rows)


if __name__ == "__main__":
    main()
