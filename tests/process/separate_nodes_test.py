#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `convoy process --texts-in-store`: nodes that have separate folders and meet in a PostgreSQL server.
Usage: separate_nodes_test.py BIN_FOLDER SOURCE_FOLDER. Exit code 77 = skipped, with the reason."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../hosts"))
from postgres_server import skip_without_server

CONVOY = os.path.join(os.path.abspath(sys.argv[1]), "convoy")
EXAMPLES = os.path.join(os.path.abspath(sys.argv[2]), "examples")
ROWS = 120
TOKEN = {"CONVOY_JOB_TOKEN": "a secret of all nodes"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nodes:
    """The folders of the nodes of one run: each node has a current folder and a run folder."""

    def __init__(self, folder, name):
        self.folder, self.port = os.path.join(folder, name), free_port()
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o755)

    def start(self, rank, *more, token=TOKEN, count=2):
        folder = os.path.join(self.folder, str(rank))
        os.makedirs(folder, exist_ok=True)
        several = [
            "--num-nodes",
            str(count),
            "--node-rank",
            str(rank),
            "--master-addr",
            "127.0.0.1",
            "--master-port",
            str(self.port),
            "--texts-in-store",
        ]
        words = [
            CONVOY,
            "process",
            "--data",
            f"{EXAMPLES}/sums/test.jsonl",
            "--model",
            f"{EXAMPLES}/tally-3m",
            "--limit",
            str(ROWS),
            "--temperature",
            "0.8",
            "--max-tokens",
            "60",
            "--samples",
            "2",
            "--stages",
            "generate,verify",
            "--deterministic",
            "--batch-size",
            "8",
            "--lease-s",
            "3",
            "--output",
            "out.json",
            *(several if count > 1 else []),
            *more,
        ]
        environment = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith("CONVOY_JOB_TOKEN")
        }
        return subprocess.Popen(
            words,
            cwd=folder,
            env={**environment, **token},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def output(self, rank=0):
        with open(os.path.join(self.folder, str(rank), "out.json")) as file:
            return file.read()


def end(process, wanted=0):
    output, errors = process.communicate(timeout=150)
    assert process.returncode == wanted, f"{process.returncode}: {output}{errors}"
    return errors


def rows_of(errors):
    line = next(line for line in errors.splitlines() if "this node finished" in line)
    return int(line.split("this node finished ")[1].split()[0])


def wait_for_rows(nodes, process, count):
    """Waits until the node has done `count` rows, by its devices.csv and events."""
    events = os.path.join(nodes.folder, "0", "runs")
    until = time.monotonic() + 100
    while time.monotonic() < until:
        assert process.poll() is None, process.communicate()
        for folder, _, names in os.walk(events):
            if (
                "devices.csv" in names
                and os.path.getsize(os.path.join(folder, "devices.csv")) > count
            ):
                return
        time.sleep(0.1)
    raise AssertionError("node 0 did not begin")


def folders_are_not_shared(folder, wanted):
    nodes = Nodes(folder, "apart")
    other = nodes.start(1)
    time.sleep(0.5)
    zero = nodes.start(0)
    errors = end(zero)
    said = end(other)
    assert 0 < rows_of(said) < ROWS, said
    assert "node 1 waits for the store" in said, said
    assert nodes.output() == wanted, errors
    assert not os.path.exists(os.path.join(nodes.folder, "1", "out.json"))


def a_node_that_dies_costs_only_its_open_texts(folder, wanted):
    nodes = Nodes(folder, "died")
    zero = nodes.start(0)
    other = nodes.start(1)
    wait_for_rows(nodes, zero, 200)
    time.sleep(1)
    os.killpg(other.pid, signal.SIGKILL)
    other.communicate()
    end(zero)
    assert nodes.output() == wanted


def node_zero_goes_on_after_a_kill(folder, wanted):
    nodes = Nodes(folder, "again")
    zero = nodes.start(0)
    wait_for_rows(nodes, zero, 200)
    os.killpg(zero.pid, signal.SIGKILL)
    zero.communicate()
    again = nodes.start(0)
    other = nodes.start(1)
    end(again)
    end(other)
    assert nodes.output() == wanted


def another_secret_is_refused(folder):
    nodes = Nodes(folder, "secret")
    zero = nodes.start(0)
    wait_for_rows(nodes, zero, 200)
    errors = end(nodes.start(1, token={"CONVOY_JOB_TOKEN": "another secret of 16"}), 12)
    assert "password authentication failed" in errors, errors
    zero.kill()
    zero.communicate()


def what_cannot_be_is_refused(folder):
    nodes = Nodes(folder, "refused")
    errors = end(nodes.start(0, token={}), 2)
    assert "CONVOY_JOB_TOKEN" in errors and "--store postgresql://" in errors, errors
    errors = end(nodes.start(1, "--store", "ledger.db"), 2)
    assert "need a PostgreSQL store, found the file ledger.db" in errors, errors
    errors = end(nodes.start(0, "--texts-in-store", count=1), 2)
    assert "workers.texts_in_store is for several nodes" in errors, errors


def main():
    skip_without_server()
    with tempfile.TemporaryDirectory(prefix="convoy-nodes-") as folder:
        os.chmod(folder, 0o755)
        what_cannot_be_is_refused(folder)
        another_secret_is_refused(folder)
        alone = Nodes(folder, "alone")
        end(alone.start(0, count=1))
        wanted = alone.output()
        assert len(json.loads(wanted)) == ROWS
        for scenario in (
            folders_are_not_shared,
            a_node_that_dies_costs_only_its_open_texts,
            node_zero_goes_on_after_a_kill,
        ):
            begin = time.monotonic()
            scenario(folder, wanted)
            print(f"{scenario.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
