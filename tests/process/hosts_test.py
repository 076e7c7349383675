#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One run of rows on two hosts, which are network namespaces. One host has a real PostgreSQL server, and both see one folder.
Usage: hosts_test.py BIN_FOLDER. Exit code 77 = skipped, with the reason."""

import json
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../hosts"))
from postgres_server import Server, skip_without_server
from two_hosts import Hosts, skip_without

PROBE = os.path.join(os.path.abspath(sys.argv[1]), "row_probe")
ROWS = 2000
LEASE_SECONDS = 4
WORDS = [
    f"rows={ROWS}",
    "step_us=10000",
    "all_workers=4",
    "workers=2",
    f"lease_ms={LEASE_SECONDS * 1000}",
]


class Node:
    """The run on one host. Host b has a process namespace of its own, like another machine, so a cannot see whether its
    processes live."""

    def __init__(self, hosts, host, folder, store, words):
        self.errors, self.output = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        apart = (
            ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
            if host == "b"
            else []
        )
        words = [
            *WORDS,
            *words,
            f"folder={folder}",
            f"store={store}",
            f"node_rank={'ab'.index(host)}",
        ]
        self.process = subprocess.Popen(
            hosts.inside(host, [*apart, PROBE, "coordinate", *words]),
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.errors,
        )

    def end(self, seconds=150):
        code = self.process.wait(seconds)
        self.errors.seek(0)
        self.output.seek(0)
        self.text = self.errors.read()
        said = self.output.read()
        self.report = json.loads(said) if said else {}
        return code

    def kill(self):
        self.process.kill()
        self.process.wait()


class Runs:
    def __init__(self, hosts, server, folder):
        self.hosts, self.server, self.folder = hosts, server, folder
        unbroken = os.path.join(folder, "unbroken")
        subprocess.run(
            [PROBE, "coordinate", f"rows={ROWS}", "workers=1", f"folder={unbroken}"], check=True
        )
        self.wanted = self.output("unbroken")

    def output(self, name):
        with open(os.path.join(self.folder, name, "out.jsonl")) as file:
            return file.read()

    def start(self, name, other_folder=None, words=()):
        """Starts the run on both hosts, first on b, which waits for the plan. Returns when both are working."""
        store, folder = self.server.make(name), os.path.join(self.folder, name)
        os.mkdir(folder)
        right = Node(self.hosts, "b", other_folder or folder, store, words)
        time.sleep(1)
        left = Node(self.hosts, "a", folder, store, words)
        time.sleep(2.5)
        assert left.process.poll() is None and right.process.poll() is None, (
            "the run was too fast for the test"
        )
        return left, right

    def check(self, name):
        assert self.output(name) == self.wanted, f"the output of {name} is another"


def two_hosts_share_a_run(runs):
    left, right = runs.start("shared")
    assert left.end() == 0, left.text
    assert right.end() == 0, right.text
    rows = left.report["rows"], right.report["rows"]
    assert sum(rows) == ROWS and min(rows) > ROWS / 5, rows
    runs.check("shared")


def two_hosts_without_a_common_folder_share_a_run(runs):
    with tempfile.TemporaryDirectory(prefix="convoy-rows-b-") as other_folder:
        left, right = runs.start("apart", other_folder, ["texts_in_store=1"])
        assert left.end() == 0, left.text
        assert right.end() == 0, right.text
        rows = left.report["rows"], right.report["rows"]
        assert sum(rows) == ROWS and min(rows) > ROWS / 5, rows
        runs.check("apart")
        left_behind = [
            name for _, _, names in os.walk(other_folder) for name in names if name != "tokens"
        ]
        assert not left_behind, left_behind


def a_host_that_is_cut_off_holds_nobody_up(runs):
    left, right = runs.start("cut")
    runs.hosts.cut("b")
    try:
        assert left.end() == 0, left.text
        # Processes of host b wait 15 s for a server that does not answer, and may give up before a busy host a ends.
        gave_up = right.process.poll() is not None
        runs.check("cut")
    finally:
        runs.hosts.heal("b")
    code = right.end()
    if gave_up:
        assert code != 0 and "PostgreSQL" in right.text, (code, right.text)
        return
    # Host b notices that all rows are done.
    assert code == 0, right.text
    assert right.report["rows"] + left.report["rows"] <= ROWS, (left.report, right.report)


def a_host_that_dies_is_replaced(runs):
    left, right = runs.start("died")
    right.kill()
    assert left.end() == 0, left.text
    runs.check("died")


def main():
    skip_without("runuser", "unshare")
    skip_without_server()
    with Hosts(v6=False) as hosts, tempfile.TemporaryDirectory(prefix="convoy-rows-") as folder:
        os.chmod(folder, 0o755)
        home = os.path.join(folder, "server")
        os.mkdir(home)
        server = Server(hosts, home)
        try:
            runs = Runs(hosts, server, folder)
            for scenario in (
                two_hosts_share_a_run,
                two_hosts_without_a_common_folder_share_a_run,
                a_host_that_is_cut_off_holds_nobody_up,
                a_host_that_dies_is_replaced,
            ):
                begin = time.monotonic()
                scenario(runs)
                print(f"{scenario.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
        finally:
            server.control("stop")


if __name__ == "__main__":
    main()
