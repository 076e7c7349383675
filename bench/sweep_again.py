#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a sweep of many cells again, which do nothing and are already finished: seconds and memory of that command and of `convoy sweep show`.
Prints a table, or JSON.

  bench/sweep_again.py [--convoy build/bin/convoy] [--cells 1000000] [--store FILE] [--rounds 3] [--json]

Makes the store first, which takes about 0.08 ms per cell. --store names a store that is kept. A run of another Convoy on the same store
then gives a comparison. The numbers are the best of the rounds.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

ANSWER = """s/.*/{{"request":&,"loss":1}}/"""


def sweep_command(arguments, store):
    return [
        arguments.convoy,
        "sweep",
        "run",
        "--persistent",
        "--num-seeds",
        str(arguments.cells),
        "--result",
        "loss",
        "--workers",
        "2",
        "--store",
        store,
        "--",
        "sed",
        "-u",
        ANSWER,
    ]


def measured(command):
    """Runs one command. Returns its seconds by the clock, its processor seconds, and its largest memory."""
    begin = time.perf_counter()
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit("%s ended with %d" % (" ".join(command), child.returncode))
    return dict(
        seconds=time.perf_counter() - begin,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        memory_mib=usage.ru_maxrss / 1024,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--convoy", default="build/bin/convoy")
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--store")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = arguments.store or os.path.join(folder, "sweep.db")
        again = sweep_command(arguments, store)
        first = measured(again)
        commands = {"again": again, "show": [arguments.convoy, "sweep", "show", "--store", store]}
        rows = dict(first=first)
        for name, command in commands.items():
            rows[name] = min(
                (measured(command) for _ in range(arguments.rounds)), key=lambda row: row["seconds"]
            )
    if arguments.json:
        print(json.dumps(rows))
        return
    for name, row in rows.items():
        print(
            "{:6} {seconds:7.2f} s {cpu_seconds:7.2f} s of processors {memory_mib:7.0f} MiB".format(
                name, **row
            )
        )


if __name__ == "__main__":
    main()
