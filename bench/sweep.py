#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guesses per second of `convoy sweep ssm`, exact and fast, and of a batched PyTorch loop, in turn. Prints a table, or JSON.

  bench/sweep.py --python PYTHON_WITH_TORCH --peer SCRIPT [--convoy build/bin/convoy] [--dims 150 300] [--rounds N] [--json]

The peer (also: CONVOY_PEER_PYTHON, CONVOY_PEER_SCRIPT) is called as SCRIPT DIM GUESSES, uses two threads and prints a JSON object
with guesses_per_s. Both draw w = e_1, alpha = 0.5. The rates are the best of the rounds. There are two rates: by the clock and by
processor seconds, which other work on the machine disturbs less. By the clock the peer times its own guesses; for Convoy the time is
that of the whole command, with the start of its workers and its tables. From the peer's processor seconds the seconds of a run of few
guesses are subtracted, because its imports should not count.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time


def timed(command):
    """Runs the command. Returns its seconds by the clock, its processor seconds, and its output."""
    begin, before = time.perf_counter(), os.times()
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        text=True,
    )
    seconds, after = time.perf_counter() - begin, os.times()
    busy = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return seconds, busy, done.stdout


def peer_rates(arguments, dim):
    command = [arguments.python, arguments.peer, str(dim)]
    _, idle, _ = timed(command + ["20000"])
    _, busy, text = timed(command + [str(arguments.peer_guesses)])
    return json.loads(text)["guesses_per_s"], (arguments.peer_guesses - 20000) / (busy - idle)


def sweep_rates(arguments, dim, mode):
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data.json")
        with open(data, "w") as file:
            json.dump([dict(alpha=0.5, w=[1, 0, 0, 0])], file)
        seconds, busy, _ = timed(
            [
                arguments.convoy,
                "sweep",
                "ssm",
                "--data-file",
                data,
                "--num-seeds",
                "1",
                "--student-dims",
                str(dim),
                "--mode",
                mode,
                "--gnc-num-samples",
                str(arguments.guesses),
                "--workers",
                "2",
                "--results-dir",
                os.path.join(folder, "results"),
            ]
        )
        return arguments.guesses / seconds, arguments.guesses / busy


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--convoy", default="build/bin/convoy")
    parser.add_argument("--python", default=os.environ.get("CONVOY_PEER_PYTHON"))
    parser.add_argument("--peer", default=os.environ.get("CONVOY_PEER_SCRIPT"))
    parser.add_argument("--dims", type=int, nargs="+", default=[150, 300])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--guesses", type=int, default=200_000_000)
    parser.add_argument("--peer-guesses", type=int, default=4_000_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not arguments.python or not arguments.peer:
        parser.error("wanted --python and --peer")
    rows = []
    for dim in arguments.dims:
        rounds = [
            dict(
                peer=peer_rates(arguments, dim),
                exact=sweep_rates(arguments, dim, "exact"),
                fast=sweep_rates(arguments, dim, "fast"),
            )
            for _ in range(arguments.rounds)
        ]
        for mode in ("exact", "fast"):
            wall, busy = (max(each[mode][at] for each in rounds) for at in (0, 1))
            peer_wall, peer_busy = (max(each["peer"][at] for each in rounds) for at in (0, 1))
            rows.append(
                dict(
                    student_dim=dim,
                    mode=mode,
                    guesses_per_s=wall,
                    peer_guesses_per_s=peer_wall,
                    ratio=wall / peer_wall,
                    guesses_per_cpu_s=busy,
                    peer_guesses_per_cpu_s=peer_busy,
                    cpu_ratio=busy / peer_busy,
                )
            )
    if arguments.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(
            "d={student_dim} {mode:5}: {guesses_per_s:.3g} guesses/s, peer {peer_guesses_per_s:.3g}: {ratio:.1f}x; by processor second "
            "{guesses_per_cpu_s:.3g}, peer {peer_guesses_per_cpu_s:.3g}: {cpu_ratio:.1f}x".format(
                **row
            )
        )


if __name__ == "__main__":
    main()
