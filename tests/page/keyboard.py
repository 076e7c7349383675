#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page without a mouse: keyboard.py URL [PICTURE_FOLDER]

Drives Chromium over its debugging pipe (descriptors 3 and 4, messages end with a zero byte)."""

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

        # The browser's ends become 3 and 4, from numbers that these do not cover.
        high_in, high_out = os.dup(to_browser), os.dup(from_browser)

        def at_three_and_four():
            one, other = os.dup(high_in), os.dup(high_out)
            os.dup2(one, 3)
            os.dup2(other, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             f"--user-data-dir={home}/profile", "--window-size=1400,1000", "about:blank"],
            preexec_fn=at_three_and_four, close_fds=False, env={**os.environ, "HOME": home},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (to_browser, from_browser, high_in, high_out):
            os.close(end)
        target = self.ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = self.ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]

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
        answer = self.ask("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def expect(self, expression, what, seconds=20):
        end = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < end, f"FAILED: {what}: {expression} is {self.value(expression)!r}"
            time.sleep(0.05)

    def press(self, key, text=None):
        names = {"ArrowDown": 40, "ArrowUp": 38, "Enter": 13, "Escape": 27, "Tab": 9, " ": 32}
        down = {"type": "keyDown", "key": key, "windowsVirtualKeyCode": names.get(key, ord(key[0].upper()))}
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


def check(browser, url, pictures):
    browser.ask("Page.enable")
    browser.ask("Page.navigate", {"url": url})
    browser.expect("document.body?.dataset.ready === 'true'", "the page is there")
    focused = "document.activeElement.dataset.run"
    browser.press("j")
    browser.expect(f"{focused} === state.runs[1].name", "j goes to the next run")
    browser.press("k")
    browser.expect(f"{focused} === state.runs[0].name", "k goes back")
    browser.press("ArrowDown")
    browser.press("Enter")
    browser.expect("state.shown.length === 1 && state.shown[0] === state.runs[1].name", "enter shows a run alone")
    browser.expect(f"{focused} === state.runs[1].name", "the focus stays while the list is drawn again")
    assert browser.value("getComputedStyle(document.activeElement).outlineStyle") != "none", "FAILED: the focus can not be seen"
    browser.expect("document.querySelector('#facts h2').textContent.trim() === state.shown[0]", "the run's facts")
    browser.value("byId('tables').firstElementChild.id = 'kept'; update(true).then(() => true)")
    assert browser.value("byId('kept') !== null"), "FAILED: a table is drawn again though nothing changed"
    browser.press("j")
    browser.press(" ")
    browser.expect("state.shown.length === 2", "space shows a second one")
    browser.expect("document.querySelector('#facts table') !== null", "the comparison of both")
    browser.press("?")
    browser.expect("byId('help').open", "? opens the list of keys")
    browser.picture(pictures, "keys")
    browser.press("Escape")
    browser.expect("!byId('help').open", "escape closes it")
    browser.press("l")
    browser.expect("byId('log').checked", "l is the logarithmic axis")
    browser.press("/")
    browser.expect("document.activeElement.id === 'filter'", "/ goes to the filter")
    for letter in "sweep":
        browser.press(letter)
    browser.expect("[...document.querySelectorAll('#runs li')].every(item => item.querySelector('.kind').textContent === 'sweep')",
                   "the filter leaves sweeps")
    browser.press("Escape")
    browser.press("j")
    browser.press("Enter")
    browser.expect("document.querySelector('[data-chart=sweep] img')?.naturalWidth > 0", "a sweep's figure is drawn")
    browser.expect("document.querySelector('[data-figure] img')?.naturalWidth > 0", "a figure that it wrote is shown")
    head = "[...document.querySelectorAll('#tables th button')].find(each => each.textContent === 'median')"
    browser.value(f"{head}.focus()")
    browser.press("Enter")
    browser.expect(f"{head}.parentElement.getAttribute('aria-sort') === 'ascending'", "enter sorts a table")
    column = f"(() => {{ const at = {head}.parentElement.cellIndex; return [...{head}.closest('table').tBodies[0].rows].map(row => row.cells[at].textContent).filter(text => text !== '–').map(Number); }})()"
    values = browser.value(column)
    assert len(values) > 1 and values == sorted(values), f"FAILED: the table is not sorted: {values}"
    browser.picture(pictures, "sweep")


def main():
    url, pictures = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as home:
        browser = Browser(home)
        try:
            check(browser, url, pictures)
        finally:
            browser.end()
    print("keyboard ok")


main()
