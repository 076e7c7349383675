# SPDX-License-Identifier: Apache-2.0
"""The uploads of the small hub of hub_server.py: repositories, git-LFS batches with the transfers "basic" and "multipart", commits.

`PushHub` keeps what was pushed as repositories that can be downloaded. `posts` holds the requests that change something,
as (method, path, body); a body is JSON, the lines of a commit, or the number of bytes of a PUT.
"""

import base64
import hashlib
import json
import re
import threading
import urllib.parse

from hub_server import Handler, Hub, Repository

LARGE = (".safetensors", ".bin", ".onnx", ".gguf")
# A token that may read and not write.
READ_TOKEN = "hf_read_token"


class PushHandler(Handler):
    def answer_hub(self, fault):
        path = urllib.parse.urlsplit(self.path).path
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)", path):
            return self.answer_api("models", found[1], "main")
        super().answer_hub(fault)

    def do_POST(self):
        self.take()

    def do_PUT(self):
        self.take()

    def take(self):
        self.hub.note(self)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        self.hub.note_post(self.command, path, body)
        fault = self.hub.fault_for(self.command, self.path)
        if fault and "hang_up" in fault:
            if fault["hang_up"] == "after":
                self.perform(path, body, answers=False)
            self.close_connection = True
            self.connection.shutdown(2)
            return
        if fault and "status" in fault:
            text = json.dumps({"error": fault.get("error", "no")}).encode()
            return self.say(fault["status"], text, fault.get("headers", {}))
        self.perform(path, body)

    def say(self, status, body=b"", headers=None):
        if self.answers:
            super().say(status, body, headers)

    answers = True

    def tell(self, value, status=200):
        self.say(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def perform(self, path, body, answers=True):
        self.answers = answers
        if self.is_cdn:
            return self.store(path, body)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        # The address of a completion is signed: huggingface_hub sends no token there.
        if token not in (Hub.token, READ_TOKEN) and not path.startswith("/api/complete/"):
            return self.tell({"error": "Invalid credentials in Authorization header"}, 401)
        if token == READ_TOKEN and path != "/api/validate-yaml":
            return self.tell({"error": "You don't have the rights to do that"}, 403)
        for pattern, work in (
            (r"/api/repos/create", self.create),
            (r"/api/validate-yaml", self.check_card),
            (r"/api/models/([^/]+/[^/]+)/branch/(.+)", self.make_branch),
            (r"/api/models/([^/]+/[^/]+)/preupload/(.+)", self.tell_modes),
            (r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", self.tell_uploads),
            (r"/api/complete/(\w+)", self.complete),
            (r"/api/verify", self.verify),
            (r"/api/models/([^/]+/[^/]+)/commit/(.+)", self.commit_files),
        ):
            if found := re.fullmatch(pattern, path):
                return work(body, *found.groups())
        self.say(404, b"not found")

    def create(self, body):
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}"
        if ("models", name) in self.hub.repositories:
            return self.tell({"error": "You already created this model repo", "url": name}, 409)
        self.hub.add(name, {}, private=asked.get("visibility") == "private")
        self.tell({"url": f"{self.hub.url}/{name}", "name": name, "id": "0"})

    def check_card(self, body):
        if "colour: [" in json.loads(body)["content"]:
            return self.tell({"errors": [{"message": "unexpected end of the flow"}]}, 400)
        self.tell({"errors": [], "warnings": []})

    def make_branch(self, body, name, branch):
        repository = self.hub.repositories[("models", name)]
        repository.branches[branch] = repository.commit
        self.tell({})

    def tell_modes(self, body, name, revision):
        repository = self.hub.repositories.get(("models", name))
        if repository is None:
            return self.say(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        if revision not in repository.branches:
            return self.say(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        asked = json.loads(body)
        ignored = asked.get("gitIgnore", "").split()
        files = []
        for file in asked["files"]:
            path = file["path"]
            is_large = path.endswith(LARGE) or file["size"] > 1 << 20
            one = {"path": path, "uploadMode": "lfs" if is_large else "regular"}
            one["shouldIgnore"] = path in ignored
            if path in repository.files:
                one["oid"] = repository.etag(path)
            files.append(one)
        self.tell({"files": files})

    def tell_uploads(self, body, name):
        asked = json.loads(body)
        assert asked["operation"] == "upload" and asked["hash_algo"] == "sha256", asked
        objects = []
        for one in asked["objects"]:
            oid, size = one["oid"], one["size"]
            told = {"oid": oid, "size": size, "authenticated": True}
            if self.hub.object_error:
                told["error"] = {"code": 422, "message": self.hub.object_error}
            elif oid not in self.hub.objects:
                told["actions"] = self.actions(oid, size)
            objects.append(told)
        transfer = "multipart" if self.hub.part_bytes else "basic"
        self.tell({"transfer": transfer, "objects": objects})

    def actions(self, oid, size):
        verify = {"href": f"{self.hub.url}/api/verify", "header": {}}
        with self.hub.lock:
            self.hub.num_uploads += 1
            upload = f"u{self.hub.num_uploads}"
        if not self.hub.part_bytes or size <= self.hub.part_bytes:
            href = f"{self.hub.cdn_url}/put/{oid}?X-Amz-Signature=secret"
            return {"upload": {"href": href}, "verify": verify}
        header = {"chunk_size": str(self.hub.part_bytes)}
        for number in range(1, -(-size // self.hub.part_bytes) + 1):
            header[f"{number:05}"] = (
                f"{self.hub.cdn_url}/part/{upload}/{number}?X-Amz-Signature=secret"
            )
        if self.hub.drops_an_address:
            header.popitem()
        href = f"{self.hub.url}/api/complete/{upload}"
        return {"upload": {"href": href, "header": header}, "verify": verify}

    def store(self, path, body):
        _, kind, name, *number = path.split("/")
        if kind == "put":
            self.hub.objects[name] = body
            if hashlib.sha256(body).hexdigest() != name:
                del self.hub.objects[name]
                return self.say(400, b"<Code>BadDigest</Code>")
            return self.say(200)
        with self.hub.lock:
            self.hub.parts[(name, int(number[0]))] = body
        self.say(200, b"", {"ETag": f'"{hashlib.md5(body).hexdigest()}"'})

    def complete(self, body, upload):
        asked = json.loads(body)
        whole = b""
        for at, part in enumerate(asked["parts"], 1):
            assert part["partNumber"] == at
            piece = self.hub.parts[(upload, at)]
            assert part["etag"].strip('"') == hashlib.md5(piece).hexdigest()
            whole += piece
        if hashlib.sha256(whole).hexdigest() != asked["oid"]:
            return self.tell({"error": "wrong parts"}, 422)
        self.hub.objects[asked["oid"]] = whole
        self.tell({"success": True})

    def verify(self, body):
        asked = json.loads(body)
        found = self.hub.objects.get(asked["oid"])
        if found is None or len(found) != asked["size"]:
            return self.tell({"error": "not there"}, 404)
        self.tell({"success": True})

    def commit_files(self, body, name, revision):
        before = self.hub.repositories[("models", name)]
        files, lfs = dict(before.files), set(before.lfs)
        for line in body.decode().splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"], validate=True)
                lfs.discard(value["path"])
            elif item["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
                lfs.add(value["path"])
        after = Repository(files, lfs=lfs, private=before.private)
        after.branches = {**before.branches, revision: after.commit}
        self.hub.repositories[("models", name)] = after
        self.tell(
            {
                "commitUrl": f"{self.hub.url}/{name}/commit/{after.commit}",
                "commitOid": after.commit,
                "hookOutput": "",
                "success": True,
            }
        )


class PushHub(Hub):
    handler = PushHandler

    def __init__(self, part_bytes=0):
        self.part_bytes = part_bytes  # size of a part of a multipart upload; 0: basic
        self.objects = {}  # the store of large files, by SHA-256
        self.parts = {}
        self.num_uploads = 0
        self.object_error = ""
        self.drops_an_address = False
        self.posts = []
        self.posts_lock = threading.Lock()
        super().__init__()

    def note_post(self, method, path, body):
        if method == "PUT":
            noted = len(body)
        elif "/commit/" in path:
            noted = [json.loads(line) for line in body.decode().splitlines()]
        else:
            noted = json.loads(body or b"null")
        with self.posts_lock:
            self.posts.append((method, path, noted))
