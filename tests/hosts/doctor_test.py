#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`convoy doctor` between two hosts, as network namespaces: doctor_test.py BIN_FOLDER [SCENARIO...]

Scenarios run side by side, each with hosts of its own. Exit code 77 = skipped, with the reason."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
import two_hosts
from two_hosts import V4

BIN = os.path.abspath(sys.argv[1])
TOKEN = "the token of the hosts test 0123456789"


def environment(**more):
    plain = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("CONVOY_", "PET_", "GLOO_", "RANK", "WORLD_SIZE"))
    }
    return {**plain, "CONVOY_JOB_TOKEN": TOKEN, **more}


def start(hosts, host, *flags, master=V4["a"], **variables):
    command = [
        f"{BIN}/convoy",
        "doctor",
        "--json",
        "--nnodes",
        "2",
        "--node-rank",
        str("ab".index(host)),
        "--master-addr",
        master,
        *flags,
    ]
    return subprocess.Popen(
        hosts.inside(host, command),
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finding(process, check="gloo", seconds=120):
    """The finding of doctor's check `check`, and the exit code."""
    try:
        out, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"still running after {seconds} s") from None
    try:
        findings = json.loads(out)["findings"]
    except ValueError:
        raise AssertionError(
            f"exit code {process.returncode}, no findings:\n{out}{errors}"
        ) from None
    process.findings = findings
    return next(one for one in findings if one["check"] == check), process.returncode


def expect(condition, what):
    assert condition, what


# ---- scenarios: each gets its name from its function


def two_hosts_reach_each_other():
    with two_hosts.Hosts() as hosts:
        both = [start(hosts, host) for host in "ab"]
        for host, process in zip("ab", both):
            found, _ = finding(process)
            # A busy machine makes this network slow: a note, or a warning.
            expect(found["mark"] in ("ok", "note", "warning"), found)
            expect(f"over {hosts.links[host]}" in found["text"], found)
            expect(found["text"].startswith("2 ranks on "), found)
            expect(
                any(one["check"] == "clocks" and one["mark"] == "ok" for one in process.findings),
                process.findings,
            )


def a_slow_link_is_said():
    with two_hosts.Hosts() as hosts:
        hosts.slow_down("100mbit")
        both = [start(hosts, host) for host in "ab"]
        for process in both:
            found, code = finding(process)
            speed = re.search(r"many at ([\d.]+) MiB/s", found["text"])
            expect(found["mark"] == "warning" and speed and 5 <= float(speed[1]) <= 13, found)
            expect("GLOO_SOCKET_IFNAME" in found["fix"], found)
            expect(code == 0, f"exit code {code}")


def a_firewall_that_passes_one_port():
    with two_hosts.Hosts() as hosts:
        for host in "ab":
            for rule in (
                ["--dport", "29500", "-j", "ACCEPT"],
                ["-m", "state", "--state", "ESTABLISHED", "-j", "ACCEPT"],
                ["-j", "DROP"],
            ):
                two_hosts.run(
                    *hosts.inside(
                        host,
                        ["iptables", "-A", "INPUT", "-i", hosts.links[host], "-p", "tcp", *rule],
                    )
                )
        found = [finding(process) for process in [start(hosts, host) for host in "ab"]]
        for one, code in found:
            expect(one["mark"] == "blocking" and code == 13, (one, code))
        expect(any("let the firewall pass TCP" in one["fix"] for one, _ in found), found)
        expect(any("the nodes met" in one["text"] for one, _ in found), found)


def an_interface_that_is_not_there():
    with two_hosts.Hosts() as hosts:
        a, b = start(hosts, "a", GLOO_SOCKET_IFNAME="eth7"), start(hosts, "b")
        found, code = finding(a)
        expect(
            found["text"] == "GLOO_SOCKET_IFNAME=eth7 is no interface of this host" and code == 13,
            (found, code),
        )
        expect(hosts.links["a"] in found["fix"], found)
        found, code = finding(b)
        expect("the cause is there" in found["fix"] and code == 13, (found, code))


