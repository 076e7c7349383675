#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `convoy launch` on two hosts, which are network namespaces with a veth pair, with cut connections, unknown
clients, and wrong or late nodes. Usage: hosts_test.py BIN_FOLDER SOURCE_FOLDER [SCENARIO...]

Scenarios run side by side, each with hosts of its own. Exit code 77 = skipped, with the reason."""

import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
import two_hosts
from two_hosts import V4, V6

BIN, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CONVOY = os.path.join(BIN, "convoy")
PROBE = os.path.join(SOURCE, "tests/hosts/rank_probe.py")
TOKEN = "the token of the hosts test 0123456789"
PORT = 29400
# Time limits that fit an idle machine are multiplied by this for a busy one.
PATIENCE = 20


class Hosts(two_hosts.Hosts):
    """Two hosts with launchers. The launchers end with the hosts."""

    def __init__(self, v4=True):
        super().__init__(v4=v4)
        self.processes = []

    def __exit__(self, *_):
        for process in self.processes:
            process.end()
        super().__exit__()

    def launch(
        self,
        host,
        *flags,
        token=TOKEN,
        seconds=1.0,
        nodes="2",
        rank=None,
        endpoint=None,
        program=None,
        before=(),
    ):
        endpoint = endpoint or f"{V4['a']}:{PORT}"
        command = [
            *before,
            CONVOY,
            "launch",
            "--nnodes",
            nodes,
            "--rdzv-endpoint",
            endpoint,
            "--rdzv-id",
            "hosts",
        ]
        if rank is not None:
            command += ["--node-rank", str(rank)]
        command += ["--nproc-per-node", "2", *flags, *(program or [PROBE])]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("CONVOY_", "PET_"))}
        if token:
            environment["CONVOY_JOB_TOKEN"] = token
        environment["PROBE_SECONDS"] = str(seconds)
        process = Process(self.inside(host, command), environment)
        self.processes.append(process)
        return process


class Process:
    def __init__(self, command, environment):
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
        )

    def text(self):
        size = os.fstat(self.output.fileno()).st_size
        return os.pread(self.output.fileno(), size, 0).decode(errors="replace")

    def wait(self, seconds):
        try:
            return self.process.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"still running after {seconds * PATIENCE} s:\n{self.text()}"
            ) from None

    def await_text(self, pattern, seconds):
        deadline = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < deadline:
            if re.search(pattern, self.text()):
                return
            time.sleep(0.05)
        raise AssertionError(f"`{pattern}` was not said within {seconds} s:\n{self.text()}")

    def expect(self, code, seconds, *patterns):
        found = self.wait(seconds)
        text = self.text()
        assert found == code, f"exit code {found}, wanted {code}:\n{text}"
        for pattern in patterns:
            assert re.search(pattern, text), f"`{pattern}` is not in:\n{text}"

    def running(self):
        return self.process.poll() is None

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def end(self):
        if self.running():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.output.close()


def start_pair(hosts, seconds, **settings):
    a = hosts.launch("a", rank=0, seconds=seconds, **settings)
    b = hosts.launch("b", rank=1, seconds=seconds, **settings)
    return a, b


def check_silence(text):
    """Checks the seconds of silence that the launcher reports. The time until the ranks end is not checked, because a busy machine needs longer."""
    found = re.search(r"has been silent for (\d+\.\d) s", text)
    assert found and 5 <= float(found[1]) < 15, text


# ---- scenarios: each gets its name from its function


def two_by_two_ranks():
    with Hosts() as hosts:
        a, b = start_pair(hosts, 0.5)
        a.expect(0, 60, r"met 4 ranks at 10\.77\.0\.1", "done 5 rounds")
        b.expect(0, 10, "met 4 ranks")


def without_node_ranks():
    with Hosts() as hosts:
        b = hosts.launch("b", "--rdzv-backend", "c10d")
        a = hosts.launch("a", "--rdzv-backend", "c10d")
        a.expect(0, 60, r"met 4 ranks at 10\.77\.0\.1")
        b.expect(0, 10, "met 4 ranks")


def five_variables_of_kubeflow():
    with Hosts() as hosts:
        pods = []
        for host, rank in (("a", "0"), ("b", "1")):
            environment = {k: v for k, v in os.environ.items() if not k.startswith("CONVOY_")}
            environment.update(
                PET_NNODES="2",
                PET_NPROC_PER_NODE="2",
                PET_NODE_RANK=rank,
                PET_MASTER_ADDR=V4["a"],
                PET_MASTER_PORT="23456",
            )
            pods.append(Process(hosts.inside(host, [CONVOY, "launch", PROBE]), environment))
        hosts.processes += pods
        pods[0].expect(0, 60, "met 4 ranks", "no job token is set")
        pods[1].expect(0, 10, "met 4 ranks")


def cut_without_reset():
    with Hosts() as hosts:
        a, b = start_pair(hosts, 120)
        a.await_text("met 4 ranks", 60)
        b.await_text("met 4 ranks", 60)
        hosts.cut()
        a.expect(13, 20, r"node 1 .*10\.77\.0\.2")
        b.expect(13, 20, r"master at 10\.77\.0\.1")
        check_silence(a.text())
        check_silence(b.text())


def cut_of_one_direction():
    """Row 31: packets to one host are lost, packets from it arrive."""
    for deaf in "ab":
        with Hosts() as hosts:
            a, b = start_pair(hosts, 120)
            a.await_text("met 4 ranks", 60)
            b.await_text("met 4 ranks", 60)
            hosts.cut(deaf)
            # The ranks whose packets arrive end the other ranks by closing connections. The launchers must not
            # report this as the cause.
            codes = [side.wait(20) for side in (a, b)]
            text = a.text() + b.text()
            assert codes == [13, 13], f"{codes}\n{text}"
            check_silence(text)


def lossy_and_narrow_network():
    """Row 33: with 5 % of the packets lost and 20 Mbit/s the job is slower, and no rank is taken for dead."""
    with Hosts() as hosts:
        hosts.lose(0.05)
        hosts.slow_down("20mbit")
        a, b = start_pair(hosts, 8)
        a.expect(0, 90, r"done \d+ rounds")
        b.expect(0, 10)


def five_second_cut_heals():
    with Hosts() as hosts:
        a, b = start_pair(hosts, 12)
        b.await_text("met 4 ranks", 60)
        a.await_text("met 4 ranks", 60)
        time.sleep(1.3)
        hosts.cut()
        time.sleep(5)
        hosts.heal()
        a.expect(0, 60, "done 120 rounds")
        b.expect(0, 10)


def strangers_at_the_port():
    with Hosts() as hosts:
        a, b = start_pair(hosts, 15)
        a.await_text("met 4 ranks", 60)
        before = a.resident_bytes()
        code = f"""
