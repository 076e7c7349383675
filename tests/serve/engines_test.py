"""Tests the engine processes of `convoy serve`: requests are divided among them, and killed engines are replaced. engines_test.py CONVOY MODEL."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

CONVOY, MODEL = sys.argv.pop(1), sys.argv.pop(1)
PROMPT = "Question: 12 + 7 = ?\nAnswer:"
JSON = {"Content-Type": "application/json"}
LONG = dict(prompt=PROMPT, max_tokens=400, temperature=1)
LONGER = dict(LONG, n=100)  # runs long with --batch-size 1


class Server:
    def __init__(self, *flags):
        command = [
            CONVOY,
            "serve",
            "--model",
            MODEL,
            "--served-name",
            "tally",
            "--port",
            "0",
            *flags,
        ]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"listening on http://(\S+):(\d+)/v1", line):
                self.host, self.port = found.group(1).strip("[]"), int(found.group(2))
                break
        else:
            raise AssertionError("".join(self.lines))
        threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True).start()

    def engines(self):
        found = (
            pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
            .read_text()
            .split()
        )
        return [int(pid) for pid in found]

    def request(self, method, path, body=None, headers=JSON):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=1200)
        with contextlib.closing(connection):
            connection.request(
                method, path, json.dumps(body) if body is not None else None, headers
            )
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers

    def complete(self, **given):
        return self.request(
            "POST",
            "/v1/completions",
            {"model": "tally", "prompt": PROMPT, "temperature": 0, "max_tokens": 40, **given},
        )

    def text(self, **given):
        status, body, _ = self.complete(**given)
        assert status == 200, body
        return json.loads(body)["choices"][0]["text"]


@contextlib.contextmanager
def served(*flags):
    server = Server(*flags)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


def wait_until(is_true, seconds=1200):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := is_true():
            return found
        time.sleep(0.02)
    raise AssertionError("it never came")


def at_once(*calls):
    results = [None] * len(calls)

    def run(place):
        results[place] = calls[place]()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    return threads, results


class Engines(unittest.TestCase):
    def test_a_request_whose_engine_is_killed_is_answered_by_another(self):
        with served("--engines", "2") as server:
            alone = server.text(seed=3, **LONG)
            threads, answers = at_once(*[lambda: server.complete(seed=3, **LONG)] * 16)
            time.sleep(0.1)
            os.kill(server.engines()[0], signal.SIGKILL)
            for thread in threads:
                thread.join()
            for status, body, _ in answers:
                self.assertEqual(status, 200, body)
                self.assertEqual(json.loads(body)["choices"][0]["text"], alone)
            wait_until(lambda: len(server.engines()) == 2)
            wait_until(
                lambda: [line for line in server.lines if "SIGKILL" in line and "replaced" in line]
            )

    def test_a_request_that_loses_two_engines_fails_and_the_server_goes_on(self):
        with served("--engines", "1", "--batch-size", "1") as server:
            threads, answers = at_once(lambda: server.complete(**LONGER))
            for _ in range(2):
                engine = wait_until(server.engines)[0]
                wait_until(lambda: server.request("GET", "/health")[0] == 200)
                time.sleep(0.2)
                os.kill(engine, signal.SIGKILL)
                wait_until(lambda: server.engines() not in ([], [engine]))
            threads[0].join()
            status, body, headers = answers[0]
            self.assertEqual((status, headers["retry-after"]), (503, "1"), body)
            self.assertIn("the engine ended", body)
            self.assertTrue(server.text())

    def test_a_stream_that_loses_its_engine_ends_with_an_error(self):
        with served("--engines", "1", "--batch-size", "1") as server:
            connection = http.client.HTTPConnection(server.host, server.port, timeout=1200)
            with contextlib.closing(connection):
                connection.request(
                    "POST",
                    "/v1/completions",
                    json.dumps({"model": "tally", "stream": True, **LONGER}),
                    JSON,
                )
                answer = connection.getresponse()
                answer.readline()
                os.kill(server.engines()[0], signal.SIGKILL)
                last = answer.read().decode().strip().split("\n\n")[-1]
            self.assertIn("error", json.loads(last.removeprefix("data: ")))
            self.assertTrue(server.text(), "requests wait for the new engine")

    def test_while_no_engine_is_ready_health_says_so(self):
        with served("--engines", "1") as server:
            self.assertEqual(server.request("GET", "/health")[0], 200)
            os.kill(server.engines()[0], signal.SIGKILL)
            wait_until(lambda: server.request("GET", "/health")[0] == 503)
            wait_until(lambda: server.request("GET", "/health")[0] == 200)

    def test_an_engine_that_dies_while_it_loads_is_started_again(self):
        with served("--engines", "1") as server:
            killed = []
            for _ in range(3):
                engine = wait_until(lambda: [pid for pid in server.engines() if pid not in killed])[
                    0
                ]
                os.kill(engine, signal.SIGKILL)
                killed.append(engine)
            self.assertTrue(server.text(), "the request waits for it")
            self.assertTrue(any("replaced in 1 s" in line for line in server.lines), server.lines)
            self.assertIn("convoy:engine_deaths_total 3\n", server.request("GET", "/metrics")[1])

    def test_a_program_that_is_replaced_does_not_end_the_server(self):
        with tempfile.TemporaryDirectory() as folder:
            worker = pathlib.Path(folder, "worker")
            worker.write_text(f'#!/bin/sh\nexec {pathlib.Path(CONVOY).absolute()}-worker "$@"\n')
            worker.chmod(0o755)
            with (
                unittest.mock.patch.dict(os.environ, CONVOY_WORKER=str(worker)),
                served("--engines", "1") as server,
            ):
                worker.chmod(0o644)
                os.kill(server.engines()[0], signal.SIGKILL)
                wait_until(lambda: any("could not be started" in line for line in server.lines))
                worker.chmod(0o755)
                self.assertTrue(server.text())

    def test_a_stopped_engine_does_not_hold_up_the_other(self):
        with served("--engines", "2") as server:
            stopped = server.engines()[0]
            os.kill(stopped, signal.SIGSTOP)
            long = "12 + 7 = " * 20
            threads, answers = at_once(
                *[
                    lambda place=place: server.complete(prompt=f"{place} {long}")
                    for place in range(8)
                ]
            )
            wait_until(lambda: sum(answer is not None for answer in answers) >= 4)
            os.kill(stopped, signal.SIGCONT)
            for thread in threads:
                thread.join()
            self.assertEqual({answer[0] for answer in answers}, {200})

    def test_a_short_request_does_not_wait_for_long_ones(self):
        with served("--engines", "1") as server:
            engine = server.engines()[0]
            os.kill(engine, signal.SIGSTOP)  # stopped until all requests have arrived
            long_threads, long_answers = at_once(
                *[lambda: server.complete(prompt="a" * 4_000_000)] * 6
            )
            time.sleep(1)
            short_threads, short_answers = at_once(
                lambda: server.request("POST", "/tokenize", {"model": "tally", "prompt": PROMPT})
            )
            time.sleep(0.5)
            os.kill(engine, signal.SIGCONT)
            short_threads[0].join()
            self.assertIn(None, long_answers)
            self.assertEqual(short_answers[0][0], 200, short_answers)
            for thread in long_threads:
                thread.join()
            self.assertEqual({answer[0] for answer in long_answers}, {400})

    def test_a_huge_request_does_not_silence_its_engine(self):
        with served("--engines", "1", "--engine-timeout", "1") as server:
            status, body, _ = server.complete(prompt="a" * 4_000_000)
            self.assertEqual(
                (status, json.loads(body)["error"]["code"]), (400, "context_length_exceeded")
            )
            status, body, _ = server.complete(
                logit_bias={str(number): 1 for number in range(1_000_000)}
            )
            self.assertEqual(status, 400)
            self.assertIn("may have 1024 tokens, found 1000000", body)
            self.assertEqual([line for line in server.lines if "gave no sign" in line], [])

    def test_an_engine_that_hangs_is_replaced_and_its_requests_are_tried_again(self):
        with served("--engines", "2", "--engine-timeout", "5") as server:
            hanging = server.engines()[0]
            os.kill(hanging, signal.SIGSTOP)
            threads, answers = at_once(
                *[
                    lambda place=place: server.complete(prompt=f"{place} " + "12 + 7 = " * 20)
                    for place in range(8)
                ]
            )
            for thread in threads:
                thread.join()
            self.assertEqual({answer[0] for answer in answers}, {200})
            wait_until(lambda: hanging not in server.engines() and len(server.engines()) == 2)
            wait_until(
                lambda: [
                    line
                    for line in server.lines
                    if "gave no sign for 5 s (--engine-timeout)" in line
                ]
            )

    def test_a_stream_whose_engine_hangs_ends_with_an_error(self):
        with served("--engines", "1", "--batch-size", "1", "--engine-timeout", "5") as server:
            with contextlib.closing(
                http.client.HTTPConnection(server.host, server.port, timeout=1200)
            ) as connection:
                connection.request(
                    "POST",
                    "/v1/completions",
                    json.dumps({"model": "tally", "stream": True, **LONGER}),
                    JSON,
                )
                answer = connection.getresponse()
                answer.readline()
                os.kill(server.engines()[0], signal.SIGSTOP)
                last = answer.read().decode().strip().split("\n\n")[-1]
            self.assertIn("error", json.loads(last.removeprefix("data: ")))
            self.assertTrue(server.text())
            self.assertIn("convoy:lost_requests_total 1\n", server.request("GET", "/metrics")[1])

    def test_an_engine_that_cannot_begin_gives_its_error(self):
        done = subprocess.run(
            [
                CONVOY,
                "serve",
                "--model",
                MODEL,
                "--adapter",
                "a=/nowhere",
                "--port",
                "0",
                "--engines",
                "2",
            ],
            capture_output=True,
            text=True,
            timeout=1200,
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/nowhere", done.stderr)
        self.assertNotIn("listening", done.stderr)

    def test_it_ends_with_its_engines(self):
        for sent in (signal.SIGTERM, signal.SIGKILL):
            with served("--engines", "2") as server:
                engines = server.engines()
                server.process.send_signal(sent)
                server.process.wait(1200)
                wait_until(
                    lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in engines)
                )

    def test_listens_on_this_machine_only(self):
        with served() as server:
            self.assertEqual(listening(server.process.pid), {("0100007F", server.port)})
        with served("--host", "::1") as server:
            self.assertEqual(server.host, "::1")
            self.assertTrue(server.text())

    def test_pages_of_other_sites_cannot_use_it(self):
        with served() as server:
            for headers, status in (
                ({"Content-Type": "text/plain"}, 415),
                ({**JSON, "Host": "evil.example"}, 403),
                ({**JSON, "Host": f"localhost:{server.port}"}, 200),
            ):
                body = {"model": "tally", "prompt": PROMPT, "max_tokens": 1}
                self.assertEqual(
                    server.request("POST", "/v1/completions", body, headers)[0], status, headers
                )
            self.assertEqual(server.request("HEAD", "/health")[:2], (200, ""))

    def test_a_request_that_never_fits_is_no_reason_to_try_again(self):
        with served("--batch-size", "2", "--max-waiting", "4") as server:
            status, body, _ = server.complete(n=7)
            self.assertEqual(status, 400)
            self.assertIn("6 answers", body)

    def test_a_second_signal_ends_answers_with_an_error(self):
        with served("--batch-size", "1") as server:
            threads, answers = at_once(lambda: server.complete(**LONGER))
            time.sleep(0.5)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            server.process.send_signal(signal.SIGTERM)
            threads[0].join()
            self.assertEqual(answers[0][0], 503, answers)
            self.assertEqual(server.process.wait(1200), 0)

    def test_errors_of_http_have_the_form_of_the_api(self):
        with served() as server:
            post = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            for request, status in (
                (post + "Content-Length: 17000000\r\nExpect: 100-continue\r\n\r\n", 413),
                ("nothing\r\n\r\n", 400),
                ("GET /" + "a" * 70000, 414),
                ("GET / HTTP/1.1\r\nA: " + "a" * 70000, 431),
            ):
                with socket.create_connection((server.host, server.port)) as client:
                    client.sendall(request.encode())
                    answer = http.client.HTTPResponse(client)
                    answer.begin()
                    error = json.loads(answer.read())["error"]
                self.assertEqual(
                    (answer.status, answer.headers["content-type"], error["type"]),
                    (status, "application/json", "invalid_request_error"),
                )

    def test_a_client_that_ends_its_sending_is_answered(self):
        with served() as server, socket.create_connection((server.host, server.port)) as client:
            body = json.dumps({"model": "tally", **LONG})
            client.sendall(
                f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            client.shutdown(socket.SHUT_WR)
            answer = http.client.HTTPResponse(client)
            answer.begin()
            self.assertEqual(answer.status, 200)
            self.assertTrue(json.loads(answer.read())["choices"][0]["text"])

    def test_a_body_that_is_nested_too_deeply_is_refused(self):
        with served() as server:
            with contextlib.closing(
                http.client.HTTPConnection(server.host, server.port)
            ) as connection:
                connection.request(
                    "POST", "/v1/completions", '{"model": "tally", "prompt": ' + "[" * 500000, JSON
                )
                self.assertEqual(connection.getresponse().status, 400)
            self.assertTrue(server.text())


def listening(pid):
    """(address as the kernel writes it, port) for each listening socket of a process."""
    inodes = set()
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if found := re.match(r"socket:\[(\d+)\]", os.readlink(link)):
                inodes.add(found.group(1))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, port = fields[1].split(":")
                found.add((address, int(port, 16)))
    return found


if __name__ == "__main__":
    unittest.main(verbosity=1)
