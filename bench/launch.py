#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times `convoy launch` and, beside it in the same run, torchrun: start, failure, signal, logs. Prints a table, or JSON.

  bench/launch.py [--convoy build/bin/convoy] [--python PYTHON_WITH_TORCH] [--rounds N] [--json]

Without a Python that has torch (also: CONVOY_PEER_PYTHON) there is no peer column.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SIGNAL_PROBE = """
import os, signal, sys, time
def note(*_):
    with open(os.path.join(sys.argv[1], os.environ["RANK"]), "w") as file:
        file.write(repr(time.time()))
    os._exit(0)
signal.signal(signal.SIGTERM, note)
open(os.path.join(sys.argv[1], "ready." + os.environ["RANK"]), "w").close()
while True:
    time.sleep(60)
"""


def run(command):
    begin = time.perf_counter()
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.perf_counter() - begin, ended.returncode


def start_ms(launcher, ranks):
    seconds, code = run(launcher + ["--nproc-per-node", str(ranks), "--no-python", "true"])
    assert code == 0, launcher
    return 1e3 * seconds


def failure_ms(launcher):
    """Milliseconds from the exit 1 of a rank until the launcher has ended. Three other ranks ignore TERM."""
    with tempfile.TemporaryDirectory() as folder:
        script = (
            f"trap '' TERM; if [ $RANK = 1 ]; then sleep 0.3; date +%s.%N > {folder}/failed; exit 1; fi; "
            "while :; do sleep 0.1; done"
        )
        run(launcher + ["--nproc-per-node", "4", "--no-python", "sh", "-c", script])
        now = time.time()
        with open(os.path.join(folder, "failed")) as file:
            return 1e3 * (now - float(file.read()))


def signal_ms(launcher):
    """Milliseconds from a TERM to the launcher until the handlers of both ranks run."""
    with tempfile.TemporaryDirectory() as folder:
        probe = os.path.join(folder, "probe.py")
        with open(probe, "w") as file:
            file.write(SIGNAL_PROBE)
        process = subprocess.Popen(
            launcher + ["--nproc-per-node", "2", probe, folder],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while not all(os.path.exists(os.path.join(folder, f"ready.{rank}")) for rank in "01"):
            time.sleep(0.01)
        time.sleep(0.3)
        sent = time.time()
        process.send_signal(signal.SIGTERM)
        process.wait()
        heard = []
        for rank in "01":
            with open(os.path.join(folder, rank)) as file:
                heard.append(float(file.read()))
        return 1e3 * (max(heard) - sent)


def log_mb_per_s(launcher, mode):
    """MB of logs per second while two ranks write 50 MB of short lines each. Mode -r 3: to files only; -t 3: to files and console."""
    with tempfile.TemporaryDirectory() as folder:
        seconds, code = run(
            launcher
            + [
                "--nproc-per-node",
                "2",
                "--log-dir",
                folder,
                mode,
                "3",
                "--no-python",
                "sh",
                "-c",
                "yes a line of forty letters or so, as they come | head -c 50000000",
            ]
        )
        assert code == 0, launcher
        return 100 / seconds


MEASURES = [
    ("start of 2 ranks of `true`, to the end", "ms", lambda launcher: start_ms(launcher, 2)),
    ("start of 64 ranks of `true`, to the end", "ms", lambda launcher: start_ms(launcher, 64)),
    ("a rank fails, 3 ignore TERM: until all are gone", "ms", failure_ms),
    ("TERM to the launcher: until the ranks' handlers run", "ms", signal_ms),
    ("100 MB of lines into files", "MB/s", lambda launcher: log_mb_per_s(launcher, "-r")),
    (
        "100 MB of lines into files and onto the console",
        "MB/s",
        lambda launcher: log_mb_per_s(launcher, "-t"),
    ),
]


def measure(launchers, rounds):
    rows = []
    for name, unit, of in MEASURES:
        values = {who: [] for who in launchers}
        for _ in range(rounds):
            for (
                who,
                launcher,
            ) in launchers.items():  # in turn, because the load of the machine changes
                # torchrun waits half a minute if ranks ignore TERM, and takes seconds to start 64 ranks.
                # These cases are measured once.
                slow = who == "torchrun" and ("64" in name or "ignore" in name)
                if not (slow and values[who]):
                    values[who].append(of(launcher))
        row = {"what": name, "unit": unit}
        for who, found in values.items():
            row[who] = {
                "median": statistics.median(found),
                "least": min(found),
                "most": max(found),
                "rounds": len(found),
            }
        rows.append(row)
        print(
            f"{name}: "
            + ", ".join(
                f"{who} {statistics.median(found):.1f} {unit}" for who, found in values.items()
            ),
            file=sys.stderr,
            flush=True,
        )
    return rows


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--convoy", default=os.path.join(root, "build", "bin", "convoy"))
    parser.add_argument("--python", default=os.environ.get("CONVOY_PEER_PYTHON"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    temporary = tempfile.TemporaryDirectory()  # torchrun leaves a folder in it each time
    os.environ["TMPDIR"] = tempfile.tempdir = temporary.name
    launchers = {"convoy": [options.convoy, "launch"]}
    if options.python:
        launchers["torchrun"] = [options.python, "-m", "torch.distributed.run"]
    load = os.getloadavg()[0]
    rows = measure(launchers, options.rounds)
    result = {
        "processors": os.cpu_count(),
        "load_before": load,
        "load_after": os.getloadavg()[0],
        "rows": rows,
    }
    if options.json:
        print(json.dumps(result))
        return
    print(
        f"{os.cpu_count()} processors, load {load:.1f} before, {result['load_after']:.1f} after; medians (least to most)"
    )
    for row in rows:
        cells = [
            f"{who} {row[who]['median']:.1f} ({row[who]['least']:.1f} to {row[who]['most']:.1f}) {row['unit']}"
            for who in launchers
        ]
        print(f"  {row['what']}: " + "; ".join(cells))


if __name__ == "__main__":
    main()