import os, socket, time
address = ("{V4["a"]}", {PORT})
for port in range({PORT} - 200, {PORT} + 200):  # a scan
    s = socket.socket(); s.settimeout(1); s.connect_ex((address[0], port)); s.close()
s = socket.create_connection(address); s.sendall(os.urandom(4096)); s.close()
idle = []
for number in range(1000):
    s = socket.socket(); s.setblocking(False); s.connect_ex(address); idle.append(s)
time.sleep(8)
"""
        stranger = Process(
            hosts.inside("b", ["prlimit", "--nofile=4096", sys.executable, "-c", code]),
            dict(os.environ),
        )
        hosts.processes.append(stranger)
        most = 0
        while stranger.running():
            most = max(most, a.resident_bytes())
            time.sleep(0.1)
        stranger.expect(0, 1)
        assert most - before < 16 << 20, f"{(most - before) / 2**20:.1f} MiB more"
        lines = len(a.text().splitlines())
        assert lines < 60, f"{lines} lines of output:\n{a.text()[-3000:]}"
        a.expect(0, 60, "done 150 rounds")
        b.expect(0, 10)
        print(f"strangers_at_the_port: {(most - before) / 2**20:.1f} MiB more")


def wrong_token():
    with Hosts() as hosts:
        a = hosts.launch("a", rank=0, seconds=1)
        wrong = hosts.launch("b", rank=1, token="quite another token 0123456789")
        wrong.expect(2, 30, "token mismatch")
        a.await_text("another job token", 5)
        assert a.running()
        b = hosts.launch("b", rank=1)
        a.expect(0, 60, "met 4 ranks")
        b.expect(0, 10)


def late_node():
    with Hosts() as hosts:
        a = hosts.launch("a", rank=0)
        a.await_text("missing: node rank 1", 30)
        b = hosts.launch("b", rank=1)
        a.expect(0, 60, "met 4 ranks")
        b.expect(0, 10)


def wrong_world_size():
    with Hosts() as hosts:
        a = hosts.launch("a", rank=0)
        wrong = hosts.launch("b", rank=1, nodes="3")
        wrong.expect(2, 30, "--nnodes 3")
        b = hosts.launch("b", rank=1)
        a.expect(0, 60, "met 4 ranks")
        b.expect(0, 10)


def another_run_id():
    with Hosts() as hosts:
        a = hosts.launch("a", rank=0)
        wrong = hosts.launch("b", "--rdzv-id", "different", rank=1)
        wrong.expect(2, 30, "run id `different`")
        b = hosts.launch("b", rank=1)
        a.expect(0, 60, "met 4 ranks")
        b.expect(0, 10)


def same_rank_twice():
    with Hosts() as hosts:
        a = hosts.launch("a", rank=0, nodes="3")
        b = hosts.launch("b", rank=1, nodes="3")
        time.sleep(2)
        twin = hosts.launch("b", rank=1, nodes="3")
        twin.expect(2, 30, "node rank 1 is already taken")
        assert a.running() and b.running()
        for process in (a, b):
            process.process.send_signal(signal.SIGTERM)
        b.wait(30)
        a.wait(30)


def master_that_never_comes():
    with Hosts() as hosts:
        b = hosts.launch("b", rank=1)
        b.await_text(r"waiting for the master at 10\.77\.0\.1:29400", 30)
        b.process.send_signal(signal.SIGTERM)
        b.expect(143, 5)


def master_dies():
    with Hosts() as hosts:
        a, b = start_pair(hosts, 120)
        b.await_text("met 4 ranks", 60)
        a.process.kill()
        b.expect(13, 20, r"master at 10\.77\.0\.1")
        assert "silent" not in b.text(), "its connections end at once:\n" + b.text()


def port_taken():
    with Hosts() as hosts:
        squatter = Process(
            hosts.inside(
                "a",
                [
                    sys.executable,
                    "-c",
                    f"""
