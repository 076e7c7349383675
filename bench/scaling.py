#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the gain of a second worker or rank on the CPUs of this machine; prints Markdown.

  bench/scaling.py [--convoy build/bin/convoy] [--counts 1,2] [--rounds 3] [--har DATA] [--only WORD]

Each figure is the median of the rounds; in a round all counts are measured in turn. Each worker has one thread. On a machine with
other work run it as `chrt -f 1 bench/scaling.py`.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
import types

import har

HOME = pathlib.Path(__file__).resolve().parent.parent


def end_of(options, folder, *words):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run(
        [options.convoy, *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done


def guesses(options, folder, count):
    number = 400_000_000  # many, because at the end a worker without a range waits a second for the other workers
    begin = time.monotonic()
    end_of(
        options,
        folder,
        "sweep",
        "ssm",
        "--num-seeds",
        "1",
        "--student-dims",
        "150",
        "--gnc-num-samples",
        str(number),
        "--device",
        "cpu",
        "--workers",
        str(count),
    )
    return number / (time.monotonic() - begin)


def rows(options, folder, count):
    (folder / "question.txt").write_text("Question: {{ problem }}\nAnswer:\n")
    done = end_of(
        options,
        folder,
        "process",
        "--model",
        str(HOME / "examples/tally-3m"),
        "--dataset",
        str(HOME / "examples/sums/test.jsonl"),
        "--plain",
        "--generate-prompt",
        "question.txt",
        "--temperature",
        "0",
        "--max-tokens",
        "100",
        "--stages",
        "generate",
        "--samples",
        "2",
        "--devices",
        "cpu",
        "--world-size",
        str(count),
        "--output",
        "out.jsonl",
    )
    return float(re.search(r"([\d.]+) rows/s", done.stdout + done.stderr)[1])


def tokens(options, folder, count):
    done = end_of(
        options,
        folder,
        "bench",
        "train",
        "--mode",
        "full",
        "--geometry",
        "small",
        "--seq",
        "256",
        "--batch",
        "2",
        "--global-batch",
        "8",
        "--steps",
        "4",
        "--threads",
        "1",
        "--no-peer",
        "--devices",
        "cpu",
        "--nproc",
        str(count),
        "--json",
    )
    return json.loads(done.stdout)["tokens_per_s"]


def windows(strategy):
    def measured(options, folder, count):
        return har.convoy_run(
            types.SimpleNamespace(
                convoy=options.convoy,
                data=options.har,
                epochs=1,
                strategy=strategy,
                ranks=count,
                dtype="fp32",
            )
        )["samples_per_second"]

    return measured


KINDS = [
    ("`convoy sweep ssm`, d = 150, 4e8 guesses, the whole command", "guesses/s", guesses),
    ("`convoy process --stages generate`, tally-3m, 500 sums x 2", "rows/s", rows),
    ("`convoy train`, `ddp`, *small*, full, bf16, 8 x 256 tokens a step", "tokens/s", tokens),
    ("activity recognition, `ddp`, batch 32 a rank", "windows/s", windows("ddp")),
    ("activity recognition, `dp`, batch 32 a replica", "windows/s", windows("dp")),
]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--convoy", default="build/bin/convoy")
    parser.add_argument("--counts", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--har", default=str(HOME / "examples/har/sample"))
    parser.add_argument(
        "--only",
        default="",
        help="of the rows below those whose name has this word: sweep, process, train, recognition",
    )
    options = parser.parse_args()
    options.convoy = str(pathlib.Path(options.convoy).resolve())
    options.har = str(pathlib.Path(options.har).resolve())
    counts = [int(word) for word in options.counts.split(",")]
    print(f"| | of | {' | '.join(map(str, counts))} | ratio |\n|---|---|{'---|' * len(counts)}---|")
    for name, unit, measure in [kind for kind in KINDS if options.only in kind[0]]:
        found = {count: [] for count in counts}
        for _ in range(options.rounds):
            for count in counts:
                with tempfile.TemporaryDirectory(prefix="convoy-bench-") as folder:
                    found[count].append(measure(options, pathlib.Path(folder), count))
        medians = [statistics.median(found[count]) for count in counts]
        print(
            f"| {name} | {unit} | {' | '.join(format(float(f'{value:.3g}'), ',.0f') for value in medians)} | **{medians[-1] / medians[0]:.2f}x** |",
            flush=True,
        )


if __name__ == "__main__":
    main()
