#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sweeps of several hosts over one PostgreSQL store. The hosts are two network namespaces; one of them has a real server.
Usage: nodes_test.py BIN_FOLDER. Exit code 77 = skipped, with the reason."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../hosts"))
from postgres_server import PASSWORD, Server, skip_without_server
from two_hosts import Hosts, skip_without

BIN = os.path.abspath(sys.argv[1])
CONVOY = os.path.join(BIN, "convoy")


class Node:
    """`convoy sweep` on one host."""

    def __init__(self, hosts, host, arguments, folder):
        self.errors = tempfile.TemporaryFile("w+")
        self.output = tempfile.TemporaryFile("w+")
        # Host b has a process namespace of its own, like another machine, so a cannot see whether its
        # processes live.
        self.apart = (
            ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
            if host == "b"
            else []
        )
        self.process = subprocess.Popen(
            hosts.inside(host, [*self.apart, CONVOY, "sweep", *arguments]),
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.errors,
            cwd=folder,
        )

    def end(self, seconds=120):
        code = self.process.wait(seconds)
        self.errors.seek(0)
        self.output.seek(0)
        self.text = self.errors.read()
        return code

    @staticmethod
    def children(process):
        """The child processes of `process`. `ip netns exec` becomes the program itself, so it adds no level."""
        try:
            with open(f"/proc/{process}/task/{process}/children") as file:
                return [int(word) for word in file.read().split()]
        except FileNotFoundError:
            return []

    def workers(self):
        runners = self.children(self.process.pid) if self.apart else [self.process.pid]
        return [worker for runner in runners for worker in self.children(runner)]

    def kill_host(self):
        assert self.apart, "the others of this host would be seen to be gone"
        self.process.kill()
        self.process.wait()


def command(guesses, store, more=()):
    return [
        "ssm",
        "--num-seeds",
        "3",
        "--student-dims",
        "30",
        "60",
        "--eps-train",
        "0.001",
        "--gnc-num-samples",
        str(guesses),
        "--gd",
        "--gd-epochs",
        "200",
        "--store",
        store,
        "--lease",
        "4",
        "--workers",
        "2",
        *more,
    ]


class Sweeps:
    def __init__(self, hosts, server, folder):
        self.hosts, self.server, self.folder = hosts, server, folder
        self.guesses = 200_000
        # Finds the number of guesses that two hosts with two workers each compute in some seconds now.
        while True:
            begin = time.monotonic()
            self.finish("a", "unbroken.db")
            seconds = time.monotonic() - begin
            if seconds > 8 or self.guesses >= 20_000_000:
                break
            self.guesses = int(self.guesses * min(10, 1 + 9 / seconds))
            os.remove(os.path.join(folder, "unbroken.db"))
        self.wanted = self.results("unbroken.db")
        print(f"{self.guesses} guesses a cell take {seconds:.1f} s", flush=True)

    def start(self, host, store):
        return Node(self.hosts, host, command(self.guesses, store), self.folder)

    def finish(self, host, store):
        node = self.start(host, store)
        assert node.end() == 0, node.text

    def results(self, store):
        def said(*arguments):
            done = subprocess.run(
                self.hosts.inside("a", [CONVOY, "sweep", *arguments, "--store", store]),
                capture_output=True,
                text=True,
                cwd=self.folder,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        rows = json.loads(said("show", "--json"))
        for row in rows:
            # Times and attempts are not compared: on a busy machine a host may renew a lease too late.
            for name in ("seconds", "guesses_per_second", "attempts"):
                del row[name]
        return said("export", "--format", "wide").splitlines() + [json.dumps(row) for row in rows]

    def check(self, store):
        found = self.results(store)
        others = [
            f"{line}\n  in place of\n{wanted}"
            for line, wanted in zip(found, self.wanted)
            if line != wanted
        ]
        assert found == self.wanted, "\n".join([f"results of {store} are others:", *others])

    def work_of(self, node):
        deadline = time.monotonic() + 30
        while len(node.workers()) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(1.2)
        assert node.process.poll() is None, "the sweep was too fast for the test"


def a_lost_host_is_replaced(sweeps):
    store = sweeps.server.make("lost")
    left, right = sweeps.start("a", store), sweeps.start("b", store)
    sweeps.work_of(right)
    right.kill_host()
    assert left.end() == 0, left.text
    sweeps.check(store)


def a_host_may_stop_and_another_join(sweeps):
    store = sweeps.server.make("joined")
    left = sweeps.start("a", store)
    sweeps.work_of(left)
    right = sweeps.start("b", store)
    sweeps.work_of(right)
    left.process.send_signal(signal.SIGTERM)
    assert left.end() == 75, left.text
    assert right.process.poll() is None
    assert right.end() == 0, right.text
    sweeps.check(store)


def a_cut_network_heals(sweeps):
    store = sweeps.server.make("cut")
    left, right = sweeps.start("a", store), sweeps.start("b", store)
    sweeps.work_of(right)
    sweeps.hosts.cut("b")
    time.sleep(6)
    sweeps.hosts.heal("b")
    assert left.end() == 0, left.text
    assert right.end() == 0, right.text
    sweeps.check(store)


def a_server_may_restart(sweeps):
    store = sweeps.server.make("restarted")
    left, right = sweeps.start("a", store), sweeps.start("b", store)
    sweeps.work_of(right)
    sweeps.server.control("stop")
    time.sleep(4)
    assert left.process.poll() is None and right.process.poll() is None
    sweeps.server.control("start")
    assert left.end() == 0, left.text
    assert right.end() == 0, right.text
    assert "waiting for it" in left.text + right.text, left.text
    sweeps.check(store)


def wrong_stores_are_said_in_a_line(sweeps):
    server = sweeps.server
    for store, words in (
        (server.url("none"), "does not exist"),
        (server.url("postgres", "wr0ng"), "password authentication failed"),
        (server.url("postgres", port=5433), "cannot be reached"),
    ):
        begin = time.monotonic()
        node = sweeps.start("b", store)
        assert node.end() == 12, node.text
        assert words in node.text, node.text
        assert PASSWORD not in node.text and "wr0ng" not in node.text, node.text
        waits = "reached" in words
        assert ("waiting for it" in node.text) == waits, node.text
        assert len(node.text.strip().splitlines()) == 2 + waits, (
            node.text
        )  # one line for people and one as JSON
        limit = 60 if waits else 30  # far below the time for which a missing server is awaited
        assert time.monotonic() - begin < limit, f"{words} took {time.monotonic() - begin:.0f} s"


def main():
    skip_without("runuser")
    skip_without_server()
    with Hosts(v6=False) as hosts, tempfile.TemporaryDirectory(prefix="convoy-nodes-") as folder:
        os.chmod(folder, 0o755)
        home = os.path.join(folder, "server")
        os.mkdir(home)
        server = Server(hosts, home)
        try:
            sweeps = Sweeps(hosts, server, folder)
            for scenario in (
                wrong_stores_are_said_in_a_line,
                a_lost_host_is_replaced,
                a_host_may_stop_and_another_join,
                a_cut_network_heals,
                a_server_may_restart,
            ):
                begin = time.monotonic()
                scenario(sweeps)
                print(f"{scenario.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
        finally:
            server.control("stop")


if __name__ == "__main__":
    main()