import socket, time
s = socket.create_server(("{V4["a"]}", {PORT})); print("there", flush=True); time.sleep(60)""",
                ],
            ),
            dict(os.environ),
        )
        hosts.processes.append(squatter)
        squatter.await_text("there", 20)
        a = hosts.launch("a", rank=0)
        a.expect(2, 30, str(PORT))
        b = hosts.launch("b", rank=1)
        b.expect(2, 40, r"10\.77\.0\.1:29400 is not a coordinator")


def ipv6_only():
    with Hosts(v4=False) as hosts:
        a, b = start_pair(hosts, 0.5, endpoint=f"[{V6['a']}]:{PORT}")
        a.expect(0, 60, "met 4 ranks at fd77::1")
        b.expect(0, 10)


def host_names_that_do_not_resolve():
    with Hosts() as hosts:
        rename = ["unshare", "--uts", "sh", "-c", 'hostname no-such-host-anywhere; exec "$@"', "sh"]
        a, b = start_pair(hosts, 0.5, before=rename)
        a.expect(0, 90, r"met 4 ranks at 10\.77\.0\.1")
        b.expect(0, 10)


def a_master_that_can_not_resolve_itself():
    """The master cannot resolve its own name. Host b uses the master's address."""
    with Hosts() as hosts:
        rename = ["unshare", "--uts", "sh", "-c", 'hostname no-such-host-anywhere; exec "$@"', "sh"]
        a = hosts.launch("a", endpoint=f"no-such-host-anywhere:{PORT}", before=rename)
        b = hosts.launch("b")
        a.expect(0, 90, r"met 4 ranks at 10\.77\.0\.1")
        b.expect(0, 10)


