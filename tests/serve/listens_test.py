"""By default `convoy serve` and `convoy runs serve` listen only on 127.0.0.1: listens_test.py CONVOY MODEL.
The test reads the sockets of their processes, which finds the same ports as a scan of all ports."""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

CONVOY, MODEL = sys.argv.pop(1), sys.argv.pop(1)
LOOPBACK = "0100007F"
TCP_LISTENS, UDP_RECEIVES = "0A", "07"


def family(pid):
    yield pid
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from family(int(child))


def sockets_of(pid):
    """Inodes of the sockets that the process and its children hold."""
    inodes = set()
    for member in family(pid):
        for descriptor in pathlib.Path(f"/proc/{member}/fd").iterdir():
            found = re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink()))
            if found:
                inodes.add(found.group(1))
    return inodes


def open_to_clients(pid):
    """Addresses, as the kernel writes them, that take connections or datagrams from outside the process."""
    own = sockets_of(pid)
    found = []
    for table, state in (
        ("tcp", TCP_LISTENS),
        ("tcp6", TCP_LISTENS),
        ("udp", UDP_RECEIVES),
        ("udp6", UDP_RECEIVES),
    ):
        path = pathlib.Path(f"/proc/{pid}/net/{table}")
        if not path.exists():  # a machine without IPv6
            continue
        for line in path.read_text().splitlines()[1:]:
            words = line.split()
            if words[9] in own and words[3] == state:
                found.append((table, words[1]))
    return found


class Listens(unittest.TestCase):
    def check(self, command, pattern):
        """Starts the server `command`. `pattern` matches the line that has the port."""
        with subprocess.Popen(
            command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as server:
            try:
                port = next(
                    int(found.group(1))
                    for found in map(re.compile(pattern).search, server.stdout)
                    if found
                )
                self.assertEqual(open_to_clients(server.pid), [("tcp", f"{LOOPBACK}:{port:04X}")])
                server.send_signal(signal.SIGTERM)
                server.wait(1200)
            finally:
                server.kill()

    def test_serve(self):
        self.check(
            [CONVOY, "serve", "--model", MODEL, "--port", "0"],
            r"listening on http://127\.0\.0\.1:(\d+)",
        )

    def test_runs_serve(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check(
                [CONVOY, "runs", "serve", "--dir", folder, "--port", "0"],
                r"http://127\.0\.0\.1:(\d+)/",
            )

    def test_a_wider_address_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            words = [
                CONVOY,
                "runs",
                "serve",
                "--dir",
                folder,
                "--port",
                "0",
                "--host",
                "0.0.0.0",
                "-q",
            ]
            with self.assertRaisesRegex(AssertionError, "00000000"):
                self.check(words, r"http://[^:]+:(\d+)/")


if __name__ == "__main__":
    unittest.main()
