# SPDX-License-Identifier: Apache-2.0
"""The part of a server of Weights & Biases that `wandb sync` needs. `WandbServer.runs` has what was uploaded, by the run's id:
`project`, `name`, `config`, `history` (rows), `summary`, `files` (names), `exit_code`."""

import gzip
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub = None

    def log_message(self, *_):
        pass

    def body(self):
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    def tell(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.tell({})

    def do_PUT(self):
        self.body()
        self.tell({})

    def do_POST(self):
        body = json.loads(self.body() or b"{}")
        with self.hub.lock:
            if self.path == "/graphql":
                return self.tell({"data": self.answer(body["operationName"], body["variables"])})
            if found := re.fullmatch(r"/files/me/[^/]+/(\w+)/file_stream", self.path):
                self.take_stream(self.hub.runs[found[1]], body)
        self.tell({})

    def answer(self, operation, variables):
        if operation == "UpsertBucket":
            run = self.hub.runs.setdefault(variables["name"], {"history": [], "files": []})
            for name, key in (("project", "project"), ("displayName", "name")):
                run[key] = variables.get(name) or run.get(key)
            if variables.get("config"):
                run["config"] = json.loads(variables["config"])
            bucket = {
                "id": "bucket",
                "name": variables["name"],
                "displayName": run["name"],
                "config": "{}",
                "historyLineCount": 0,
                "project": {
                    "id": "project",
                    "name": run["project"],
                    "entity": {"id": "e", "name": "me"},
                },
            }
            return {"upsertBucket": {"bucket": bucket, "inserted": True}}
        if operation == "CreateRunFiles":
            names = variables["files"]
            self.hub.runs[variables["run"]]["files"] += names
            files = [{"name": name, "uploadUrl": f"{self.hub.url}/put/{name}"} for name in names]
            return {"createRunFiles": {"runID": "bucket", "uploadHeaders": [], "files": files}}
        if operation == "Viewer":
            return {"viewer": {"id": "u", "entity": "me", "username": "me", "flags": "{}"}}
        return {}

    def take_stream(self, run, body):
        for name, piece in body.get("files", {}).items():
            lines = [json.loads(line) for line in piece["content"]]
            if name == "wandb-history.jsonl":
                run["history"][piece["offset"] :] = lines
            if name == "wandb-summary.json":
                run["summary"] = lines[-1]
        if body.get("complete"):
            run["exit_code"] = body["exitcode"]


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # wandb resets the connections that it keeps


class WandbServer:
    """Serves in threads of its own until close()."""

    def __init__(self):
        self.runs = {}
        self.lock = threading.Lock()
        self.server = QuietServer(("127.0.0.1", 0), type("BoundHandler", (Handler,), {"hub": self}))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
