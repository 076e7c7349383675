# SPDX-License-Identifier: Apache-2.0
"""Runs a case under any launcher and reduces the result to the parts that can be compared."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 180


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Run:
    """One case under one launcher. `launcher`: the words before the command of the case."""

    def __init__(self, case, launcher, native):
        self.case = case
        self.folder = tempfile.mkdtemp(prefix="convoy-contract-")
        self.places = {
            "{probe}": os.path.join(HERE, "probe.py"),
            "{sources}": HERE,
            "{native}": native,
            "{folder}": self.folder,
            "{logs}": os.path.join(self.folder, "logs"),
            "{port}": str(free_port()),
        }
        self.command = launcher + [self.filled(word) for word in case.command]
        self.out = os.path.join(self.folder, "out")
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.out)
        os.mkdir(self.temporary)
        with open(os.path.join(self.folder, "python"), "w") as file:
            file.write(f'#!/bin/sh\nCHOSEN_PYTHON=yes exec {sys.executable} "$@"\n')
        os.chmod(file.name, 0o755)
        self.environment = {
            name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ
        }
        self.environment.update(
            PATH=os.path.dirname(sys.executable) + ":/usr/bin:/bin",
            PROBE_OUT=self.out,
            TMPDIR=self.temporary,
            PYTHONDONTWRITEBYTECODE="1",
        )
        for name, value in case.environment.items():
            self.environment.pop(name, None)
            if value is not None:
                self.environment[name] = self.filled(value)

    def filled(self, text):
        for name, value in self.places.items():
            text = text.replace(name, value)
        return text

    def unfilled(self, text):
        for name in ("{logs}", "{probe}", "{sources}", "{folder}", "{native}"):
            text = text.replace(self.places[name], name)
        return re.sub(rf"\b{self.places['{port}']}\b", "{port}", text)

    def result(self):
        """The result, with the keys "exit", "ranks", "signals", "files", "left_in_tmp", "stdout" and "stderr"."""
        process = subprocess.Popen(
            self.command,
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            self.send_signals(process)
            self.stdout, self.stderr = process.communicate(timeout=LIMIT_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
                self.end_ranks()
        code = process.returncode
        return {
            "exit": 128 - code if code < 0 else code,
            "ranks": {name: self.rank(name) for name in self.records()},
            "signals": self.signals(),
            "files": self.files(),
            "left_in_tmp": bool(os.listdir(self.temporary)),
            "stdout": self.comparable_output(self.stdout),
            "stderr": self.comparable_output(self.stderr),
        }

    def end_ranks(self):
        """Kills the ranks of a launcher that had to be killed, because ranks of torchrun run on without it."""
        mark = f"PROBE_OUT={self.out}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        os.kill(int(pid), signal.SIGKILL)
            except OSError:
                continue

    def close(self):
        shutil.rmtree(self.folder)

    def records(self):
        return sorted(
            name[: -len(".json")] for name in os.listdir(self.out) if name.endswith(".json")
        )

    def send_signals(self, process):
        if not self.case.signals:
            return
        until = time.monotonic() + LIMIT_S
        while len(self.records()) < self.case.ranks and time.monotonic() < until:
            time.sleep(0.02)
        for name in self.case.signals:
            process.send_signal(getattr(signal, "SIG" + name))

    def rank(self, name):
        with open(os.path.join(self.out, name + ".json")) as file:
            found = json.load(file)
        before = self.environment
        after = found["environment"]
        self.run_id = after.get("TORCHELASTIC_RUN_ID", "")
        # Set by the shell script that PYTHON_EXEC names in some cases.
        ignored = {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
        changed = {
            key: self.comparable_value(key, value)
            for key, value in after.items()
            if before.get(key) != value and key not in ignored
        }
        return {
            "arguments": [self.unfilled(word) for word in found["arguments"]],
            "environment": changed,
            "removed": sorted(key for key in before if key not in after),
            "folder": self.unfilled(found["folder"]),
            "leads_group": found["leads_group"],
            "leads_session": found["leads_session"],
        }

    def comparable_value(self, name, text):
        if name == "MASTER_PORT" and text not in (self.places["{port}"], "29500"):
            return "<free>"
        if name == "TORCHELASTIC_RUN_ID" and re.fullmatch(r"[0-9a-f-]{16,}", text):
            return "<fresh>"
        if name == "TORCHELASTIC_ERROR_FILE":
            # The names in TMPDIR/torchelastic_xxxxxxxx/RUN-ID_xxxxxxxx are random.
            text = re.sub(rf"^{self.temporary}/.*/attempt_", "<private>/attempt_", text)
            return self.comparable_path(self.unfilled(text))
        return self.unfilled(text)

    def comparable_path(self, text):
        """Replaces the random letters in the run's folder, RUN-ID_xxxxxx."""
        return re.sub(rf"(^|/){re.escape(self.run_id)}_[A-Za-z0-9_]+(?=/|$)", r"\1RUN_*", text)

    def files(self):
        """Maps each path below {logs} to its sorted lines. They are sorted because several ranks may write to one file."""
        found = {}
        root = self.places["{logs}"]
        for folder, _, names in os.walk(root):
            for name in names:
                full = os.path.join(folder, name)
                with open(full) as file:
                    text = file.read()
                if name == "error.json":
                    lines = [json.dumps(json.loads(text)["message"], sort_keys=True)]
                else:
                    lines = sorted(text.splitlines())
                found[self.comparable_path(os.path.relpath(full, root))] = lines
        return dict(sorted(found.items()))

    def signals(self):
        found = {}
        for name in sorted(os.listdir(self.out)):
            if name.endswith(".signals"):
                with open(os.path.join(self.out, name)) as file:
                    found[name[: -len(".signals")]] = file.read().split()
        return found

    def comparable_output(self, text):
        """The ranks' own lines, without their prefix unless the case sets the prefix."""
        if not self.case.console:
            return []
        lines = [line for line in text.splitlines() if "probe:" in line and "Error" not in line]
        if "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE" not in self.case.environment:
            lines = [line[line.index("probe:") :] for line in lines]
        return sorted(lines)


def run_case(case, launcher, native):
    run = Run(case, launcher, native)
    try:
        return run.result()
    finally:
        run.close()
