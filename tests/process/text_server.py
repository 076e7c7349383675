# SPDX-License-Identifier: Apache-2.0
"""A server of OpenAI's HTTP API whose texts depend only on their prompts, with planned faults.

It counts the requests for each prompt and the whole answers that it gave, and can hold requests back.
"""

import collections
import http.server
import json
import socket
import threading
import time


class TextServer:
    """`fault(number, body)` returns the fault for a request, numbered from 0: None, "drop", seconds of delay, "garble",
    "half", "html", "empty", "no choices", a status with a message, or a function that changes the answer."""

    def __init__(self, fault=lambda number, body: None, key=None, model="m", port=0):
        self.fault, self.key, self.model = fault, key, model
        self.lock = threading.Condition()
        self.bodies = []  # bodies of all requests for a text
        self.paths = []
        self.answered = collections.Counter()  # number of whole answers, by prompt
        self.most_at_once = self.at_once = 0
        self.connections = 0
        self.answers_left = None  # answers until requests are held; None: no limit
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with server.lock:
                    server.connections += 1

            def log_message(self, *words):
                pass

            def do_GET(self):
                if server.refuses(self):
                    return
                server.respond(
                    self, 200, {"object": "list", "data": [{"id": server.model, "object": "model"}]}
                )

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if server.refuses(self):
                    return
                with server.lock:
                    number = len(server.bodies)
                    server.bodies.append(body)
                    server.paths.append(self.path)
                    server.at_once += 1
                    server.most_at_once = max(server.most_at_once, server.at_once)
                try:
                    server.answer(self, number, body)
                finally:
                    with server.lock:
                        server.at_once -= 1

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request, address):
                pass  # the client has closed its connection

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.hold(None)
        self.server.shutdown()
        self.server.server_close()

    def hold(self, answers):
        """Gives `answers` more answers and holds all later requests. None: answers all requests."""
        with self.lock:
            self.answers_left = answers
            self.lock.notify_all()

    def refuses(self, handler):
        if self.key is None or handler.headers.get("Authorization") == f"Bearer {self.key}":
            return False
        self.respond(
            handler,
            401,
            {"error": {"message": f"wrong key {handler.headers.get('Authorization')}"}},
        )
        return True

    @staticmethod
    def respond(handler, status, answer, headers=()):
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)
        handler.wfile.flush()

    @staticmethod
    def prompt_of(body):
        return body["prompt"] if "prompt" in body else json.dumps(body["messages"])

    @staticmethod
    def text_of(prompt):
        return f"The answer is {sum(prompt.encode()) % 97}."

    def whole_answer(self, body):
        text = self.text_of(self.prompt_of(body))
        choice = {"index": 0, "finish_reason": "stop"}
        if "prompt" in body:
            choice["text"] = text
        else:
            choice["message"] = {"role": "assistant", "content": text}
        return {
            "object": "x",
            "choices": [choice],
            "usage": {"prompt_tokens": 7, "completion_tokens": 5},
        }

    def answer(self, handler, number, body):
        fault = self.fault(number, body)
        answer = self.whole_answer(body)
        if fault == "drop":
            handler.close_connection = True
            return
        if fault == "half":
            data = json.dumps(answer).encode()
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data[: len(data) // 2])
            handler.close_connection = True
            return
        bad = {
            "garble": b'{"choices": [{"text": "The an',
            "html": b"<html><body>Bad gateway</body></html>",
            "empty": b"",
            "no choices": {"choices": []},
        }
        if fault in bad:
            self.respond(handler, 200, bad[fault])
            return
        if isinstance(fault, tuple):
            status, message, *headers = fault
            self.respond(handler, status, {"error": {"message": message}}, headers)
            return
        if callable(fault):
            fault(answer)
        if isinstance(fault, float):
            time.sleep(fault)
        with self.lock:
            self.lock.wait_for(lambda: self.answers_left is None or self.answers_left > 0)
            if self.answers_left is not None:
                self.answers_left -= 1
        # The answer is counted before it is sent, because its client may read the count at once.
        self.count_answer(body, 1)
        try:
            self.respond(handler, 200, answer)
        except OSError:
            self.count_answer(body, -1)
            raise

    def count_answer(self, body, by):
        with self.lock:
            self.answered[self.prompt_of(body)] += by
            self.answered += collections.Counter()  # drops prompts whose count is 0
            self.lock.notify_all()
