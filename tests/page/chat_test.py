#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks the model of a run questions over HTTP, and in Chromium if it is installed: chat_test.py CONVOY [PICTURE_FOLDER]"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import browser as chromium

CONVOY = sys.argv.pop(1)
PICTURES = sys.argv.pop(1) if len(sys.argv) > 1 else None
QUESTION = [{"role": "user", "content": "Sam has 3 apples and buys 5. How many?"}]
JSON = {"Content-Type": "application/json"}


@contextlib.contextmanager
def served(folder, *flags):
    command = [CONVOY, "runs", "serve", "--dir", folder, "--port", "0", "--no-token", "-q", *flags]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            server.url = server.stdout.readline().strip()
            yield server
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0, server.stderr.read()
        finally:
            server.kill()


def post(server, run, question, headers=JSON):
    """Returns the status and the text of the answer."""
    request = urllib.request.Request(
        f"{server.url}v1/chat/completions?run={run}", json.dumps(question).encode(), headers
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def answer_of(server, run, model, **more):
    status, text = post(
        server,
        run,
        {"model": model, "messages": QUESTION, "temperature": 0, "max_tokens": 24, **more},
    )
    assert status == 200, text
    return json.loads(text)["choices"][0]["message"]["content"]


def details(server, run):
    return json.load(urllib.request.urlopen(f"{server.url}api/run?run={run}"))


def engines(server):
    return [
        int(pid)
        for children in pathlib.Path(f"/proc/{server.pid}/task").glob("*/children")
        for pid in children.read_text().split()
    ]


def generated(run, adapter):
    """The answer of `convoy generate`."""
    model = ["--model", "examples/tally-3m"] + (["--adapter", f"{run}/adapter"] if adapter else [])
    words = [
        CONVOY,
        "generate",
        *model,
        "--prompt",
        QUESTION[0]["content"],
        "--greedy",
        "--max-new-tokens",
        "24",
        "--devices",
        "cpu",
        "-q",
    ]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.rstrip("\n")


class Chat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        cls.runs = cls.home.name
        subprocess.run(
            [
                CONVOY,
                "train",
                "examples/sums/lora.yaml",
                "train.steps=12",
                "--run-dir",
                f"{cls.runs}/tuned",
                "-q",
            ],
            check=True,
        )
        # `other` has the same adapter; the base model of `lost` does not exist.
        shutil.copytree(f"{cls.runs}/tuned", f"{cls.runs}/other")
        shutil.copytree(f"{cls.runs}/tuned", f"{cls.runs}/lost")
        record = pathlib.Path(f"{cls.runs}/lost/run.json")
        record.write_text(record.read_text().replace("examples/tally-3m", "/nowhere/model"))
        pathlib.Path(f"{cls.runs}/bare").mkdir()
        shutil.copy(f"{cls.runs}/tuned/events.jsonl", f"{cls.runs}/bare")

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    def test_base_and_adapter_answer_as_generate_does(self):
        with served(self.runs, "--chat", "--devices", "cpu") as server:
            self.assertEqual(engines(server), [], "nobody has asked yet")
            self.assertEqual(details(server, "tuned")["chat"], ["base", "trained"])
            found = {name: answer_of(server, "tuned", name) for name in ("base", "trained")}
            self.assertEqual(
                found,
                {
                    "base": generated(f"{self.runs}/tuned", False),
                    "trained": generated(f"{self.runs}/tuned", True),
                },
            )
            self.assertNotEqual(found["base"], found["trained"])
            first = engines(server)
            self.assertEqual(len(first), 1)
            self.assertEqual(answer_of(server, "other", "trained"), found["trained"])
            second = engines(server)
            self.assertEqual(len(second), 1, "one engine at a time")
            self.assertNotEqual(first, second)

    def test_an_engine_ends_when_nobody_asks(self):
        with served(self.runs, "--chat", "--devices", "cpu", "--chat-idle", "0.5") as server:
            answer = answer_of(server, "tuned", "trained")
            end = time.monotonic() + 60
            while engines(server):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
            self.assertEqual(
                answer_of(server, "tuned", "trained"), answer, "the next question starts another"
            )

    def test_one_engine_at_a_time(self):
        with served(self.runs, "--chat", "--devices", "cpu") as server:
            question = {
                "model": "trained",
                "messages": QUESTION,
                "stream": True,
                "temperature": 2,
                "min_p": 0,
                "top_p": 1,
                "n": 4,
                "max_tokens": 400,
            }
            request = urllib.request.Request(
                f"{server.url}v1/chat/completions?run=tuned", json.dumps(question).encode(), JSON
            )
            with urllib.request.urlopen(request, timeout=120) as stream:
                self.assertTrue(stream.readline().startswith(b"data: "))
                status, text = post(server, "other", {"model": "trained", "messages": QUESTION})
                self.assertEqual(status, 503, text)
                self.assertIn("another run is answering", text)

    def test_wrong_questions(self):
        question = {"model": "trained", "messages": QUESTION}
        with served(self.runs, "--chat", "--devices", "cpu") as server:
            self.assertNotIn("chat", details(server, "bare"))
            for run in "bare", "none", "../tuned":
                status, text = post(server, run, question)
                self.assertEqual((status, json.loads(text)["error"]["param"]), (404, "run"), run)
            status, text = post(server, "tuned", question, {"Content-Type": "text/plain"})
            self.assertEqual(
                (status, json.loads(text)["error"]["type"]),
                (415, "invalid_request_error"),
                "another page can send this",
            )
            self.assertEqual(
                post(server, "tuned", question, {**JSON, "Host": "evil.example"})[0], 403
            )
            status, text = post(server, "lost", question)
            self.assertEqual(status, 500)
            self.assertIn("/nowhere/model", json.loads(text)["error"]["message"])
            self.assertEqual(engines(server), [])
            self.assertEqual(post(server, "tuned", {**question, "model": "third"})[0], 404)
            self.assertEqual(post(server, "tuned", [])[0], 400)

    def test_off_unless_asked(self):
        with served(self.runs) as server:
            self.assertNotIn("chat", details(server, "tuned"))
            self.assertEqual(
                post(server, "tuned", {"model": "trained", "messages": QUESTION})[0], 405
            )
        ended = subprocess.run(
            [CONVOY, "runs", "serve", "--devices", "cpu"], capture_output=True, text=True
        )
        self.assertEqual(ended.returncode, 2)
        self.assertRegex(ended.stderr, "--devices has no effect without --chat")
        ended = subprocess.run(
            [CONVOY, "runs", "serve", "--chat"],
            env={**os.environ, "CONVOY_WORKER": "/nowhere"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(ended.returncode, 2, "there is no program that answers")

    @unittest.skipUnless(shutil.which("chromium"), "there is no chromium")
    def test_in_a_browser(self):
        with (
            served(self.runs, "--chat", "--devices", "cpu") as server,
            tempfile.TemporaryDirectory() as home,
        ):
            browser = chromium.Browser(home)
            try:
                browser.ask("Page.enable")
                browser.ask("Page.navigate", {"url": server.url + "#tuned"})
                browser.expect(
                    "document.querySelector('#chat textarea') !== null",
                    "there is a place for questions",
                    seconds=60,
                )
                self.ask_in(browser)
                browser.picture(PICTURES, "chat")
                browser.value("location.hash = 'bare'")
                browser.expect("byId('chat').childElementCount === 0", "nothing to ask")
                browser.value("location.hash = 'tuned'")
                browser.expect(
                    "document.querySelectorAll('#chat .turn').length === 2",
                    "the conversation is still there",
                )
            finally:
                browser.end()

    def ask_in(self, browser):
        done = "talks.tuned.stop === null && document.querySelectorAll('#chat .turn').length === {}"
        browser.value("document.querySelector('#chat textarea').focus()")
        browser.value("document.querySelector('#chat input[type=number]').value = '0'")
        browser.value(
            f"document.querySelector('#chat textarea').value = {QUESTION[0]['content']!r}"
        )
        browser.value("document.querySelector('#chat input[type=checkbox]').click()")
        browser.press("Enter")
        browser.expect(done.format(1), "both have answered", seconds=120)
        texts = browser.value(
            "[...document.querySelectorAll('#chat .answers > div')].map(each => each.dataset.speaker + ': ' + each.querySelector('pre').textContent)"
        )
        run = f"{self.runs}/tuned"
        self.assertEqual(
            [text[: len(wanted)] for text, wanted in zip(texts, self.beginnings(run))],
            self.beginnings(run),
        )
        browser.value("document.querySelector('#chat textarea').value = 'And 2 more?'")
        browser.press("Enter")
        browser.expect(done.format(2), "the second question is answered", seconds=120)
        self.assertEqual(browser.value("talks.tuned.turns[1].failure ?? ''"), "")

    @staticmethod
    def beginnings(run):
        return ["base: " + generated(run, False), "trained: " + generated(run, True)]


if __name__ == "__main__":
    unittest.main()
