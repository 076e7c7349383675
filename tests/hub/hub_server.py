# SPDX-License-Identifier: Apache-2.0
"""A small Hugging Face hub on this machine, for tests: the protocol that downloads use, and faults on order.

`Hub` has repositories in memory. Large files (LFS) are sent on to a second host, the CDN, as the real hub does. Each
request is noted in `Hub.requests`. A fault is a dict: `match` (part of the path), `method`, `times` (how often; -1 = always),
and the fault itself: `status` (with `headers`), `cut` (bytes after which the connection ends), `stall` (bytes after
which nothing more is sent), `spoil` (one byte is changed), `no_range` (Range is ignored), `pace` (seconds between pieces).
"""

import hashlib
import json
import re
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 1 << 14


def git_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Repository:
    def __init__(self, files, kind="models", lfs=(), gated=False, private=False, branches=None):
        self.files = files
        self.kind = kind
        self.lfs = set(lfs)
        self.gated = gated
        self.private = private
        self.commit = hashlib.sha1(
            repr(sorted((k, hashlib.sha1(v).hexdigest()) for k, v in files.items())).encode()
        ).hexdigest()
        self.branches = {"main": self.commit, **(branches or {})}

    def etag(self, path):
        data = self.files[path]
        return hashlib.sha256(data).hexdigest() if path in self.lfs else git_id(data)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub = None
    is_cdn = False

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        self.hub.note(self)
        fault = self.hub.fault_for(self.command, self.path)
        if fault and "status" in fault:
            return self.say(fault["status"], b"no", fault.get("headers", {}))
        (self.answer_bytes if self.is_cdn else self.answer_hub)(fault or {})

    def say(self, status, body=b"", headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_hub(self, fault):
        path = urllib.parse.urlsplit(self.path).path
        api = re.fullmatch(r"/api/(models|datasets)/([^/]+/[^/]+)/revision/([^/]+)", path)
        if api:
            return self.answer_api(api[1], api[2], urllib.parse.unquote(api[3]))
        tree = re.fullmatch(r"/api/(models|datasets)/([^/]+/[^/]+)/tree/([^/]+)", path)
        if tree:
            return self.answer_tree(tree[1], tree[2], urllib.parse.unquote(tree[3]))
        file = re.fullmatch(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if file:
            kind = "datasets" if file[1] else "models"
            return self.answer_file(
                kind, file[2], urllib.parse.unquote(file[3]), urllib.parse.unquote(file[4]), fault
            )
        self.say(404, b"not found")

    def repository(self, kind, name):
        if name in self.hub.renamed:
            target = self.path.replace(name, self.hub.renamed[name], 1)
            self.say(307, b"", {"Location": target})
            return None
        found = self.hub.repositories.get((kind, name))
        has_token = self.headers.get("Authorization") == f"Bearer {self.hub.token}"
        if found is None or (found.private and not has_token):
            status = 404 if has_token else 401
            self.say(
                status,
                b"",
                {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"},
            )
            return None
        return found

    def commit(self, repository, revision):
        commit = revision if revision == repository.commit else repository.branches.get(revision)
        if commit is None:
            self.say(
                404,
                b"",
                {
                    "X-Error-Code": "RevisionNotFound",
                    "X-Error-Message": f"Invalid rev id: {revision}",
                },
            )
        return commit

    def answer_api(self, kind, name, revision):
        repository = self.repository(kind, name)
        commit = repository and self.commit(repository, revision)
        if not commit:
            return
        state = {
            "_id": "0",
            "id": name,
            "sha": commit,
            "private": repository.private,
            "tags": [],
            "downloads": 0,
            "gated": "auto" if repository.gated else False,
            "siblings": [{"rfilename": path} for path in sorted(repository.files)],
        }
        self.say(200, json.dumps(state).encode(), {"Content-Type": "application/json"})

    def answer_tree(self, kind, name, revision):
        repository = self.repository(kind, name)
        if not repository or not self.commit(repository, revision):
            return
        entries = []
        for path, data in sorted(repository.files.items()):
            entry = {"type": "file", "path": path, "size": len(data), "oid": git_id(data)}
            if path in repository.lfs:
                entry["lfs"] = {"oid": repository.etag(path), "size": len(data), "pointerSize": 128}
            entries.append(entry)
        self.say(200, json.dumps(entries).encode(), {"Content-Type": "application/json"})

    def answer_file(self, kind, name, revision, path, fault):
        repository = self.repository(kind, name)
        commit = repository and self.commit(repository, revision)
        if not commit:
            return
        if repository.gated and self.headers.get("Authorization") != f"Bearer {self.hub.token}":
            status = 403 if "Authorization" in self.headers else 401
            return self.say(
                status,
                b"",
                {
                    "X-Error-Code": "GatedRepo",
                    "X-Error-Message": f"Access to model {name} is restricted.",
                },
            )
        if path not in repository.files:
            return self.say(
                404, b"", {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"}
            )
        data = repository.files[path]
        headers = {"X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        if path in repository.lfs:
            etag = repository.etag(path)
            headers |= {
                "X-Linked-ETag": f'"{etag}"',
                "X-Linked-Size": str(len(data)),
                "ETag": f'"{git_id(data)}"',
                "Location": f"{self.hub.cdn_url}/{etag}?signature=x",
            }
            return self.say(302, b"Found", headers)
        self.send_data(data, {**headers, "ETag": f'"{repository.etag(path)}"'}, fault)

    def answer_bytes(self, fault):
        etag = urllib.parse.urlsplit(self.path).path.strip("/")
        for repository in self.hub.repositories.values():
            for path in repository.lfs:
                if repository.etag(path) == etag:
                    return self.send_data(repository.files[path], {"ETag": '"of-the-cdn"'}, fault)
        self.say(404)

    def send_data(self, data, headers, fault):
        begin = 0
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wanted and not fault.get("no_range"):
            begin = int(wanted[1])
            if begin >= len(data):
                return self.say(416)
            headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        self.send_response(206 if begin else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        if self.command == "HEAD":
            return
        body = bytearray(data[begin:])
        if fault.get("spoil") and body:
            body[len(body) // 2] ^= 1
        self.send_pieces(bytes(body), fault)

    def send_pieces(self, body, fault):
        end = min(len(body), fault.get("cut", fault.get("stall", len(body))))
        try:
            for at in range(0, end, PIECE):
                self.wfile.write(body[at : min(at + PIECE, end)])
                if fault.get("pace"):
                    self.wfile.flush()
                    time.sleep(fault["pace"])
            if "stall" in fault:
                self.wfile.flush()
                self.hub.ended.wait(30)
        except (BrokenPipeError, ConnectionResetError):
            pass
        if end < len(body):
            self.close_connection = True


class Hub:
    """Serves in threads of its own until close(). `url` is HF_ENDPOINT."""

    token = "hf_test_token"
    handler = Handler

    def __init__(self):
        self.repositories = {}
        self.renamed = {}
        self.faults = []
        self.requests = []
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.servers = []
        self.url = self.serve(False)
        self.cdn_url = self.serve(True)

    def serve(self, is_cdn):
        handler = type("BoundHandler", (self.handler,), {"hub": self, "is_cdn": is_cdn})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    def add(self, name, files, **options):
        repository = Repository(files, **options)
        self.repositories[(repository.kind, name)] = repository
        return repository

    def note(self, request):
        with self.lock:
            self.requests.append(
                {
                    "method": request.command,
                    "path": request.path,
                    "cdn": request.is_cdn,
                    "range": request.headers.get("Range", ""),
                    "authorization": request.headers.get("Authorization", ""),
                }
            )

    def fault_for(self, method, path):
        with self.lock:
            for fault in self.faults:
                if (
                    fault.get("match", "") in path
                    and fault.get("method", method) == method
                    and fault.get("times", 1)
                ):
                    fault["times"] = fault.get("times", 1) - 1
                    return fault
        return None

    def close(self):
        self.ended.set()
        for server in self.servers:
            server.shutdown()
            server.server_close()
