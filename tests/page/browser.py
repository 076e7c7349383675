# SPDX-License-Identifier: Apache-2.0
"""Chromium over its debugging pipe (descriptors 3 and 4, messages end with a zero byte)."""

import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


class Browser:
    def __init__(self, home):
        to_browser, self.commands = os.pipe()
        self.answers, from_browser = os.pipe()
        self.number = 0
        self.rest = b""

        # The browser's ends become descriptors 3 and 4. They are duplicated first, so that dup2 cannot
        # overwrite an end that is still needed.
        high_in, high_out = os.dup(to_browser), os.dup(from_browser)

        def at_three_and_four():
            one, other = os.dup(high_in), os.dup(high_out)
            os.dup2(one, 3)
            os.dup2(other, 4)

        self.process = subprocess.Popen(
            [
                "chromium",
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
                f"--user-data-dir={home}/profile",
                "--window-size=1400,1000",
                "about:blank",
            ],
            preexec_fn=at_three_and_four,
            close_fds=False,
            env={**os.environ, "HOME": home},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (to_browser, from_browser, high_in, high_out):
            os.close(end)
        target = self.ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = self.ask("Target.attachToTarget", {"targetId": target, "flatten": True})[
            "sessionId"
        ]

    def ask(self, method, parameters=None):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters or {}}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                block = os.read(self.answers, 1 << 20)
                assert block, "the browser has ended"
                self.rest += block
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def value(self, expression):
        answer = self.ask(
            "Runtime.evaluate",
            {"expression": expression, "returnByValue": True, "awaitPromise": True},
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def expect(self, expression, what, seconds=20):
        end = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < end, (
                f"FAILED: {what}: {expression} is {self.value(expression)!r}"
            )
            time.sleep(0.05)

    def press(self, key, text=None):
        names = {"ArrowDown": 40, "ArrowUp": 38, "Enter": 13, "Escape": 27, "Tab": 9, " ": 32}
        down = {
            "type": "keyDown",
            "key": key,
            "windowsVirtualKeyCode": names.get(key, ord(key[0].upper())),
        }
        if text is None and (len(key) == 1 or key == "Enter"):
            text = "\r" if key == "Enter" else key
        if text:
            down["text"] = text
        self.ask("Input.dispatchKeyEvent", down)
        self.ask("Input.dispatchKeyEvent", {**down, "type": "keyUp"})

    def picture(self, folder, name):
        if folder:
            image = self.ask("Page.captureScreenshot")["data"]
            (pathlib.Path(folder) / f"{name}.png").write_bytes(base64.b64decode(image))

    def end(self):
        os.close(self.commands)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def run(check, name):
    """Calls check(browser, url, picture_folder or None) with the arguments of the program: URL [PICTURE_FOLDER]."""
    url, pictures = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as home:
        browser = Browser(home)
        try:
            check(browser, url, pictures)
        finally:
            browser.end()
    print(f"{name} ok")
