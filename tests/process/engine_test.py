# SPDX-License-Identifier: Apache-2.0
"""Runs `convoy process --engine` with servers of OpenAI's HTTP API that can fail (text_server.py). The rows equal the rows
with a server without faults, and no text is answered twice. CONVOY_BIN_DIR: the folder of the program."""

import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import sqlite3
import struct
import subprocess
import tempfile
import termios
import time
import unittest

from text_server import TextServer

CONVOY = pathlib.Path(os.environ.get("CONVOY_BIN_DIR", "build/bin")).absolute() / "convoy"
KEY = "sk-of-the-test-0123456789"
REFUSALS = [(429, "slow down"), (500, "oops"), (503, "starting", ("Retry-After", "0"))]
FAULTS = ["drop", 0.05, "garble"]


def one_in_five(number, _):
    """Of each five requests one is dropped, one delayed, one garbled and one refused."""
    kind = number % 5
    return FAULTS[kind] if kind < 3 else REFUSALS[number // 5 % 3] if kind == 3 else None


class EngineCase(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.home = pathlib.Path(temporary.name)
        self.write_rows(24)

    def write_rows(self, count):
        lines = [
            json.dumps({"problem": f"{n} + {n} = ?", "answer": str(2 * n)}) for n in range(count)
        ]
        (self.home / "rows.jsonl").write_text("\n".join(lines) + "\n")

    def server(self, *arguments, **options):
        server = TextServer(*arguments, **options)
        self.addCleanup(server.close)
        return server

    def start(self, *words, **environment):
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name.lower()
            not in ("http_proxy", "https_proxy", "all_proxy", "openai_api_key", "convoy_engine_key")
        }
        return subprocess.Popen(
            [CONVOY, *map(str, words)],
            cwd=self.home,
            env={**inherited, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run_convoy(self, *words, code=0, **environment):
        process = self.start(*words, **environment)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        self.assertEqual(process.returncode, code, err + out)
        return out + err

    def words(self, server, output="out.jsonl", *more):
        urls = server if isinstance(server, str) else server.url
        return [
            "process",
            "--engine",
            urls,
            "--engine-model",
            "m",
            "--data",
            "rows.jsonl",
            "--stages",
            "generate,verify,evaluate",
            "--output",
            output,
            *more,
        ]

    def process(self, server, output="out.jsonl", *more, code=0, **environment):
        return self.run_convoy(*self.words(server, output, *more), code=code, **environment)

    def rows(self, output="out.jsonl"):
        rows = [json.loads(line) for line in (self.home / output).read_text().splitlines()]
        for row in rows:
            row.pop("timestamp", None)
        return rows

    def folder(self, output="out"):
        return next(path for path in (self.home / "runs").iterdir() if path.name.startswith(output))


class RowsTest(EngineCase):
    def test_a_server_with_faults_gives_the_rows_of_one_without(self):
        calm = self.server()
        self.process(calm, "calm.jsonl")
        self.assertEqual(len(calm.bodies), 48)  # two requests for each row: generate and evaluate
        self.assertLess(calm.connections, 40)  # connections stay open for several requests
        faulty = self.server(one_in_five)
        self.process(faulty, "faulty.jsonl")
        self.assertEqual(self.rows("calm.jsonl"), self.rows("faulty.jsonl"))
        self.assertEqual(calm.answered, faulty.answered)
        self.assertEqual(set(faulty.answered.values()), {1})
        self.assertGreater(len(faulty.bodies), 60)
        # Run again, the same command sends no requests.
        asked = len(calm.bodies)
        calm.close()
        self.process(calm, "calm.jsonl")
        self.assertEqual(len(calm.bodies), asked)

    def test_every_kind_of_broken_answer_is_asked_for_again(self):
        kinds = ["half", "html", "empty", "no choices", "garble", "drop"]
        server = self.server(lambda number, _: kinds[number] if number < len(kinds) else None)
        self.process(server, "out.jsonl", "--limit", 8, "--batch-size", 8)
        self.assertEqual({row["state"] for row in self.rows()}, {"ok"})
        self.assertEqual(set(server.answered.values()), {1})

    def test_every_form_of_a_text_is_kept_and_paid_once(self):
        """Answers in parts, unusual ends and tool calls: each row has its text, and costs one request."""

        def parts(answer):
            message = answer["choices"][0]["message"]
            words = message["content"].split(" ")
            message["content"] = [
                {"type": "text", "text": word + (" " if place + 1 < len(words) else "")}
                for place, word in enumerate(words)
            ]

        def ends(reason):
            return lambda answer: answer["choices"][0].update(finish_reason=reason)

        def call(answer):
            answer["choices"][0].update(
                finish_reason="tool_calls",
                message={
                    "content": None,
                    "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}],
                },
            )

        def null(answer):
            answer["choices"][0]["message"]["content"] = None

        forms = [
            parts,
            ends("eos_token"),
            ends(None),
            ends("tool_calls"),
            ends("end_turn"),
            ends("content_filter"),
            call,
            null,
        ]
        place = {f"{n} + {n} = ?": n for n in range(24)}
        server = self.server(
            lambda _, body: (
                forms[place[body["messages"][-1]["content"]]]
                if place[body["messages"][-1]["content"]] < 8
                else None
            )
        )
        (self.home / "bare.txt").write_text("{{ problem }}")
        self.process(server, "out.jsonl", "--stages", "generate", "--generate-prompt", "bare.txt")
        rows = self.rows()
        self.assertEqual(
            [row["state"] for row in rows[:9]],
            ["ok"] * 5 + ["truncated", "ok", "engine_error", "ok"],
        )
        for row in rows[:6] + rows[8:]:
            self.assertRegex(row["reasoning"], r"^The answer is \d+\.$")
        self.assertEqual([row["finish"] for row in rows[4:7]], ["stop", "content_filter", "stop"])
        self.assertEqual((rows[6]["solution"], rows[6]["answer"]), (None, None))
        self.assertEqual(
            rows[6]["reasoning"], '<tool_call>\n{"name":"f","arguments":{}}\n</tool_call>'
        )
        self.assertIn("holds no text (finish_reason `stop`)", rows[7]["metadata"]["error"])
        self.assertEqual(len(server.bodies), 24)

    def test_a_run_that_ends_with_a_refusal_keeps_what_is_paid(self):
        """The key expires while requests are running. Their texts are kept, and the next run requests only the other texts."""
        self.write_rows(60)
        expired = []
        server = self.server(
            lambda number, _: (401, "the key has expired") if number >= 30 and not expired else 0.05
        )
        said = self.process(server, "out.jsonl", "--stages", "generate", code=2)
        self.assertIn("status 401: the key has expired", said)
        expired.append(True)
        self.process(server, "out.jsonl", "--stages", "generate")
        self.assertEqual(len(self.rows()), 60)
        self.assertEqual(set(server.answered.values()), {1})

    def test_one_missing_page_among_answers_is_no_end(self):
        for status in (404, 307):
            server = self.server(
                lambda number, _: (
                    (status, "model loading", ("Location", "/v1")) if number == 5 else None
                )
            )
            self.process(server, f"{status}.jsonl")
            self.assertEqual({row["state"] for row in self.rows(f"{status}.jsonl")}, {"ok"})
            self.assertEqual(set(server.answered.values()), {1})

    def test_a_row_that_alone_is_missing_is_its_error(self):
        """A router may answer so for one prompt. The same command then continues with the other rows."""
        for status in (404, 501):
            server = self.server(
                lambda _, body: (
                    (status, "no such page") if "7 + 7" in TextServer.prompt_of(body) else None
                )
            )
            for _ in range(2):
                self.process(server, f"{status}.jsonl", "--limit", 12, "--stages", "generate")
                rows = self.rows(f"{status}.jsonl")
                self.assertEqual(
                    [n for n, row in enumerate(rows) if row["state"] == "engine_error"], [7]
                )
                self.assertIn(
                    f"refuses it with status {status}: no such page", rows[7]["metadata"]["error"]
                )
            self.assertEqual(set(server.answered.values()), {1})

    def test_an_account_without_credit_ends_the_run_at_once(self):
        poor = [True]
        server = self.server(
            lambda number, _: (402, "Insufficient credits") if number >= 10 and poor[0] else None
        )
        said = self.process(server, "out.jsonl", "--stages", "generate", code=2)
        self.assertIn("status 402: Insufficient credits", said)
        self.assertIn("add credit, then run the same command again", said)
        self.assertLessEqual(len(server.bodies), 24)  # no text is requested twice
        poor.clear()
        poor.append(False)
        self.process(server, "out.jsonl", "--stages", "generate")
        self.assertEqual(len(self.rows()), 24)
        self.assertEqual(set(server.answered.values()), {1})

    def test_a_server_with_the_newer_name_of_the_limit_gets_it(self):
        words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        newer = self.server(lambda _, body: (400, words) if "max_tokens" in body else None)
        older = self.server()
        self.process(f"{newer.url},{older.url}", "out.jsonl")
        self.assertEqual({row["state"] for row in self.rows()}, {"ok"})
        given = [
            body["max_completion_tokens"]
            for body in newer.bodies
            if "max_completion_tokens" in body
        ]
        self.assertIn(4096, given)
        self.assertNotIn("max_completion_tokens", str(older.bodies))
        self.assertLess(len(newer.bodies) - len(given), 24)

    def test_a_busy_server_is_told_once(self):
        server = self.server(
            lambda number, _: (
                (429, "slow down", ("Retry-After", "0")) if number in (3, 9, 30) else None
            )
        )
        said = self.process(server)
        self.assertEqual(said.count("is busy: "), 1, said)

    def test_a_long_rest_is_told(self):
        server = self.server(
            lambda number, _: (429, "slow down", ("Retry-After", "3600")) if number == 3 else None
        )
        process = self.start(*self.words(server))
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)
        self.assertTrue(
            any(
                "gets no request for 3600 s, as it asked (Retry-After)" in line
                for line in process.stderr
            )
        )

    def test_the_progress_counts_the_requests(self):
        server = self.server()
        server.hold(0)
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, 200, 0, 0))
        process = subprocess.Popen(
            [CONVOY, *map(str, self.words(server))],
            cwd=self.home,
            stdout=subprocess.DEVNULL,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        try:
            shown = ""
            while not re.search(r"24 rows in flight, 16 requests at once", shown):
                shown += os.read(master, 4096).decode(errors="replace")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def test_the_requests_hold_what_is_set(self):
        server = self.server()
        self.process(
            server,
            "chat.jsonl",
            "--limit",
            2,
            "--samples",
            2,
            "--stages",
            "generate",
            "--template-kwargs",
            '{"enable_thinking": false}',
            "--system-prompt",
            "Be brief.",
            "--stop",
            "END",
        )
        self.assertEqual(set(server.paths), {"/v1/chat/completions"})
        body = server.bodies[0]
        self.assertEqual([m["role"] for m in body["messages"]], ["system", "user"])
        self.assertEqual(
            set(body),
            {
                "model",
                "max_tokens",
                "temperature",
                "stop",
                "top_p",
                "chat_template_kwargs",
                "messages",
                "seed",
            },
        )
        self.assertEqual(
            (body["max_tokens"], body["temperature"], body["top_p"], body["stop"]),
            (4096, 0.2, 0.9, ["END"]),
        )
        self.assertEqual(len({body["seed"] for body in server.bodies}), 4)
        first = sorted((body["messages"][1]["content"], body["seed"]) for body in server.bodies)
        again = self.server()
        self.process(
            again,
            "again.jsonl",
            "--limit",
            2,
            "--samples",
            2,
            "--stages",
            "generate",
            "--template-kwargs",
            '{"enable_thinking": false}',
            "--system-prompt",
            "Be brief.",
            "--stop",
            "END",
        )
        self.assertEqual(
            first, sorted((body["messages"][1]["content"], body["seed"]) for body in again.bodies)
        )
        plain = self.server()
        self.process(
            plain,
            "plain.jsonl",
            "--limit",
            1,
            "--plain",
            "--temperature",
            0,
            "--top-k",
            5,
            "--stages",
            "generate",
        )
        self.assertEqual(plain.paths, ["/v1/completions"])
        self.assertEqual(set(plain.bodies[0]), {"model", "max_tokens", "temperature", "prompt"})

    def test_many_requests_are_under_way_at_once(self):
        self.write_rows(200)
        server = self.server(lambda number, _: 0.05)
        self.process(server, "out.jsonl", "--stages", "generate")
        self.assertGreater(server.most_at_once, 16)
        server = self.server(lambda number, _: 0.05)
        self.process(server, "few.jsonl", "--stages", "generate", "--max-requests", 3)
        self.assertLessEqual(server.most_at_once, 3)

    def test_a_server_that_is_away_is_passed_over(self):
        gone = TextServer()
        gone.close()
        server = self.server()
        said = self.process(f"{gone.url},{server.url}")
        self.assertIn(f"not all servers of --engine answer: {gone.url}: ", said)
        self.assertIn(f"[worker 0] {gone.url} is set aside and tried again later: ", said)
        self.assertEqual(set(server.answered.values()), {1})
        self.assertEqual(len(server.answered), 48)

    def test_servers_share_the_requests(self):
        first, second = self.server(lambda number, _: 0.05), self.server(lambda number, _: 0.05)
        self.process(f"{first.url},{second.url}")
        self.assertEqual(sum((first.answered + second.answered).values()), 48)
        self.assertGreater(len(first.answered), 8)
        self.assertGreater(len(second.answered), 8)


class KillTest(EngineCase):
    def kept_texts(self):
        """Number of texts in the ledger. A finished row counts as two, because its result has both texts."""
        try:
            store = sqlite3.connect(
                f"file:{self.folder() / 'ledger.db'}?mode=ro", uri=True, timeout=10
            )
            try:
                return store.execute(
                    "SELECT (SELECT count(*) FROM convoy_notes) + 2 * (SELECT count(*) FROM convoy_results)"
                ).fetchone()[0]
            finally:
                store.close()
        except (StopIteration, FileNotFoundError, sqlite3.OperationalError):
            return 0

    def start_until_kept(self, server, texts):
        process = self.start(*self.words(server))
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        deadline = time.monotonic() + 60
        while self.kept_texts() < texts and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(self.kept_texts(), texts)
        return process

    def test_a_killed_run_asks_for_nothing_twice(self):
        server = self.server()
        server.hold(9)
        process = self.start_until_kept(server, 9)
        answered = set(server.answered)
        self.assertEqual(len(answered), 9)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        asked = len(server.bodies)
        # Requests whose client was killed while they were held get an answer that nobody reads.
        other = self.server()
        self.process(other)
        self.assertFalse(answered & {other.prompt_of(body) for body in other.bodies})
        self.assertEqual(set(other.answered.values()), {1})
        self.assertEqual(len(other.answered), 48 - 9)
        calm = self.server()
        self.process(calm, "calm.jsonl")
        self.assertEqual(self.rows(), self.rows("calm.jsonl"))
        self.assertGreater(asked, 9)

    def test_a_kill_loses_no_more_than_the_requests_under_way(self):
        self.write_rows(100)
        server = self.server(lambda number, body: 0.005)
        process = self.start(*self.words(server), "--max-requests", 2)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        deadline = time.monotonic() + 60
        while len(server.answered) < 60 and time.monotonic() < deadline:
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)  # its worker ends too
        process.communicate()
        self.process(server)
        self.assertEqual(len(server.answered), 200)
        self.assertLessEqual(sum(server.answered.values()) - 200, 2)

    def test_a_killed_worker_is_replaced(self):
        server = self.server()
        server.hold(9)
        process = self.start_until_kept(server, 9)
        children = (
            pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        )
        worker = [
            int(pid)
            for pid in children
            if b"process-worker" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        self.assertEqual(len(worker), 1)
        answered = set(server.answered)
        asked = len(server.bodies)
        os.kill(worker[0], signal.SIGKILL)
        server.hold(None)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertFalse(answered & {server.prompt_of(body) for body in server.bodies[asked:]})
        self.assertEqual(len(self.rows()), 24)


class RefusalTest(EngineCase):
    def test_a_key_reaches_the_server_and_nothing_else(self):
        server = self.server(key=KEY)
        said = self.process(
            server,
            "out.jsonl",
            "--limit",
            2,
            "--debug",
            CONVOY_ENGINE_KEY=KEY,
            OPENAI_API_KEY="other",
        )
        self.process(server, "other.jsonl", "--limit", 2, OPENAI_API_KEY=KEY)
        wrong = self.process(server, "no.jsonl", "--limit", 2, code=2, OPENAI_API_KEY=KEY + "x")
        self.assertIn(f"{server.url} answers with status 401: wrong key Bearer ***", wrong)
        self.assertIn("CONVOY_ENGINE_KEY", wrong)
        self.assertNotIn(KEY, said + wrong)
        for path in self.home.rglob("*"):
            if path.is_file():
                self.assertNotIn(KEY.encode(), path.read_bytes(), path)
        for address in (
            f"http://me:{KEY}@127.0.0.1:1/v1",
            f"http://127.0.0.1:1/v1?api-key={KEY}",
            f"me:{KEY}@host/v1",
        ):
            said = self.process(address, code=2)
            self.assertIn("--engine", said)
            self.assertNotIn(KEY, said)

    def test_a_run_that_cannot_succeed_ends_with_the_servers_words(self):
        server = self.server(model="other")
        said = self.process(server, code=2)
        self.assertIn(f"{server.url} has no model `m`; it has other", said)
        self.assertIn("--engine-model other", said)
        server = self.server(lambda number, _: (400, "top_k is not supported"))
        said = self.process(server, code=2)
        self.assertIn(f"{server.url} answers with status 400: top_k is not supported", said)
        self.assertLess(len(server.bodies), 100)
        server = self.server(lambda number, _: (404, "no such path"))
        gone = self.process(server, code=2)
        self.assertIn("status 404: no such path", gone)
        self.assertNotIn("generated again", said + gone)
        gone = TextServer()
        gone.close()
        self.assertIn("no server of --engine answers", self.process(gone, code=69))

    def test_schemas_are_asked_for_and_a_refusal_of_one_ends_the_run(self):
        server = self.server()
        self.process(server, "out.jsonl", "--evaluate-schema", "scores")
        forms = [body["response_format"] for body in server.bodies if "response_format" in body]
        self.assertEqual(len(forms), 24)
        schema = forms[0]["json_schema"]["schema"]
        self.assertEqual(
            (forms[0]["type"], forms[0]["json_schema"]["strict"]), ("json_schema", True)
        )
        self.assertIn("correctness", schema["required"])
        words = "response_format is not supported"
        server = self.server(lambda _, body: (400, words) if "response_format" in body else None)
        said = self.process(server, "refused.jsonl", "--evaluate-schema", "scores", code=2)
        self.assertIn(f"{server.url} answers with status 400: {words}", said)

    def test_a_text_that_the_server_refuses_fails_alone(self):
        long = "This model's maximum context length is 64 tokens"
        for name, message in (("long", long), ("odd", "the prompt is odd")):
            server = self.server(
                lambda number, body: (
                    (400, message) if "7 + 7" in TextServer.prompt_of(body) and number > 3 else None
                )
            )
            self.process(server, f"{name}.jsonl", "--stages", "generate", "--max-requests", 2)
            states = [row["state"] for row in self.rows(f"{name}.jsonl")]
            self.assertEqual(states.count("engine_error"), 1)
            self.assertIn(
                f"status 400: {message}", self.rows(f"{name}.jsonl")[7]["metadata"]["error"]
            )

    def test_settings_of_loaded_models_are_refused(self):
        for flag, value, path in (
            ("--weights", "int8", "engine.weights"),
            ("--activations", "int8", "engine.activations"),
            ("--adapter", "d", "model.adapter"),
            ("--dtype", "bf16", "model.dtype"),
            ("--devices", "cpu", "workers.devices"),
        ):
            said = self.process("http://127.0.0.1:1/v1", "out.jsonl", flag, value, code=2)
            self.assertIn(f"{path} ({flag}) has no effect with --engine", said)
        said = self.process("http://127.0.0.1:1/v1", "out.jsonl", "--deterministic", code=2)
        self.assertIn("engine.deterministic", said)
        self.assertIn("a server's texts depend on what else it computes", said)
        said = self.run_convoy("process", "--engine-model", "m", "--data", "rows.jsonl", code=2)
        self.assertIn("remote.engine_model (--engine-model) has no effect without --engine", said)


class AnswersTest(EngineCase):
    """Tests `convoy generate` and `convoy eval --generate` with servers."""

    def generate(self, server, *more, code=0):
        return self.run_convoy(
            "generate",
            "--engine",
            server.url,
            "--engine-model",
            "m",
            "--prompts",
            "rows.jsonl",
            *more,
            code=code,
        )

    def write_prompts(self):
        rows = [{"prompt": f"{n} + {n} ="} for n in range(12)]
        rows.append(
            {
                "messages": [
                    {"role": "user", "content": "1 + 1 = ?"},
                    {"role": "assistant", "content": "2"},
                ]
            }
        )
        (self.home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def test_prompts_are_answered_in_order_in_spite_of_faults(self):
        self.write_prompts()
        server = self.server(one_in_five)
        self.generate(server, "--output", "answers.jsonl", "--n", 2, "--temperature", 0.5)
        rows = self.rows("answers.jsonl")
        self.assertEqual(
            [(row["index"], row["sample"]) for row in rows],
            [(n, s) for n in range(13) for s in range(2)],
        )
        self.assertEqual(
            rows[6],
            {
                "index": 3,
                "sample": 0,
                "prompt_tokens": 7,
                "completion": TextServer.text_of("3 + 3 ="),
                "finish_reason": "stop",
            },
        )
        self.assertEqual(set(server.answered.values()), {2})
        chats = [body["messages"] for body in server.bodies if "messages" in body]
        self.assertEqual(chats[0], [{"role": "user", "content": "1 + 1 = ?"}])
        self.assertEqual(len({body["seed"] for body in server.bodies}), 26)
        self.assertFalse((self.home / "answers.jsonl.partial").exists())
        printed = self.generate(self.server(), "--quiet").splitlines()
        self.assertEqual([json.loads(line)["index"] for line in printed], list(range(13)))

    def test_a_prompt_without_an_answer_costs_the_others_nothing(self):
        self.write_prompts()
        server = self.server(
            lambda _, body: (400, "flagged") if "3 + 3" in TextServer.prompt_of(body) else None
        )
        said = self.generate(server, "--output", "answers.jsonl", code=10)
        self.assertIn(
            "prompt 3 has no answer: the server refuses it with status 400: flagged", said
        )
        self.assertIn(
            "12 answers kept in answers.jsonl.partial and written to answers.jsonl; the same command asks for the others alone",
            said,
        )
        self.assertEqual(
            [row["index"] for row in self.rows("answers.jsonl")], [n for n in range(13) if n != 3]
        )
        asked = len(server.bodies)
        self.generate(
            server, "--output", "answers.jsonl", code=2
        )  # only the missing text is requested
        self.assertEqual(len(server.bodies), asked + 1)
        printed = self.generate(server, "--quiet", code=10)
        self.assertEqual(printed.count('"completion"'), 12)

    def test_every_prompt_without_an_answer_is_named(self):
        self.write_prompts()
        bad = ("3 + 3", "5 + 5", "7 + 7", "9 + 9")
        server = self.server(
            lambda _, body: (
                (400, "too odd")
                if any(word in TextServer.prompt_of(body) for word in bad)
                else None
            )
        )
        said = self.generate(
            server, "--output", "answers.jsonl", "--n", 2, "--temperature", 0.5, code=10
        )
        refused = "the server refuses it with status 400: too odd"
        self.assertIn(
            f"4 prompts have no answer: 3, 5, 7, 9; 3: {refused}; 5: {refused}; 7: {refused}; 8 answers are missing",
            said,
        )
        self.assertEqual(len(self.rows("answers.jsonl")), 18)

    def test_a_prompt_that_breaks_its_connection_fails_soon(self):
        self.write_prompts()
        server = self.server(
            lambda _, body: "drop" if "3 + 3" in TextServer.prompt_of(body) else None
        )
        begin = time.monotonic()
        said = self.generate(server, "--output", "answers.jsonl", code=10)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertIn("prompt 3 has no answer: ", said)
        self.assertIn("the server answers otherwise", said)
        self.assertEqual(len(self.rows("answers.jsonl")), 12)
        self.assertLess(sum("3 + 3" in TextServer.prompt_of(body) for body in server.bodies), 13)

    def test_the_word_of_a_filter_is_kept(self):
        self.write_prompts()
        server = self.server(
            lambda _, body: (
                lambda answer: answer["choices"][0].update(finish_reason="content_filter")
            )
        )
        self.generate(server, "--output", "answers.jsonl")
        self.assertEqual(
            {row["finish_reason"] for row in self.rows("answers.jsonl")}, {"content_filter"}
        )

    def test_the_sampling_that_is_sent_is_said(self):
        (self.home / "model").mkdir()
        (self.home / "model" / "generation_config.json").write_text(
            '{"temperature": 0.7, "top_k": 20}'
        )
        self.write_rows(2)
        server = self.server()
        said = self.process(server, "told.jsonl", "--model", "model", "--stages", "generate")
        self.assertIn(
            "sampling: temperature 0.7, top_k 20 by model/generation_config.json; max_new_tokens 4096 by default; these are sent",
            said,
        )
        self.assertEqual((server.bodies[0]["temperature"], server.bodies[0]["top_k"]), (0.7, 20))
        said = self.process(server, "silent.jsonl", "--stages", "generate")
        self.assertIn("by default; these are sent, no default of the servers: --model DIR", said)

    def test_a_typed_prompt_is_a_chat_unless_said_otherwise(self):
        server = self.server()
        words = [
            "generate",
            "--engine",
            server.url,
            "--engine-model",
            "m",
            "--quiet",
            "--prompt",
            "1 + 1 =",
        ]
        self.assertEqual(
            self.run_convoy(*words, "--chat", "off"), TextServer.text_of("1 + 1 =") + "\n"
        )
        self.run_convoy(*words, "--system-prompt", "Be brief.")
        self.assertEqual(
            [message["role"] for message in server.bodies[1]["messages"]], ["system", "user"]
        )

    def test_answers_that_are_finished_survive_a_kill(self):
        self.write_prompts()
        server = self.server()
        server.hold(5)
        process = self.start(
            "generate",
            "--engine",
            server.url,
            "--engine-model",
            "m",
            "--prompts",
            "rows.jsonl",
            "--output",
            "answers.jsonl",
        )
        self.wait_for_lines(self.home / "answers.jsonl.partial" / "rank-0-0", 6)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        answered = set(server.answered)
        self.assertEqual(len(answered), 5)
        other = self.server()
        self.generate(other, "--output", "answers.jsonl")
        self.assertFalse(answered & set(other.answered))
        self.assertEqual(len(self.rows("answers.jsonl")), 13)

    def wait_for_lines(self, path, count):
        deadline = time.monotonic() + 60
        while (
            not path.exists() or path.read_bytes().count(b"\n") < count
        ) and time.monotonic() < deadline:
            time.sleep(0.02)

    def test_a_signal_ends_an_output_that_keeps_nothing(self):
        self.write_prompts()
        server = self.server()
        server.hold(1)
        process = self.start(
            "generate",
            "--engine",
            server.url,
            "--engine-model",
            "m",
            "--prompts",
            "rows.jsonl",
            "--output",
            "/dev/stdout",
        )
        deadline = time.monotonic() + 60
        while not server.answered and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        self.assertEqual(process.returncode, -signal.SIGINT)

    def test_paid_answers_are_kept_until_the_samples_are_written(self):
        rows = [{"prompt": f"{n} + {n} =", "completion": "?"} for n in range(8)]
        (self.home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

        def words(server):
            return [
                "eval",
                "--engine",
                server.url,
                "--engine-model",
                "m",
                "--data",
                "rows.jsonl",
                "--generate",
                "--output",
                "results",
            ]

        server = self.server()
        server.hold(7)
        process = self.start(*words(server))
        samples = self.home / "results" / "samples.jsonl"
        self.wait_for_lines(self.home / "results" / "samples.jsonl.partial" / "rank-0-0", 8)
        samples.mkdir()  # a folder, so that the samples cannot be written
        server.hold(None)
        process.communicate(timeout=120)
        self.assertNotEqual(process.returncode, 0)
        samples.rmdir()
        other = self.server()
        self.run_convoy(*words(other))
        self.assertFalse(other.answered)
        self.assertEqual(len(self.rows("results/samples.jsonl")), 8)

    def test_eval_measures_answers(self):
        rows = [
            {
                "prompt": f"{n} + {n} =",
                "completion": TextServer.text_of(f"{n} + {n} =") if n % 2 else "?",
            }
            for n in range(8)
        ]
        (self.home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        server = self.server(one_in_five)
        words = ["eval", "--engine", server.url, "--engine-model", "m", "--data", "rows.jsonl"]
        figures = self.run_convoy(
            *words,
            "--generate",
            "--output",
            "results",
            "--metrics",
            "exact_match",
            "--json",
            "--quiet",
        )
        self.assertEqual(json.loads(figures), {"count": 8, "exact_match": 0.5})
        self.assertEqual(server.bodies[0]["temperature"], 0.2)
        saved = self.rows("results/samples.jsonl")
        self.assertEqual(
            saved[3],
            {"input": "3 + 3 =", "pred": rows[3]["completion"], "ref": rows[3]["completion"]},
        )
        self.assertNotIn("lists of messages", figures)
        self.assertIn("add --generate", self.run_convoy(*words, code=2))

    def test_flags_of_loaded_models_are_refused(self):
        server = self.server()
        for flag, value in (
            ("--adapter", "d"),
            ("--weights", "int8"),
            ("--kv-blocks", 9),
            ("--ranks", 2),
            ("--devices", "cpu"),
        ):
            said = self.generate(server, flag, value, code=2)
            self.assertIn(f"{flag} has no effect with --engine", said)
        for flag in ("--deterministic", "--logprobs"):
            self.assertIn(
                f"{flag} has no effect with --engine", self.generate(server, flag, code=2)
            )
        said = self.run_convoy(
            "generate", "--model", "x", "--engine-timeout", 5, "--prompts", "rows.jsonl", code=2
        )
        self.assertIn("--engine-timeout has no effect without --engine", said)


class ServeTest(EngineCase):
    def setUp(self):
        super().setUp()
        if not CONVOY.with_name("convoy-worker").exists():
            self.skipTest("there is no convoy-worker")
        self.examples = (
            pathlib.Path(os.environ.get("CONVOY_SOURCE_DIR", ".")).absolute() / "examples"
        )

    def serve(self):
        server = self.start(
            "serve", "--model", self.examples / "tally-3m", "--served-name", "m", "--port", 0
        )

        def end():
            server.terminate()
            server.communicate(timeout=60)

        self.addCleanup(end)
        for line in server.stderr:
            if "listening on " in line:
                return line.split("listening on ")[1].split()[0]
        self.fail("convoy serve has not started")

    def test_convoy_serve_gives_the_rows_of_the_model_itself(self):
        (self.home / "question.txt").write_text("Question: {{ problem }}\nAnswer:\n")
        same = [
            "--data",
            self.examples / "sums" / "test.jsonl",
            "--limit",
            40,
            "--plain",
            "--generate-prompt",
            "question.txt",
            "--temperature",
            0,
            "--max-tokens",
            100,
            "--stages",
            "generate,verify",
        ]
        self.run_convoy(
            "process", "--model", self.examples / "tally-3m", "--output", "local.jsonl", *same
        )
        self.run_convoy(
            "process",
            "--engine",
            self.serve(),
            "--engine-model",
            "m",
            "--output",
            "served.jsonl",
            *same,
        )
        self.assertEqual(self.rows("local.jsonl"), self.rows("served.jsonl"))
        self.assertIn("yes", {row["verified"] for row in self.rows("served.jsonl")})

    def test_the_inputs_of_its_metrics_are_those_of_the_model_itself(self):
        rows = [
            {
                "messages": [
                    {"role": "user", "content": f"What is {n} + {n}?"},
                    {"role": "assistant", "content": str(2 * n)},
                ]
            }
            for n in range(4)
        ]
        (self.home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        same = ["eval", "--data", "rows.jsonl", "--generate", "--max-new-tokens", 20, "--json"]
        url = self.serve()
        local = self.run_convoy(*same, "--model", self.examples / "tally-3m", "--output", "local")
        served = self.run_convoy(
            *same,
            "--model",
            self.examples / "tally-3m",
            "--engine",
            url,
            "--engine-model",
            "m",
            "--output",
            "served",
        )
        self.assertEqual(self.rows("local/samples.jsonl"), self.rows("served/samples.jsonl"))
        self.assertEqual(
            json.loads((self.home / "local/metrics.json").read_text())["sari"],
            json.loads((self.home / "served/metrics.json").read_text())["sari"],
        )
        self.assertNotIn("lists of messages", served, local)
        self.assertIn(
            "lists of messages", self.run_convoy(*same, "--engine", url, "--engine-model", "m")
        )

    def test_its_answers_are_those_of_generate(self):
        lines = (self.examples / "sums" / "test.jsonl").read_text().splitlines()[:8]
        prompts = [
            {"prompt": f"Question: {json.loads(line).get('question', line)}\nAnswer:"}
            for line in lines
        ]
        (self.home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in prompts))
        same = ["--prompts", "rows.jsonl", "--greedy", "--max-new-tokens", 60]
        self.run_convoy(
            "generate", "--model", self.examples / "tally-3m", "--output", "local.jsonl", *same
        )
        self.run_convoy(
            "generate",
            "--engine",
            self.serve(),
            "--engine-model",
            "m",
            "--output",
            "served.jsonl",
            *same,
        )
        local = [
            {name: value for name, value in row.items() if name != "token_ids"}
            for row in self.rows("local.jsonl")
        ]
        self.assertEqual(local, self.rows("served.jsonl"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
