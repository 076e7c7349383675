#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torchrun.json: the behaviour of torchrun in every case of tests/launch/contract/cases.py.

  PYTHON_WITH_TORCH make_torchrun_golden.py [--check] [CASE...]

Only the named cases are replaced in the file; without names all cases run, which takes some minutes. --check compares with the
file instead, and prints the differences.
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CONTRACT = os.path.join(HERE, "..", "..", "launch", "contract")
sys.path.insert(0, CONTRACT)
from cases import CASES  # noqa: E402
from runner import run_case  # noqa: E402

GOLDEN = os.path.join(HERE, "torchrun.json")


def torchrun_results(python, names):
    launcher = [python, "-m", "torch.distributed.run"]
    cases = [case for case in CASES if not names or case.name in names]
    with tempfile.TemporaryDirectory() as folder:
        native = os.path.join(folder, "probe")
        subprocess.run(["cc", "-O1", "-o", native, os.path.join(CONTRACT, "probe.c")], check=True)
        # The cases run one after another, because most of them use port 29500.
        return {case.name: run_case(case, launcher, native) for case in cases}


def main():
    words = sys.argv[1:]
    check = "--check" in words
    names = [word for word in words if word != "--check"]
    import torch.version  # only for its number

    found = torchrun_results(sys.executable, names)
    golden = {}
    if check or names:
        with open(GOLDEN) as file:
            golden = json.load(file)["cases"]
    if not check:
        with open(GOLDEN, "w") as file:
            content = {"torch": torch.version.__version__, "cases": golden | found}
            json.dump(content, file, indent=1, sort_keys=True)
            file.write("\n")
        print(f"{len(found)} cases written to {GOLDEN}")
        return 0
    wrong = [name for name, result in found.items() if golden.get(name) != result]
    for name in wrong:
        print(
            f"{name}\n  golden {json.dumps(golden.get(name))}\n  now    {json.dumps(found[name])}"
        )
    print(f"{len(found) - len(wrong)} of {len(found)} cases are as in the golden file")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