def a_killed_rank_restarts_everywhere():
    with Hosts() as hosts:
        program = [
            "--no-python",
            "sh",
            "-c",
            'test "$TORCHELASTIC_RESTART_COUNT" = 1 && exec sleep 1; '
            'test "$RANK" = 3 && kill -9 $$; sleep 60',
        ]
        a, b = (
            hosts.launch(host, "--max-restarts", "2", *program[:1], rank=rank, program=program[1:])
            for host, rank in (("a", 0), ("b", 1))
        )
        a.expect(0, 60, "rank 3")
        b.expect(0, 10)


# ---- scenarios with convoy train: Gloo connects the hosts, and ranks meet in the coordinator's store


def write_training(folder, epochs):
    for name, rows in (("rows.jsonl", 16), ("val.jsonl", 2)):
        with open(os.path.join(folder, name), "w") as file:
            for row in range(rows):
                left, right = 7 * row % 11 + 2, 5 * row % 7 + 1
                file.write(f'{{"prompt": "{left} + {right} =", "completion": " {left + right}"}}\n')
    config = os.path.join(folder, "run.yaml")
    with open(config, "w") as file:
        file.write(f"""seed: 7
model: {{name: {SOURCE}/examples/tally-3m, max_seq_len: 64}}
tuning: {{mode: lora, lora: {{r: 4, alpha: 8}}}}
train: {{epochs: {epochs}, batch_size: 1, learning_rate: 2e-3, bf16: false, eval_strategy: "no",
  final_eval: false}}
logging: {{backend: none}}
data: {{train_path: {folder}/rows.jsonl, val_path: {folder}/val.jsonl, cache_dir: none}}
""")
    return config


class Training:
    """A training whose run folder is on a file system that both hosts see. The folder is removed at the end."""

    def __init__(self, epochs):
        self.folder = tempfile.mkdtemp(prefix="convoy-hosts-")
        self.config = write_training(self.folder, epochs)
        self.run = os.path.join(self.folder, "run")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, hosts, host, *flags, run=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("CONVOY_", "PET_"))}
        environment.update(CONVOY_JOB_TOKEN=TOKEN, OMP_NUM_THREADS="1")
        command = [CONVOY, "train", self.config, "--output-dir", run or self.run, *flags]
        process = Process(hosts.inside(host, command), environment)
        hosts.processes.append(process)
        return process

    def start_node(self, hosts, host):
        return self.start(
            hosts,
            host,
            "--nnodes",
            "2",
            "--rdzv-endpoint",
            f"{V4['a']}:{PORT}",
            "--nproc-per-node",
            "2",
            "--node-rank",
            {"a": "0", "b": "1"}[host],
        )

    def start_pair(self, hosts):
        return [self.start_node(hosts, host) for host in "ab"]

    def steps_seen(self):
        path = os.path.join(self.run, "events.jsonl")
        if not os.path.exists(path):
            return 0
        with open(path) as file:
            return sum('"step"' in line for line in file)

    def await_steps(self, count, processes, seconds=120):
        deadline = time.monotonic() + seconds * PATIENCE
        while self.steps_seen() < count:
            for process in processes:
                assert process.running(), process.text()
            assert time.monotonic() < deadline, "the training does not step: " + processes[0].text()
            time.sleep(0.05)

    def adapter(self, run=None):
        found = []
        for folder, _, files in os.walk(run or self.run):
            found += [os.path.join(folder, f) for f in files if f == "adapter_model.safetensors"]
        assert found, f"no adapter in {run or self.run}: {os.listdir(self.folder)}"
        with open(max(found, key=os.path.getmtime), "rb") as file:
            return file.read()


