# SPDX-License-Identifier: Apache-2.0
"""Two hosts as network namespaces with a veth pair, for tests of programs that meet over a network."""

import itertools
import os
import shutil
import subprocess
import sys

V4 = {"a": "10.77.0.1", "b": "10.77.0.2"}
V6 = {"a": "fd77::1", "b": "fd77::2"}


def skip(reason):
    print(f"skipped: {reason}", flush=True)
    sys.exit(77)


def skip_without(*programs):
    """Ends the test as skipped if hosts cannot be made or one of these programs is missing."""
    if os.geteuid() != 0:
        skip("network namespaces need root")
    for program in ("ip", "iptables", *programs):
        if shutil.which(program) is None:
            skip(f"`{program}` is not installed")
    try:
        with Hosts(v6=False) as hosts:
            hosts.cut()
    except RuntimeError as error:
        skip(f"no network namespaces here: {error}")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Hosts:
    """The hosts `a` and `b`, with the addresses V4 and V6. Used in a `with` block, they are removed at its end."""

    numbers = itertools.count()

    def __init__(self, v4=True, v6=True):
        number = next(Hosts.numbers)
        self.names = {h: f"convoy-{os.getpid()}-{number}{h}" for h in "ab"}
        # The kernel allows 15 letters for the name of a link.
        self.links = {h: f"cv{os.getpid() % 100000}n{number}{h}" for h in "ab"}
        self.v4, self.v6 = v4, v6

    def __enter__(self):
        try:
            for name in self.names.values():
                run("ip", "netns", "add", name)
            run(
                "ip",
                "link",
                "add",
                self.links["a"],
                "netns",
                self.names["a"],
                "type",
                "veth",
                "peer",
                "name",
                self.links["b"],
                "netns",
                self.names["b"],
            )
            for host in "ab":
                ip = ["ip", "-n", self.names[host]]
                run(*ip, "link", "set", "lo", "up")
                if self.v4:
                    run(*ip, "addr", "add", f"{V4[host]}/24", "dev", self.links[host])
                if self.v6:
                    run(*ip, "addr", "add", f"{V6[host]}/64", "dev", self.links[host], "nodad")
                run(*ip, "link", "set", self.links[host], "up")
        except Exception:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def inside(self, host, command):
        """The command line that runs `command` on the host. `ip netns exec` becomes the program itself."""
        return ["ip", "netns", "exec", self.names[host]] + command

    def cut(self, deaf="ab"):
        """Drops packets to these hosts. The sender gets no error."""
        for host in deaf:
            run(
                *self.inside(
                    host, ["iptables", "-I", "INPUT", "-i", self.links[host], "-j", "DROP"]
                )
            )

    def heal(self, deaf="ab"):
        for host in deaf:
            run(
                *self.inside(
                    host, ["iptables", "-D", "INPUT", "-i", self.links[host], "-j", "DROP"]
                )
            )

    def lose(self, part):
        """Drops this share of the packets, in both directions."""
        for host in "ab":
            run(
                *self.inside(
                    host,
                    [
                        "iptables",
                        "-I",
                        "INPUT",
                        "-i",
                        self.links[host],
                        "-m",
                        "statistic",
                        "--mode",
                        "random",
                        "--probability",
                        str(part),
                        "-j",
                        "DROP",
                    ],
                )
            )

    def slow_down(self, rate):
        for host in "ab":
            run(
                "tc",
                "-n",
                self.names[host],
                "qdisc",
                "add",
                "dev",
                self.links[host],
                "root",
                "tbf",
                "rate",
                rate,
                "burst",
                "32kbit",
                "latency",
                "400ms",
            )
