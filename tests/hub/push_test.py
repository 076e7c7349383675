# SPDX-License-Identifier: Apache-2.0
"""`convoy models push` against a small hub on this machine (push_server.py), which can fail.

CONVOY_BIN_DIR: the folder of the program.
"""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from hub_server import Hub
from push_server import READ_TOKEN, PushHub
from sample_repository import LFS, sample_files

CONVOY = pathlib.Path(os.environ.get("CONVOY_BIN_DIR", "build/bin")) / "convoy"
NAME = "me/tiny"


def write_files(folder, files):
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


class PushCase(unittest.TestCase):
    part_bytes = 0

    def setUp(self):
        self.hub = PushHub(self.part_bytes)
        self.addCleanup(self.hub.close)
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.home = pathlib.Path(temporary.name)
        self.model = self.home / "model"
        write_files(self.model, sample_files())
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HF_HOME": str(self.home / "hf"),
            "HF_ENDPOINT": self.hub.url,
            "HF_TOKEN": Hub.token,
            "NO_PROXY": "*",
        }

    def start(self, *words, **environment):
        return subprocess.Popen(
            [CONVOY, *map(str, words)],
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run_convoy(self, *words, code=0, **environment):
        process = self.start(*words, **environment)
        out, err = process.communicate(timeout=240)
        self.assertEqual(process.returncode, code, err)
        for secret in (Hub.token, READ_TOKEN, "X-Amz-Signature"):
            self.assertNotIn(secret, out + err)
        return out, err

    def push(self, *words, **options):
        return self.run_convoy("models", "push", self.model, NAME, *words, **options)

    def repository(self):
        return self.hub.repositories[("models", NAME)]

    def expect_whole(self):
        self.assertEqual(self.repository().files, sample_files())

    def puts(self):
        return [path for method, path, _ in self.hub.posts if method == "PUT"]

    def commits(self):
        return [body for _, path, body in self.hub.posts if "/commit/" in path]


class Whole(PushCase):
    def test_is_downloaded_as_it_was(self):
        out, err = self.push()
        self.assertEqual(out.strip(), f"{self.hub.url}/{NAME}")
        self.assertIn(self.repository().commit[:12], err)
        self.expect_whole()
        self.assertEqual(self.repository().lfs, set(LFS))
        out, _ = self.run_convoy("models", "fetch", NAME, "--include", "*")
        fetched = pathlib.Path(out.strip())
        for path, data in sample_files().items():
            self.assertEqual((fetched / path).read_bytes(), data, path)

    def test_a_commit_names_large_files_and_carries_small_ones(self):
        self.push("--message", "First words")
        (lines,) = self.commits()
        self.assertEqual(
            lines[0], {"key": "header", "value": {"summary": "First words", "description": ""}}
        )
        large = {line["value"]["path"]: line["value"] for line in lines if line["key"] == "lfsFile"}
        self.assertEqual(set(large), set(LFS))
        for path, value in large.items():
            data = sample_files()[path]
            self.assertEqual(value["oid"], hashlib.sha256(data).hexdigest())
            self.assertEqual(value["size"], len(data))

    def test_private_and_a_branch(self):
        self.push("--private", "--revision", "v2")
        self.assertTrue(self.repository().private)
        self.assertEqual(self.repository().branches["v2"], self.repository().commit)
        self.assertNotEqual(self.repository().branches["main"], self.repository().commit)
        _, err = self.push("--private", "--revision", "v2")
        self.assertIn("visibility stays", err)
        branches = [path for _, path, _ in self.hub.posts if "/branch/" in path]
        self.assertEqual(branches, [f"/api/models/{NAME}/branch/v2"])

    def test_files_of_git_and_of_a_cache_stay(self):
        write_files(
            self.model,
            {".git/config": b"x", "a/.cache/b": b"x", ".gitignore": b"pytorch_model.bin\n"},
        )
        self.push("--exclude", "onnx/")
        wanted = {
            path for path in sample_files() if path not in ("pytorch_model.bin", "onnx/model.onnx")
        }
        self.assertEqual(set(self.repository().files), wanted | {".gitignore"})

    def test_equal_large_files_are_sent_once(self):
        (self.model / "copy.safetensors").write_bytes(sample_files()["model.safetensors"])
        self.push()
        self.assertEqual(len(self.puts()), len(LFS))
        self.assertEqual(
            self.repository().files["copy.safetensors"], sample_files()["model.safetensors"]
        )

    def test_memory_holds_a_piece_of_a_large_file(self):
        size = 192 << 20
        with (self.model / "model.safetensors").open("wb") as file:
            file.truncate(size)
        process = self.start("models", "push", self.model, NAME, "--quiet")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(len(self.repository().files["model.safetensors"]), size)
        self.assertLess(usage.ru_maxrss << 10, size // 2)

    def test_json_tells_each_file(self):
        out, _ = self.push("--json")
        told = json.loads(out)
        self.assertEqual(told["commit"], self.repository().commit)
        self.assertTrue(told["is_new"])
        self.assertEqual(told["sent_bytes"], sum(len(sample_files()[path]) for path in LFS))
        how = {file["path"]: file["pushed"] for file in told["files"]}
        self.assertEqual(how["model.safetensors"], "large")
        self.assertEqual(how["config.json"], "in the commit")


class Again(PushCase):
    def test_nothing_is_sent_twice(self):
        self.push()
        self.hub.posts.clear()
        out, err = self.push()
        self.assertIn("nothing changed", err)
        self.assertEqual(out.strip(), f"{self.hub.url}/{NAME}")
        self.assertEqual(self.puts() + self.commits(), [])

    def test_what_changed_is_sent(self):
        self.push()
        self.hub.posts.clear()
        write_files(self.model, {"config.json": b"{}\n"})
        self.push()
        self.assertEqual(self.puts(), [])
        ((_, line),) = self.commits()
        self.assertEqual(line["value"]["path"], "config.json")
        self.assertEqual(self.repository().files["config.json"], b"{}\n")

    def test_a_dry_run_asks_nobody(self):
        out, _ = self.push("--dry-run", HF_TOKEN="")
        self.assertIn("model.safetensors", out)
        self.assertEqual(self.hub.requests, [])
        out, _ = self.push("--dry-run", "--json", HF_TOKEN="")
        told = json.loads(out)
        self.assertEqual(told["to_push_bytes"], sum(map(len, sample_files().values())))
        self.assertEqual({file["path"] for file in told["files"]}, set(sample_files()))

    def test_a_killed_push_goes_on(self):
        first = hashlib.sha256(sample_files()["model.safetensors"]).hexdigest()
        self.hub.faults.append({"match": first, "method": "PUT", "status": 503, "times": -1})
        process = self.start("models", "push", self.model, NAME, "--jobs", "1")
        deadline = time.monotonic() + 60
        while not any(first in path for path in self.puts()) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        process.communicate()
        self.assertEqual(self.commits(), [])
        self.hub.faults.clear()
        there = set(self.hub.objects)
        self.hub.posts.clear()
        self.push()
        self.expect_whole()
        self.assertEqual(len(self.puts()), len(LFS) - len(there))
        self.assertFalse([path for path in self.puts() if path.split("/")[-1] in there])

    def test_a_signal_ends_it_with_75(self):
        self.hub.faults.append({"match": "/put/", "method": "PUT", "status": 503, "times": -1})
        process = self.start("models", "push", self.model, NAME)
        deadline = time.monotonic() + 60
        while not self.puts() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, err)
        self.assertIn("the same command goes on", err)
        self.hub.faults.clear()
        self.push()
        self.expect_whole()


class Parts(PushCase):
    part_bytes = 100_000

    def test_a_large_file_goes_in_parts(self):
        self.push()
        self.expect_whole()
        sizes = [size for method, path, size in self.hub.posts if "/part/" in path]
        self.assertEqual(sizes, [100_000, 100_000, 100_000])
        (completion,) = [r for r in self.hub.requests if "/api/complete/" in r["path"]]
        self.assertEqual(completion["authorization"], "")

    def test_a_last_part_is_shorter(self):
        write_files(self.model, {"model.safetensors": bytes(range(256)) * 1001})
        self.push()
        self.assertEqual(self.repository().files["model.safetensors"], bytes(range(256)) * 1001)

    def test_a_failed_part_is_sent_again_alone(self):
        self.hub.faults.append({"match": "/part/", "method": "PUT", "status": 500})
        self.hub.faults.append({"match": "/2?", "method": "PUT", "hang_up": "before"})
        self.push()
        self.expect_whole()
        self.assertEqual(len([path for path in self.puts() if "/part/" in path]), 5)

    def test_old_addresses_are_asked_for_again(self):
        self.hub.faults.append({"match": "/3?", "method": "PUT", "status": 403})
        self.push()
        self.expect_whole()
        self.assertEqual(len([path for path in self.puts() if "/part/" in path]), 6)

    def test_a_wrong_number_of_addresses_is_no_answer(self):
        self.hub.drops_an_address = True
        _, err = self.push(code=10)
        self.assertIn("wanted 3 addresses of parts of 100000 bytes, found 2", err)
        self.assertEqual(self.commits(), [])

    def test_an_empty_file_is_no_large_one(self):
        write_files(self.model, {"model.safetensors": b""})
        self.push()
        self.assertEqual(self.repository().files["model.safetensors"], b"")
        self.assertNotIn("model.safetensors", self.repository().lfs)


RECORD = {
    "name": "sums",
    "task": "sft",
    "version": "0.2.0",
    "world_size": 2,
    "data_hashes": {"train": "ab" * 32},
    "stamp": {"global_batch": "16", "dtype": "bf16", "max_seq_len": "256"},
    "config": {
        "seed": 42,
        "model": {"name": "org/base", "revision": "main"},
        "data": {"train_path": "/home/someone/rows/sums.jsonl", "val_path": ""},
        "train": {"learning_rate": 0.001, "lr_scheduler_type": "cosine"},
        "tuning": {"mode": "lora", "lora": {"r": 16, "alpha": 32.0, "dropout": 0.0}},
    },
}
FIGURES = {
    "global_step": 250,
    "tokens_seen": 187184,
    "train_loss": 0.4321,
    "eval_loss": 0.25,
    "eval_runtime": 5.3,
    "eval_exact_match": 0.75,
    "train_runtime": 66.5,
}


class Runs(PushCase):
    """What a run has trained, and its model card."""

    def setUp(self):
        super().setUp()
        self.run_folder = self.home / "run"
        write_files(
            self.run_folder,
            {
                "run.json": json.dumps(RECORD).encode(),
                "metrics.json": json.dumps(FIGURES).encode(),
                "events.jsonl": b"",
                "config.yaml": b"seed: 42\n",
                "adapter/adapter_config.json": b"{}",
                "adapter/adapter_model.safetensors": b"weights",
            },
        )

    def push_run(self, folder="", **options):
        return self.run_convoy("models", "push", self.run_folder / folder, NAME, **options)

    def card(self):
        return self.repository().files["README.md"].decode()

    def add_base(self):
        card = b"---\nlicense: other\nlicense_name: house\nlanguage: en\n---\n# Base\n"
        self.hub.add("org/base", {"README.md": card, "config.json": b"{}"})
        self.run_convoy("models", "fetch", "org/base")

    def test_the_adapter_of_a_run_with_a_card(self):
        self.add_base()
        self.push_run()
        self.assertEqual(
            set(self.repository().files),
            {"README.md", "adapter_config.json", "adapter_model.safetensors"},
        )
        head, text = self.card().removeprefix("---\n").split("\n---\n", 1)
        self.assertEqual(
            head.splitlines(),
            [
                "base_model: org/base",
                "base_model_relation: adapter",
                "library_name: peft",
                "license: other",
                "license_name: house",
                "pipeline_tag: text-generation",
                "tags:",
                "- convoy",
                "- sft",
                "- lora",
            ],
        )
        for words in (
            "# tiny",
            "trained with Convoy 0.2.0",
            "| train | `sums.jsonl`, SHA-256 " + "ab" * 32,
            "| learning rate | 0.001 |",
            "| LoRA rank | 16 |",
            "| rows of a step | 16 |",
            "| ranks | 2 |",
            "| steps | 250 |",
            "| loss in training | 0.4321 |",
            "| `eval_exact_match` | 0.75 |",
        ):
            self.assertIn(words, text)
        for words in ("/home/someone", "eval_runtime"):
            self.assertNotIn(words, self.card())

    def test_a_base_that_is_a_local_folder_is_no_id(self):
        (self.home / "models" / "my-base").mkdir(parents=True)
        record = json.loads(json.dumps(RECORD))
        record["config"]["model"]["name"] = str(self.home / "models" / "my-base")
        write_files(self.run_folder, {"run.json": json.dumps(record).encode()})
        self.push_run("adapter")
        self.assertNotIn("base_model", self.card())
        self.assertIn("An adapter for `my-base`", self.card())
        self.assertNotIn(str(self.home), self.card())

    def test_data_sets_of_the_hub_are_named(self):
        self.hub.add("org/rows", {"train.jsonl": b"{}"}, kind="datasets")
        self.run_convoy("data", "fetch", "org/rows")
        record = json.loads(json.dumps(RECORD))
        record["config"]["data"]["train_path"] = ""
        record["config"]["datasets"] = [{"path": "org/rows"}, {"path": "/home/someone/own.jsonl"}]
        write_files(self.run_folder, {"run.json": json.dumps(record).encode()})
        self.push_run()
        self.assertIn("datasets:\n- org/rows\npipeline_tag", self.card())
        self.assertIn("| train | `own.jsonl` |", self.card())
        self.assertNotIn("/home/someone", self.card())

    def test_an_adapter_over_a_local_folder_is_told(self):
        config = {"base_model_name_or_path": str(self.home / "base")}
        write_files(self.run_folder, {"adapter/adapter_config.json": json.dumps(config).encode()})
        _, err = self.push_run()
        self.assertIn("folder of this machine", err)
        config["base_model_name_or_path"] = "org/base"
        write_files(self.run_folder, {"adapter/adapter_config.json": json.dumps(config).encode()})
        _, err = self.push_run()
        self.assertNotIn("folder of this machine", err)

    def add_checkpoint(self):
        state = {
            "global_step": 3,
            "max_steps": 250,
            "epoch": 0.5,
            "log_history": [
                {"step": 2, "eval_loss": 0.875},
                {"step": 3, "loss": 1.0},
                {"step": 3, "eval_loss": 0.625, "eval_runtime": 1.0},
            ],
        }
        write_files(
            self.run_folder / "checkpoints/step-00000003",
            {
                "adapter_config.json": b"{}",
                "adapter_model.safetensors": b"weights",
                "optimizer.safetensors": b"moments",
                "optimizer-00001-of-00002.safetensors": b"moments",
                "manifest.json": b"{}",
                "trainer_state.json": json.dumps(state).encode(),
            },
        )

    def test_a_checkpoint_has_its_own_figures_and_no_state(self):
        self.add_checkpoint()
        _, err = self.push_run("checkpoints/step-00000003")
        self.assertEqual(err.count("the state of the training stays here"), 1)
        self.assertEqual(
            set(self.repository().files),
            {"README.md", "adapter_config.json", "adapter_model.safetensors"},
        )
        self.assertIn("| steps | 3 |", self.card())
        self.assertIn("| `eval_loss` | 0.625 |", self.card())
        for words in ("250", "0.875", "exact_match", "loss in training"):
            self.assertNotIn(words, self.card())

    def test_a_card_that_is_there_stays(self):
        write_files(self.run_folder, {"adapter/README.md": b"# Mine\n"})
        self.push_run()
        self.assertEqual(self.card(), "# Mine\n")

    def test_a_dry_run_lists_the_card(self):
        out, _ = self.run_convoy("models", "push", self.run_folder, NAME, "--dry-run")
        self.assertIn("README.md  (made from the run's record)", out)

    def test_a_run_without_a_result_or_with_two(self):
        write_files(self.run_folder, {"model/config.json": b"{}"})
        _, err = self.push_run(code=10)
        self.assertIn("an adapter and a model", err)
        self.push_run("model")
        for name in ("model/config.json", "adapter/adapter_config.json"):
            (self.run_folder / name).unlink()
        _, err = self.push_run(code=10)
        self.assertIn("has not ended", err)


class Faults(PushCase):
    def fault(self, **fault):
        self.hub.faults.append(fault)

    def test_busy_answers_are_waited_out(self):
        self.fault(match="/api/repos/create", status=503)
        self.fault(match="/preupload/", status=502)
        self.fault(match="objects/batch", status=500)
        self.fault(match="/put/", status=503)
        self.fault(match="/api/verify", status=504)
        self.fault(match="/commit/", status=429, headers={"Retry-After": "1"})
        self.push()
        self.expect_whole()

    def test_a_cut_upload_is_sent_again(self):
        self.fault(match="/put/", method="PUT", hang_up="before", times=2)
        self.push()
        self.expect_whole()

    def test_another_repository_that_is_being_made(self):
        self.fault(
            match="/api/repos/create",
            status=409,
            error="Cannot create repo: another conflicting operation is in progress",
        )
        self.push()
        self.expect_whole()

    def test_a_commit_whose_answer_is_lost_is_not_made_twice(self):
        self.fault(match="/commit/", hang_up="after")
        self.push(code=69)
        self.assertEqual(len(self.commits()), 1)
        _, err = self.push()
        self.assertIn("nothing changed", err)
        self.assertEqual(len(self.commits()), 1)
        self.expect_whole()

    def test_a_hub_that_stays_away(self):
        self.push(code=69, HF_ENDPOINT="http://127.0.0.1:9")
        self.fault(match="/commit/", status=500, times=-1)
        _, err = self.push(code=69)
        self.assertIn("500", err)

    def test_another_commit_at_the_same_time(self):
        for status in (409, 412):
            self.fault(match="/commit/", status=status, error="A commit has happened since")
            _, err = self.push(code=10)
            self.assertIn("A commit has happened since", err)
            self.assertIn("run the same command again", err)

    def test_what_the_store_refuses_has_its_reason(self):
        self.hub.object_error = "your storage is full"
        _, err = self.push(code=10)
        self.assertIn("your storage is full", err)
        self.assertEqual(self.commits(), [])

    def test_a_card_that_the_hub_refuses_ends_it_before_anything_is_sent(self):
        write_files(self.model, {"README.md": b"---\ncolour: [\n---\n"})
        _, err = self.push(code=10)
        self.assertIn("unexpected end of the flow", err)
        self.assertEqual(self.puts(), [])

    def test_what_a_store_lacks_is_no_missing_model(self):
        for path in ("objects/batch", "/api/verify"):
            self.fault(match=path, status=404)
            _, err = self.push(code=10)
            self.assertNotIn("the hub has no model", err)
            self.assertIn("answers 404", err)

    def test_a_repository_that_was_moved(self):
        self.fault(match="/preupload/", status=307, headers={"Location": "/api/models/me/new"})
        _, err = self.push(code=10)
        self.assertIn("me/tiny was moved", err)
        self.assertIn("/api/models/me/new", err)

    def test_control_characters_are_not_shown(self):
        self.fault(match="/commit/", status=409, error="\x1b[31mred")
        _, err = self.push(code=10)
        self.assertIn("?[31mred", err)

    def test_an_odd_answer_is_no_answer(self):
        for path in ("/preupload/", "objects/batch", "/commit/"):
            self.fault(match=path, status=200)
            _, err = self.push(code=10)
            self.assertIn(path.strip("/"), err)


class Access(PushCase):
    def test_the_token_goes_to_the_hub_alone(self):
        self.push()
        self.assertTrue(any(r["cdn"] for r in self.hub.requests))
        for request in self.hub.requests:
            wanted = "" if request["cdn"] else f"Bearer {Hub.token}"
            self.assertEqual(request["authorization"], wanted, request)

    def test_the_token_may_be_in_the_hubs_file(self):
        (self.home / "hf").mkdir()
        (self.home / "hf" / "token").write_text(Hub.token + "\n")
        self.push(HF_TOKEN="")
        self.expect_whole()

    def test_refusals_say_what_to_do(self):
        _, err = self.push(code=2, HF_TOKEN="")
        self.assertIn("set HF_TOKEN", err)
        _, err = self.push(code=10, HF_TOKEN="hf_unknown")
        self.assertIn("401", err)
        self.assertNotIn("hf_unknown", err)
        _, err = self.push(code=10, HF_TOKEN=READ_TOKEN)
        self.assertIn("403", err)
        self.assertIn("write access", err)
        self.push(code=2, HF_HUB_OFFLINE="1")

    def test_a_repository_that_is_there_may_be_written_by_a_token_that_makes_none(self):
        self.hub.add(NAME, {})
        self.hub.faults.append({"match": "/api/repos/create", "status": 403, "times": -1})
        self.push()
        self.expect_whole()

    def test_texts_that_are_not_utf8(self):
        _, err = self.run_convoy(
            *("models", "push", self.model, NAME, "--message", "\udcff"), code=2
        )
        self.assertIn("--message", err)
        for name in (".gitignore", "README.md"):
            write_files(self.model, {name: b"caf\xe9\n"})
            _, err = self.push(code=10)
            self.assertIn(name, err)
            write_files(self.model, {name: b"cafe\n"})
        write_files(self.model, {"a\udcff.json": b"{}"})
        _, err = self.push(code=10)
        self.assertIn("a\\xff.json", err)
        self.assertEqual(self.hub.requests, [])

    def test_links_to_no_file_are_named(self):
        for target in ("absent", "link.json", str(self.home)):
            link = self.model / "link.json"
            link.symlink_to(target)
            _, err = self.push(code=10)
            self.assertIn("link.json is a link to no file", err)
            self.push("--exclude", "link.json", "--dry-run")
            link.unlink()

    def test_wrong_words(self):
        for name in ("tiny", "a/b/c", "../x", "me/"):
            _, err = self.run_convoy("models", "push", self.model, name, code=2)
            self.assertIn("USER/NAME", err)
        self.push("--revision", "../x", code=2)
        _, err = self.run_convoy("models", "push", self.home / "absent", NAME, code=10)
        self.assertIn("absent", err)
        (self.home / "empty").mkdir()
        _, err = self.run_convoy("models", "push", self.home / "empty", NAME, code=10)
        self.assertIn("holds no model", err)
        self.push("--include", "*.none", code=10)
        self.run_convoy("models", "push", self.model, code=2)
        self.assertEqual(self.hub.requests, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
