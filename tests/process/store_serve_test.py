#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `convoy store serve`: its server runs as long as the command, keeps its data, and serves a shared run.
Usage: store_serve_test.py BIN_FOLDER. Exit code 77 = skipped, with the reason."""

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../hosts"))
from postgres_server import skip_without_server
from two_hosts import skip

BIN = os.path.abspath(sys.argv[1])
CONVOY, PROBE = os.path.join(BIN, "convoy"), os.path.join(BIN, "row_probe")


def serve(folder, *flags, environment=None):
    return subprocess.Popen(
        [CONVOY, "store", "serve", "--data-dir", folder, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def url_of(server):
    line = server.stdout.readline().strip()
    assert line.startswith("postgresql://convoy:"), line + server.stderr.read()
    return line


def run_rows(folder, url, rows):
    done = subprocess.run(
        [PROBE, "coordinate", f"folder={folder}", f"store={url}", f"rows={rows}", "workers=2"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


def end(server, how=signal.SIGTERM):
    server.send_signal(how)
    code = server.wait(60)
    return code, server.stderr.read()


def server_processes(folder):
    """The processes of the server that has its data in `folder`."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if f"{folder}/data".encode() in words and words[0].endswith(b"postgres"):
            found.append(name)
    return found


def a_run_goes_on_after_the_server_was_ended(folder):
    home = os.path.join(folder, "kept")
    server = serve(home)
    url = url_of(server)
    assert stat.S_IMODE(os.stat(os.path.join(home, "password")).st_mode) == 0o600
    assert run_rows(os.path.join(folder, "run"), url, 50) == 50
    code, text = end(server)
    assert code == 0, text
    assert url not in text and not server_processes(home), text
    again = serve(home, "--json")
    url = json.loads(again.stdout.readline())["url"]
    assert run_rows(os.path.join(folder, "run"), url, 50) == 0, "the finished rows were lost"
    # The server ends with the command that started it.
    again.kill()
    again.wait()
    deadline = time.monotonic() + 30
    while server_processes(home) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not server_processes(home), "the server outlived its command"
    # The data of a killed server are not damaged.
    last = serve(home)
    assert run_rows(os.path.join(folder, "run"), url_of(last), 50) == 0
    assert end(last, signal.SIGINT)[0] == 0


def a_wrong_password_and_a_dead_server_are_said(folder):
    home = os.path.join(folder, "said")
    server = serve(home)
    url = url_of(server)
    password = url.split(":")[2].split("@")[0]
    done = subprocess.run(
        [CONVOY, "sweep", "show", "--store", url.replace(password, "wrong")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 12 and "password authentication failed" in done.stderr, done.stderr
    for process in server_processes(home):
        with contextlib.suppress(
            ProcessLookupError
        ):  # the process of the refused connection may have ended
            os.kill(int(process), signal.SIGQUIT)
    assert server.wait(30) == 12
    assert "ended unexpectedly" in server.stderr.read()


def what_can_not_be_served_is_said(folder):
    nowhere = serve(os.path.join(folder, "port"), "--host", "192.0.2.1")
    assert nowhere.wait(60) == 2
    assert "cannot listen on 192.0.2.1" in nowhere.stderr.read()
    nobody = serve(os.path.join(folder, "user"), "--user", "nobody-at-all")
    if os.geteuid() == 0:
        assert nobody.wait(60) == 2
        assert "there is no user nobody-at-all" in nobody.stderr.read()
    else:
        url_of(nobody)
        end(nobody)
    action = subprocess.run([CONVOY, "store", "sevre"], capture_output=True, text=True)
    assert action.returncode == 2 and "serve" in action.stderr, action.stderr


def main():
    skip_without_server()
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        skip("`setpriv` is not installed")
    with tempfile.TemporaryDirectory(prefix="convoy-serve-") as folder:
        os.chmod(folder, 0o755)
        for scenario in (
            a_run_goes_on_after_the_server_was_ended,
            a_wrong_password_and_a_dead_server_are_said,
            what_can_not_be_served_is_said,
        ):
            begin = time.monotonic()
            scenario(folder)
            print(f"{scenario.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
