#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An unchanged torch.distributed script runs under `convoy launch`: on one node, on two nodes, after a restart, with an
exception, with torch's own timers. Also, `convoy launch` runs as a rank of torchrun.

  CONVOY_PEER_PYTHON=PYTHON_WITH_TORCH torch_distributed_test.py CONVOY
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "allreduce.py")
LIMIT_S = 120
convoy = sys.argv[1]
peer = os.environ.get("CONVOY_PEER_PYTHON")


def start(*words, **more):
    environment = dict(os.environ, PYTHON_EXEC=peer, **more)
    return subprocess.Popen(
        [convoy, "launch", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, errors = process.communicate(timeout=LIMIT_S)
    return process.returncode, output, errors


def sums(output):
    return sorted(re.findall(r"sum (\[.*?\]) rank (\d)/(\d) attempt (\d)", output))


def check(condition, *what):
    if not condition:
        print("FAILED", *what, sep="\n")
        sys.exit(1)


def one_node():
    code, output, errors = finish(start("--nproc-per-node", "2", SCRIPT))
    check(code == 0, errors)
    check(sums(output) == [("[3.0, 3.0, 3.0]", rank, "2", "0") for rank in "01"], output)


def two_nodes():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    nodes = [
        start(
            "--nnodes",
            "2",
            "--node-rank",
            str(node),
            "--nproc-per-node",
            str(node + 1),
            "--rdzv-endpoint",
            f"127.0.0.1:{port}",
            SCRIPT,
        )
        for node in range(2)
    ]
    ends = [finish(node) for node in nodes]
    check(all(code == 0 for code, _, _ in ends), *[errors for _, _, errors in ends])
    found = sums(ends[0][1] + ends[1][1])
    check(found == [("[6.0, 6.0, 6.0]", rank, "3", "0") for rank in "012"], found)


def after_a_restart():
    code, output, errors = finish(
        start("--nproc-per-node", "2", "--max-restarts", "1", SCRIPT, "fail-once")
    )
    check(code == 0, errors)
    check(sums(output) == [("[3.0, 3.0, 3.0]", rank, "2", "1") for rank in "01"], output)


def exception_is_the_last_word():
    with tempfile.TemporaryDirectory() as logs:
        code, _, errors = finish(start("--nproc-per-node", "2", "--log-dir", logs, SCRIPT, "raise"))
        last = json.loads(errors.strip().splitlines()[-1])
        check(code == 1 and last["rank"] == 1, errors)
        check("RuntimeError: tensor q went missing" in last["message"], errors)
        files = [os.path.join(folder, name) for folder, _, names in os.walk(logs) for name in names]
        check(any(name.endswith("attempt_0/1/error.json") for name in files), files)


def timers_of_torch():
    with tempfile.TemporaryDirectory() as temporary:
        code, _, errors = finish(
            start(
                "--nproc-per-node",
                "2",
                os.path.join(HERE, "timers.py"),
                TMPDIR=temporary,
                TORCHELASTIC_ENABLE_FILE_TIMER="1",
            )
        )
        check(not os.listdir(temporary), os.listdir(temporary))
    last = json.loads(errors.strip().splitlines()[-1])
    check(code == 137 and last["rank"] == 1 and last["kind"] == "timer", code, errors)
    check("did not finish `stuck collective` in time" in last["message"], errors)


def inside_torchrun():
    """L19: if a rank of torchrun is `convoy launch`, it starts one rank of the same job and passes on its exit code."""
    words = [
        peer,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--no-python",
        convoy,
        "launch",
        "sh",
        "-c",
        "echo rank $RANK/$WORLD_SIZE local $LOCAL_RANK",
    ]
    with tempfile.TemporaryDirectory() as temporary:  # torchrun leaves a folder in it
        environment = dict(os.environ, TMPDIR=temporary)
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=LIMIT_S
        )
    check(done.returncode == 0, done.stderr)
    found = sorted(re.findall(r"rank (\d)/(\d) local (\d)", done.stdout))
    check(found == [("0", "2", "0"), ("1", "2", "1")], done.stdout)


def store_of_torchruns_agent():
    """L19: rank 0 must not listen on the port on which torchrun's agent listens."""
    for more in ([], ["--standalone"]):
        words = [
            peer,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            "2",
            *more,
            "--no-python",
            convoy,
            "launch",
            peer,
            SCRIPT,
        ]
        with tempfile.TemporaryDirectory() as temporary:
            environment = dict(os.environ, TMPDIR=temporary)
            done = subprocess.run(
                words, env=environment, capture_output=True, text=True, timeout=LIMIT_S
            )
        check(done.returncode == 0, words, done.stderr)
        check(
            sums(done.stdout) == [("[3.0, 3.0, 3.0]", rank, "2", "0") for rank in "01"],
            done.stdout,
            done.stderr,
        )


def main():
    if not peer:
        print("skipped: CONVOY_PEER_PYTHON names no Python with torch")
        return 77
    for case in (
        one_node,
        two_nodes,
        after_a_restart,
        exception_is_the_last_word,
        timers_of_torch,
        inside_torchrun,
        store_of_torchruns_agent,
    ):
        case()
        print("ok", case.__name__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
