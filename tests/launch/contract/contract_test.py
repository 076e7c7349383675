#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every case of cases.py under `convoy launch`, and compares it with torchrun's result (tests/golden/launch/torchrun.json).

  contract_test.py CONVOY NATIVE_PROBE [CASE...]

Intended differences of Convoy are listed in intended() and in the cases, each with its reason; nothing else may differ. With
CONVOY_PEER_PYTHON, a Python that has torch, the golden file is first compared with a run of that torchrun.
"""

import concurrent.futures
import copy
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN_FOLDER = os.path.join(HERE, "..", "..", "golden", "launch")
sys.path.insert(0, HERE)
from cases import CASES  # noqa: E402
from runner import run_case  # noqa: E402

# Variables that only Convoy's own programs read.
OWN_VARIABLES = {"CONVOY_JOB", "CONVOY_STORE_FILE", "CONVOY_FLIGHT_FD"}


def intended(golden, case):
    """The result that Convoy should give: torchrun's result with the intended differences."""
    result = copy.deepcopy(golden)
    # torchrun leaves its torchelastic_* folder behind; Convoy removes its private folder with the job.
    result["left_in_tmp"] = False
    for name, (value, _why) in case.intended.items():
        result[name] = value
    if result["exit"] != golden["exit"] and result["exit"] == 2:
        result["ranks"] = {}  # refused before anything started
    for rank in result["ranks"].values():
        # With --run-path torchrun starts ranks in another way, and leaves them in its own session.
        rank["leads_group"] = rank["leads_session"] = True
        intended_environment(rank["environment"], case)
    # Lines of the filter files have the same prefix as on the console: host, global rank and time.
    for path, lines in result["files"].items():
        if "filtered_" in path:
            result["files"][path] = [
                re.sub(r"^\[[a-z]+(\d+)\]:", r"[HOST \1] TIME ", line) for line in lines
            ]
    if "--log-dir" in case.command or "PET_LOG_DIR" in case.environment:
        add_files_of_every_stream(result)
    return result


def intended_environment(environment, case):
    # The launcher holds no LibTorch, so rank 0 hosts the store itself.
    environment["TORCHELASTIC_USE_AGENT_STORE"] = "False"
    # "1" breaks the flight recorder's dump (pytorch#121055); the library's own default is better.
    environment.pop("TORCH_NCCL_ASYNC_ERROR_HANDLING", None)
    # A setting of the launcher, which ranks need not get.
    environment.pop("TORCHELASTIC_SIGNALS_TO_HANDLE", None)
    # torchrun starts Python with -u. The variable also works for programs that start Python themselves.
    environment.setdefault("PYTHONUNBUFFERED", "1")
    # Rows of changing length leave holes in the allocator's fixed segments.
    environment.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    # Convoy reserves a free port on the loopback address, so that two jobs on one host never collide.
    if environment["MASTER_PORT"] == "29500":
        environment["MASTER_PORT"] = "<free>"
    if environment["MASTER_ADDR"] == "localhost":
        environment["MASTER_ADDR"] = "127.0.0.1"


def add_files_of_every_stream(result):
    """Adds the files of all streams: Convoy writes every stream into a requested log folder, so that the output of a lost job can be read."""
    for name, _rank in result["ranks"].items():
        number, attempt = name.split(".")
        for stream, word in (("stdout", "out"), ("stderr", "err")):
            path = f"RUN_*/attempt_{attempt}/{number}/{stream}.log"
            result["files"].setdefault(path, [f"probe: {word} of {number}"])
    result["files"] = dict(sorted(result["files"].items()))


def without_own_words(result):
    for rank in result["ranks"].values():
        for name in OWN_VARIABLES:
            rank["environment"].pop(name, None)
    for path, lines in result["files"].items():
        if "filtered_" in path:
            result["files"][path] = [
                re.sub(r"^\[\S+ (\d+)\] [0-9:.]+ ", r"[HOST \1] TIME ", line) for line in lines
            ]
    return result


def differences(expected, found, path=""):
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(expected.keys() | found.keys()):
            yield from differences(
                expected.get(key, "<none>"), found.get(key, "<none>"), f"{path}/{key}"
            )
    elif expected != found:
        yield f"  {path}: expected {json.dumps(expected)}, found {json.dumps(found)}"


def check_live(python, names):
    command = [python, os.path.join(GOLDEN_FOLDER, "make_torchrun_golden.py"), "--check", *names]
    return subprocess.run(command, check=False).returncode == 0


def main():
    convoy, native, *names = sys.argv[1:]
    with open(os.path.join(GOLDEN_FOLDER, "torchrun.json")) as file:
        golden = json.load(file)["cases"]
    peer = os.environ.get("CONVOY_PEER_PYTHON")
    well = check_live(peer, names) if peer else True
    cases = [case for case in CASES if not names or case.name in names]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda case: run_case(case, [convoy, "launch"], native), cases))
    wrong = 0
    for case, found in zip(cases, results):
        lines = list(differences(intended(golden[case.name], case), without_own_words(found)))
        if lines:
            wrong += 1
            print(f"{case.name}: {' '.join(case.command)}", *lines, sep="\n")
    print(f"{len(cases) - wrong} of {len(cases)} cases as torchrun, but for what is intended")
    return 0 if well and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
