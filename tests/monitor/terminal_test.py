# SPDX-License-Identifier: Apache-2.0
"""Tests the view of `convoy monitor` in a terminal: curves, keys, a new size of the terminal, Ctrl-C, and that the terminal is restored."""

import codecs
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time
import unittest

import machines

SOURCE, PROGRAMS = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class View:
    def __init__(self, environment, arguments, rows=30, columns=100, term="xterm"):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(
                PROGRAMS / "convoy",
                ["convoy", "monitor", *arguments],
                {**environment, "TERM": term},
            )
        self.size(rows, columns)
        self.out = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end within a letter

    def size(self, rows, columns):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([self.terminal], [], [], 0.05)[0]:
                continue
            try:
                text = os.read(self.terminal, 1 << 16)
            except OSError:  # the program is gone
                return
            self.out += self.decoder.decode(text)

    def until(self, wanted, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.1)
            if wanted(self.frame()):
                return True
        return False

    def frame(self):
        """The last whole frame as lines of plain text."""
        frames = self.out.split("\x1b[H")
        for frame in reversed(frames):
            if "\x1b[J" in frame:
                return [
                    CODES.sub("", line).rstrip("\r")
                    for line in frame.split("\x1b[J")[0].split("\n")
                ]
        return []

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def end(self):
        self.read(1)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read(0.2)
                os.close(self.terminal)
                return os.waitstatus_to_exitcode(status)
            self.read(0.1)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError("the program goes on")


class Terminal(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def view(self, machine, *arguments, **size):
        environment = {
            **machines.plain_environment(PROGRAMS),
            **machines.lay_out(SOURCE, machine, pathlib.Path(self.folder.name) / machine),
        }
        return View(environment, ["--interval", "0.1", *arguments], **size)

    def test_shows_devices_with_curves_and_ends_by_q(self):
        view = self.view("h200x8")
        self.assertTrue(
            view.until(lambda frame: any("▃▃▃" in line for line in frame)), view.out[-2000:]
        )
        frame = view.frame()
        self.assertEqual(len([line for line in frame if line.startswith("gpu")]), 8)
        self.assertLessEqual(max(map(len, frame)), 100)
        view.press("q")
        self.assertEqual(view.end(), 0)
        self.assertIn("balance: unequal: gpu5", view.out)
        self.assertIn("\x1b[?1049l", view.out)  # switches back to the earlier screen
        self.assertIn("\x1b[?25h", view.out)

    def test_p_stops_the_picture_and_lets_it_go_on(self):
        view = self.view("cpus")
        self.assertTrue(view.until(lambda frame: any("▁" in line or "█" in line for line in frame)))
        view.press("p")
        self.assertTrue(view.until(lambda frame: frame and "PAUSED" in frame[0]))
        view.press("p")
        self.assertTrue(view.until(lambda frame: frame and "PAUSED" not in frame[0]))
        view.press("q")
        self.assertEqual(view.end(), 0)

    def test_fits_another_size(self):
        view = self.view("h200x8", rows=24, columns=80)
        self.assertTrue(view.until(lambda frame: len(frame) > 8))
        view.size(12, 40)
        self.assertTrue(
            view.until(lambda frame: 0 < len(frame) <= 12 and max(map(len, frame)) <= 40)
        )
        view.size(60, 150)
        self.assertTrue(view.until(lambda frame: len(frame) > 24 and max(map(len, frame)) > 80))
        view.press("q")
        self.assertEqual(view.end(), 0)

    def test_ctrl_c_ends_with_the_summary_and_the_file(self):
        output = pathlib.Path(self.folder.name) / "out.csv"
        view = self.view("lost", "--output", str(output))
        self.assertTrue(view.until(lambda frame: any("GPU is lost" in line for line in frame)))
        view.press("\x03")
        self.assertEqual(view.end(), 0)
        self.assertIn("gpu2: the driver reported Xid 79", view.out)
        self.assertIn(",GPU is lost,", output.read_text())
        self.assertIn('"looks"', pathlib.Path(f"{output}.meta.json").read_text())

    def test_a_plain_terminal_gets_rows(self):
        environment = {
            **machines.plain_environment(PROGRAMS),
            **machines.lay_out(SOURCE, "cpus", pathlib.Path(self.folder.name) / "cpus"),
        }
        view = View(environment, ["--count", "1"], term="dumb")
        self.assertEqual(view.end(), 0)
        self.assertNotIn("\x1b[", view.out)
        self.assertIn("timestamp,elapsed_s", view.out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