def a_name_that_leads_back():
    """The host's own name is 127.0.1.1, as in Debian's /etc/hosts."""
    with two_hosts.Hosts() as hosts:
        folder = (
            pathlib.Path("/etc/netns") / hosts.names["b"]
        )  # `ip netns exec` mounts its files over /etc
        folder.mkdir(parents=True)
        try:
            (folder / "hosts").write_text("127.0.0.1 localhost\n127.0.1.1 node0\n")
            found, code = finding(start(hosts, "b", master="node0"), seconds=20)
        finally:
            shutil.rmtree(folder)
        expect(
            found["text"] == "the rendezvous host node0 is 127.0.1.1 here: this host itself", found
        )
        expect("/etc/hosts" in found["fix"] and code == 13, (found, code))


def the_other_node_does_not_come():
    with two_hosts.Hosts() as hosts:
        found, code = finding(start(hosts, "a"))
        expect("missing: node rank 1" in found["text"] and code == 13, (found, code))
        expect("start the same command on every node" in found["fix"], found)


def a_worker_that_never_ends():
    """On one host, doctor ends although its ranks never end."""
    with tempfile.TemporaryDirectory() as folder:
        worker = pathlib.Path(folder) / "worker"
        worker.write_text("#!/bin/sh\nexec sleep 1000\n")
        worker.chmod(0o755)
        begin = time.monotonic()
        process = subprocess.Popen(
            [f"{BIN}/convoy", "doctor", "--json"],
            env=environment(CONVOY_WORKER=str(worker)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        found, code = finding(process)
        expect(
            found["mark"] == "blocking" and "within 40 s" in found["text"] and code == 13,
            (found, code),
        )
        expect(time.monotonic() - begin < 80, "it took too long")


def every_rank_knows_of_the_gpus():
    """Every rank learns the number of GPUs of all ranks: NCCL is tried only if all have some, because a node that tried alone would wait."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                f"{BIN}/convoy",
                "launch",
                "--nproc-per-node",
                "2",
                "--env-source",
                "none",
                f"{BIN}/convoy-worker",
                "check-ranks",
                "--output-folder",
                folder,
                "--gpus",
                "3",
                "--limit",
                "20",
            ],
            env={**environment(), **worker_libraries()},
            check=True,
            capture_output=True,
            timeout=60,
        )
        for rank in range(2):
            figures = json.loads((pathlib.Path(folder) / f"rank-{rank}.json").read_text())
            expect([one["gpus"] for one in figures["ranks"]] == [3, 3], figures)
            expect(figures["bytes_per_s"] > 0 and figures["latency_s"] > 0, figures)


def worker_libraries():
    """The environment with LibTorch's folder, which `convoy --version` names."""
    version = subprocess.run(
        [f"{BIN}/convoy", "--version"], capture_output=True, text=True, check=True
    ).stdout
    folder = re.search(r"LibTorch .* \((.*)\)", version)[1]
    return {"LD_LIBRARY_PATH": f"{folder}/lib"}


SCENARIOS = [
    every_rank_knows_of_the_gpus,
    two_hosts_reach_each_other,
    a_slow_link_is_said,
    a_firewall_that_passes_one_port,
    an_interface_that_is_not_there,
    a_name_that_leads_back,
    the_other_node_does_not_come,
    a_worker_that_never_ends,
]


def run_one(scenario):
    begin = time.monotonic()
    try:
        scenario()
        return f"ok      {scenario.__name__} ({time.monotonic() - begin:.1f} s)", True
    except Exception:
        return f"FAILED  {scenario.__name__}\n{traceback.format_exc()}", False


def main():
    if not os.access(f"{BIN}/convoy-worker", os.X_OK):
        two_hosts.skip("there is no convoy-worker")
    two_hosts.skip_without("tc")
    chosen = [one for one in SCENARIOS if not sys.argv[2:] or one.__name__ in sys.argv[2:]]
    with concurrent.futures.ThreadPoolExecutor(len(chosen)) as pool:
        results = list(pool.map(run_one, chosen))
    for text, _ in results:
        print(text)
    sys.exit(0 if all(well for _, well in results) else 1)


main()