def training_over_a_healed_cut_gives_the_same_bits():
    with Hosts() as hosts, Training(epochs=25) as training:
        a, b = training.start_pair(hosts)
        training.await_steps(20, (a, b))
        hosts.cut()
        time.sleep(5)
        assert a.running() and b.running()
        hosts.heal()
        a.expect(0, 200)
        b.expect(0, 20)
        alone = training.start(hosts, "a", "--nproc", "4", run=training.run + "-alone")
        alone.expect(0, 200)
        assert training.adapter() == training.adapter(training.run + "-alone"), "other bits"


def training_without_a_shared_folder():
    with Hosts() as hosts, Training(epochs=4) as of_a, Training(epochs=4) as of_b:
        a, b = of_a.start_node(hosts, "a"), of_b.start_node(hosts, "b")
        a.expect(0, 200)
        b.expect(0, 20)
        alone = of_a.start(hosts, "a", "--nproc", "4", run=of_a.run + "-alone")
        alone.expect(0, 200)
        assert of_a.adapter() == of_a.adapter(of_a.run + "-alone"), "other bits"
        assert sorted(os.listdir(of_b.run)) == ["logs"], os.listdir(of_b.run)


def training_with_other_rows_is_refused():
    with Hosts() as hosts, Training(epochs=4) as of_a, Training(epochs=4) as of_b:
        with open(os.path.join(of_b.folder, "rows.jsonl"), "a") as file:
            file.write('{"prompt": "1 + 1 =", "completion": " 3"}\n')
        a, b = of_a.start_node(hosts, "a"), of_b.start_node(hosts, "b")
        a.expect(10, 200, "the train rows of rank 2 on .* differ from those of rank 0")
        b.expect(10, 20, "the train rows of rank 2 on .* differ from those of rank 0")


def training_over_a_cut_ends_on_both_sides():
    with Hosts() as hosts, Training(epochs=20000) as training:
        a, b = training.start_pair(hosts)
        training.await_steps(20, (a, b))
        hosts.cut()
        a.expect(13, 20, r"node 1 .*10\.77\.0\.2")
        b.expect(13, 20, r"master at 10\.77\.0\.1")
        check_silence(a.text())
        check_silence(b.text())


SCENARIOS = [
    two_by_two_ranks,
    without_node_ranks,
    five_variables_of_kubeflow,
    cut_without_reset,
    cut_of_one_direction,
    lossy_and_narrow_network,
    five_second_cut_heals,
    strangers_at_the_port,
    wrong_token,
    late_node,
    wrong_world_size,
    another_run_id,
    same_rank_twice,
    master_that_never_comes,
    master_dies,
    port_taken,
    training_over_a_healed_cut_gives_the_same_bits,
    training_without_a_shared_folder,
    training_with_other_rows_is_refused,
    training_over_a_cut_ends_on_both_sides,
    ipv6_only,
    host_names_that_do_not_resolve,
    a_master_that_can_not_resolve_itself,
    a_killed_rank_restarts_everywhere,
]


def attempt(scenario):
    start = time.monotonic()
    try:
        scenario()
        print(f"passed: {scenario.__name__} ({time.monotonic() - start:.1f} s)", flush=True)
        return True
    except Exception:
        print(f"FAILED: {scenario.__name__}\n{traceback.format_exc()}", flush=True)
        return False


def main():
    two_hosts.skip_without("tc", "unshare", "prlimit")
    scenarios = SCENARIOS
    if not os.path.exists(os.path.join(BIN, "convoy-worker")):
        print("skipped: the training scenarios: convoy-worker is not built", flush=True)
        scenarios = [s for s in scenarios if not s.__name__.startswith("training")]
    chosen = [s for s in scenarios if len(sys.argv) <= 3 or s.__name__ in sys.argv[3:]]
    with concurrent.futures.ThreadPoolExecutor(max_workers=6) as pool:
        passed = list(pool.map(attempt, chosen))
    sys.exit(0 if all(passed) else 1)


main()
