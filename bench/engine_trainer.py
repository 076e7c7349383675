#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far the log-probabilities of the engine and of training are apart, as a table, for each level of loops of this CPU.

  bench/engine_trainer.py [--tests build/bin/generation_tests] [--levels avx2,baseline] [--filter EqualLogprobs*]

Runs the tests that compare them (tests/generation/equal_logprobs_test.cpp) once per level and reads what they record: for
each way to tune, type of numbers and way to generate or to train, the tokens compared, how many had other bits, and the
largest difference. Without --levels: this CPU's own level and baseline.
"""

import argparse
import collections
import json
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


class Distance:
    def __init__(self):
        self.unlike, self.tokens, self.largest = 0, 0, 0.0

    def add(self, text):
        unlike, tokens, largest = text.split()
        self.unlike += int(unlike)
        self.tokens += int(tokens)
        self.largest = max(self.largest, float(largest))

    def text(self):
        return "0" if self.unlike == 0 else f"{self.unlike}, at most {self.largest:g}"


def group_of(suite, way):
    if "LongRows" in suite:
        return "long rows"
    if "Temperature" in suite:
        return "temperatures"
    return {"rows alone": "training", "rows packed": "training, packed"}.get(way, way)


def measure(options, level):
    """Distances by way to tune and type, then by way to generate or to train."""
    environment = dict(os.environ)
    if level:
        environment["CONVOY_CPU_LEVEL"] = level
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = [
            options.tests,
            f"--gtest_filter={options.filter}",
            f"--gtest_output=json:{report}",
        ]
        # A failed comparison is a row of the table.
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
        with open(report, encoding="utf-8") as file:
            suites = json.load(file)["testsuites"]
    found = collections.defaultdict(lambda: collections.defaultdict(Distance))
    for suite in suites:
        for test in suite["testsuite"]:
            for key, value in test.items():
                tuned, comma, way = key.partition(", ")
                if comma:
                    found[tuned][group_of(suite["name"], way)].add(value)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tests", default=os.path.join(HERE, "../build/bin/generation_tests"))
    parser.add_argument("--levels", default=",baseline", help="empty name: this CPU's own level")
    parser.add_argument("--filter", default="*EqualLogprobs*")
    options = parser.parse_args()
    for level in options.levels.split(","):
        found = measure(options, level)
        groups = list(dict.fromkeys(group for row in found.values() for group in row))
        tokens = sum(distance.tokens for row in found.values() for distance in row.values())
        print(
            f"\nlevel {level or 'of this CPU'}, of {tokens} log-probabilities those with other bits:\n"
        )
        print("| | " + " | ".join(groups) + " |")
        print("|---" * (len(groups) + 1) + "|")
        for tuned, row in found.items():
            cells = [row[group].text() if group in row else "" for group in groups]
            print(f"| {tuned} | " + " | ".join(cells) + " |")


main()
