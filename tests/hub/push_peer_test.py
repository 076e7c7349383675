# SPDX-License-Identifier: Apache-2.0
"""huggingface_hub and `convoy models push` send the same: both push one folder to the small hub, and their requests are compared.

Run with a Python that has huggingface_hub (push_peer_test.sh). CONVOY_BIN_DIR: the folder of the program.
"""

import hashlib
import os
import subprocess
import sys
import unittest

from huggingface_hub import ModelCard
from push_server import PushHub
from push_test import NAME, PushCase, Runs, write_files
from sample_repository import sample_files

PUSH = """
import sys
from huggingface_hub import HfApi
folder, name, revision = sys.argv[1:]
api = HfApi()
api.create_repo(name, private=True, exist_ok=True)
if revision != "main":
    api.create_branch(name, branch=revision, exist_ok=True)
api.upload_folder(repo_id=name, folder_path=folder, revision=revision, commit_message="Both")
"""


def as_asked(posts):
    """What the requests ask for, in an order that the two may differ in."""
    asked = []
    for method, path, body in posts:
        if isinstance(body, list):  # a commit: its lines, each a mapping
            body = sorted(map(repr, map(sorted_items, body)))
        elif isinstance(body, dict):
            for key in ("files", "objects"):
                if key in body:
                    body[key] = sorted(body[key], key=repr)
            body = sorted_items(body)
        # Numbers of uploads are given in the order of the questions.
        if "/part/" in path or "/complete/" in path:
            path = path.split("/u")[0]
        asked.append(repr((method, path, body)))
    # huggingface_hub checks a model card twice.
    return sorted(
        one for at, one in enumerate(asked) if "validate-yaml" not in one or one not in asked[:at]
    )


def sorted_items(value):
    if isinstance(value, dict):
        return sorted((key, sorted_items(one)) for key, one in value.items())
    if isinstance(value, list):
        return [sorted_items(one) for one in value]
    return value


class Same(PushCase):
    def peer_pushes(self, hub, revision="main"):
        environment = {
            **self.environment,
            "HF_ENDPOINT": hub.url,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }
        subprocess.run(
            [sys.executable, "-c", PUSH, str(self.model), NAME, revision],
            env=environment,
            check=True,
            timeout=240,
        )

    def compare(self, revision="main", prepare=lambda hub: None, skip="nothing"):
        theirs = PushHub(self.hub.part_bytes)
        self.addCleanup(theirs.close)
        for hub in (theirs, self.hub):
            prepare(hub)
        self.peer_pushes(theirs, revision)
        self.push("--private", "--message", "Both", "--revision", revision)
        ours, others = (
            [one for one in as_asked(hub.posts) if skip not in one] for hub in (self.hub, theirs)
        )
        self.assertEqual([one for one in ours if one not in others], [])
        self.assertEqual([one for one in others if one not in ours], [])
        self.assertEqual(ours, others)
        repository = theirs.repositories[("models", NAME)]
        self.assertEqual(self.repository().files, repository.files)
        self.assertEqual(self.repository().lfs, repository.lfs)
        self.assertEqual(self.repository().private, repository.private)

    def test_a_new_repository(self):
        self.compare()

    def test_large_files_in_parts(self):
        self.hub.part_bytes = 100_000
        self.compare()

    def test_a_branch(self):
        self.compare("v2")

    def test_files_that_are_there_and_ignored_ones(self):
        write_files(self.model, {".gitignore": b"pytorch_model.bin\n", ".git/config": b"x"})
        files = sample_files()

        def prepare(hub):
            there = {path: files[path] for path in ("config.json", "onnx/model.onnx")}
            hub.add(NAME, there, lfs=["onnx/model.onnx"], private=True)
            for path in ("model.safetensors", "onnx/model.onnx"):
                hub.objects[hashlib.sha256(files[path]).hexdigest()] = files[path]

        # huggingface_hub asks how to send files that it then finds unchanged.
        self.compare(prepare=prepare, skip="/objects/batch")


class Cards(Runs):
    def test_the_adapter_of_a_run_with_a_card(self):
        self.add_base()
        self.push_run()
        data = ModelCard(self.card()).data.to_dict()
        self.assertEqual(data["base_model"], "org/base")
        self.assertEqual(data["license"], "other")
        self.assertEqual(data["tags"], ["convoy", "sft", "lora"])


if __name__ == "__main__":
    os.environ.pop("HF_TOKEN", None)
    unittest.main(
        verbosity=2,
        argv=[
            sys.argv[0],
            *(sys.argv[1:] or ["Same", "Cards.test_the_adapter_of_a_run_with_a_card"]),
        ],
    )
