#!/usr/bin/env python3
"""Processor seconds of a cold build, by target: `bench/build_seconds.py [--demo] [--jobs N] [--folder FOLDER]`.

Builds in a new folder, as with an empty compiler cache. Processor time is compared, not wall time: other jobs on the machine change
the second more than the first. --demo builds what `./run demo` needs; otherwise everything, tests too.
`--one FILE TARGET RULE COMMAND...` runs one command of such a build (see build_seconds.cmake) and appends its seconds to FILE."""

import argparse
import collections
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEMO_TARGETS = ["convoy", "convoy-worker", "convoy_parquet"]


def one(file, target, rule, *command):
    code = subprocess.call(command)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(file, "a") as table:
        table.write(
            f"{target}\t{rule}\t{used.ru_utime + used.ru_stime:.2f}\t{used.ru_maxrss // 1024}\t{command[-1]}\n"
        )
    return code


def build(folder, demo, jobs):
    shutil.rmtree(folder, ignore_errors=True)
    environment = dict(os.environ, CCACHE_RECACHE="1")  # as with an empty compiler cache
    torch = os.environ.get("CONVOY_TORCH")
    configure = [
        "cmake",
        "-S",
        ROOT,
        "-B",
        folder,
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DCONVOY_BUILD_TESTS={'OFF' if demo else 'ON'}",
        f"-DCONVOY_WHOLE={'OFF' if demo else 'ON'}",
        f"-DCMAKE_PROJECT_INCLUDE={ROOT}/bench/build_seconds.cmake",
    ]
    if torch:
        configure.append(f"-DCONVOY_TORCH={torch}")
    subprocess.run(configure, env=environment, check=True, stdout=subprocess.DEVNULL)
    command = (
        ["cmake", "--build", folder, "-j", str(jobs)]
        + (["--target", *DEMO_TARGETS] if demo else [])
        + ["--", "-k", "0"]
    )
    begin = time.monotonic()
    with open(folder / "build.log", "w") as log:
        subprocess.run(command, env=environment, check=True, stdout=log)
    return time.monotonic() - begin


def report(folder, wall):
    seconds, units, memory = collections.Counter(), collections.Counter(), collections.Counter()
    for line in (folder / "seconds.tsv").read_text().splitlines():
        target, _, used, peak_mib, _ = line.split("\t")
        seconds[target] += float(used)
        units[target] += 1
        memory[target] = max(memory[target], int(peak_mib))
    print("| target | commands | processor seconds | largest, MiB |\n|---|---|---|---|")
    for target, used in seconds.most_common():
        print(f"| {target} | {units[target]} | {used:.1f} | {memory[target]} |")
    print(
        f"| all | {sum(units.values())} | {sum(seconds.values()):.0f} | |\n\nwall time {wall:.0f} s"
    )


def main():
    if sys.argv[1:2] == ["--one"]:
        return one(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", action="store_true", help="only what ./run demo needs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build-seconds")
    arguments = parser.parse_args()
    report(arguments.folder, build(arguments.folder, arguments.demo, arguments.jobs))
    return 0


sys.exit(main())
