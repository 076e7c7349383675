# SPDX-License-Identifier: Apache-2.0
"""`convoy models fetch` and `convoy data fetch` against a small hub on this machine (hub_server.py), which can fail.

The files of a fetch are compared with golden_listing.json: the files that huggingface_hub's snapshot_download writes
for the same repository (make_golden_listing.py). CONVOY_BIN_DIR: the folder of the program.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from hub_server import Hub, git_id
from sample_repository import LFS, sample_files

CONVOY = pathlib.Path(os.environ.get("CONVOY_BIN_DIR", "build/bin")) / "convoy"
HERE = pathlib.Path(__file__).parent
NAME = "org/tiny"


def listing(folder):
    """Every path below `folder`: a link with its target, a file with the git id of its bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = git_id(path.read_bytes())
    return found


class FetchCase(unittest.TestCase):
    def setUp(self):
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.home = pathlib.Path(temporary.name)
        self.cache = self.home / "hub"
        self.repository = self.hub.add(NAME, sample_files(), lfs=LFS)
        self.folder = self.cache / "models--org--tiny"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HF_HOME": str(self.home),
            "HF_ENDPOINT": self.hub.url,
            "NO_PROXY": "*",
        }

    def start(self, *words, **environment):
        return subprocess.Popen(
            [CONVOY, *words],
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
        return out, err

    def fetch(self, *words, **options):
        return self.run_convoy("models", "fetch", NAME, *words, **options)

    def snapshot(self):
        return self.folder / "snapshots" / self.repository.commit

    def expect_whole(self, names):
        for name in names:
            self.assertEqual(
                (self.snapshot() / name).read_bytes(), self.repository.files[name], name
            )
        self.assertFalse(list(self.cache.rglob("*.incomplete")))

    def bytes_asked(self, name):
        """The byte ranges of the requests for an LFS file, in order."""
        etag = self.repository.etag(name)
        return [
            r["range"]
            for r in self.hub.requests
            if r["cdn"] and etag in r["path"] and r["method"] == "GET"
        ]

    def wait_for_part(self, name, at_least):
        part = self.folder / "blobs" / f"{self.repository.etag(name)}.incomplete"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if part.exists() and part.stat().st_size >= at_least:
                return
            time.sleep(0.02)
        self.fail("no part came")


class Layout(FetchCase):
    def test_is_that_of_huggingface_hub(self):
        self.fetch("--include", "*")
        wanted = json.loads((HERE / "golden_listing.json").read_text())
        self.assertEqual(listing(self.cache), wanted)

    def test_takes_what_convoy_reads_and_no_pickle(self):
        out, _ = self.fetch()
        self.assertEqual(out.strip(), str(self.snapshot()))
        found = {
            str(path.relative_to(self.snapshot()))
            for path in self.snapshot().rglob("*")
            if path.is_file()
        }
        self.assertEqual(
            found,
            {
                "config.json",
                "model.safetensors",
                "tokenizer.json",
                "chat_template.jinja",
                "README.md",
                "empty.json",
            },
        )
        self.expect_whole(found)
        self.assertEqual((self.folder / "refs/main").read_text(), self.repository.commit)

    def test_patterns_choose(self):
        self.fetch("--include", "*.json", "--include", "onnx/", "--exclude", "token*")
        found = {
            str(path.relative_to(self.snapshot()))
            for path in self.snapshot().rglob("*")
            if path.is_file()
        }
        self.assertEqual(
            found,
            {"config.json", "empty.json", "onnx/model.onnx", "original/params with a space.json"},
        )
        _, err = self.fetch("--include", "*.gguf", code=10)
        self.assertIn("is selected", err)

    def test_other_commands_find_what_was_fetched(self):
        absent = self.run_convoy("models", "check", NAME, code=10)[1]
        self.assertIn(f"convoy models fetch {NAME}", absent)
        self.fetch()
        self.run_convoy(
            "models", "check", NAME, code=10
        )  # found, but refused: its family is unknown

    def test_branches_commits_and_odd_names(self):
        self.repository.branches["refs/pr/1"] = self.repository.commit
        self.fetch("--revision", "refs/pr/1")
        self.assertEqual((self.folder / "refs/refs/pr/1").read_text(), self.repository.commit)
        self.fetch("--revision", self.repository.commit)
        self.assertFalse((self.folder / "refs" / self.repository.commit).exists())
        for revision in ("../x", "a//b", ".."):
            self.fetch("--revision", revision, code=2)
        self.fetch("--revision", "v9", code=10)

    def test_what_can_not_be_used_is_said_at_once(self):
        _, err = self.fetch()
        self.assertIn("`none of these` is not supported", err)

    def test_data_sets(self):
        rows = {
            "README.md": b"# rows",
            "data/train-00000-of-00001.parquet": b"PAR1" * 9,
            "test.jsonl.gz": b"\x1f\x8b",
            "picture.png": b"png",
            ".gitattributes": b"x",
        }
        self.repository = self.hub.add(
            "org/rows", rows, kind="datasets", lfs=["data/train-00000-of-00001.parquet"]
        )
        self.folder = self.cache / "datasets--org--rows"
        self.run_convoy("data", "fetch", "org/rows")
        self.expect_whole(["README.md", "data/train-00000-of-00001.parquet", "test.jsonl.gz"])
        self.assertFalse((self.snapshot() / "picture.png").exists())

    def test_files_named_as_paths_outside_are_refused(self):
        for name in ("../evil", "/etc/evil", "a/../../evil", "a//b", "a\\b"):
            self.hub.add(NAME, {name: b"x", "config.json": b"{}"})
            _, err = self.fetch("--include", "*", code=10)
            self.assertIn("no path inside", err)
        self.assertEqual(listing(self.home), {})


class Again(FetchCase):
    def test_nothing_is_fetched_twice(self):
        self.fetch()
        self.hub.requests.clear()
        _, err = self.fetch()
        self.assertIn("are there", err)
        self.assertEqual(
            [r["method"] for r in self.hub.requests], ["GET"]
        )  # asks which commit `main` is

    def test_of_a_new_commit_only_what_changed(self):
        self.fetch()
        first = self.snapshot()
        self.repository = self.hub.add(
            NAME, {**sample_files(), "config.json": b'{"a": 2}'}, lfs=LFS
        )
        self.fetch()
        self.assertEqual(self.bytes_asked("model.safetensors"), [""])
        self.expect_whole(["config.json", "model.safetensors"])
        self.assertTrue((first / "config.json").exists())
        self.assertEqual((self.folder / "refs/main").read_text(), self.repository.commit)

    def test_a_spoilt_file_is_found_by_verify(self):
        self.fetch()
        blob = (self.snapshot() / "model.safetensors").resolve()
        blob.write_bytes(b"x" + blob.read_bytes()[1:])
        self.fetch()
        self.assertEqual(blob.read_bytes()[:1], b"x")
        _, err = self.fetch("--verify")
        self.assertIn("fetched again", err)
        self.expect_whole(["model.safetensors"])

    def test_a_dry_run_writes_nothing(self):
        out, _ = self.fetch("--dry-run")
        self.assertIn("model.safetensors", out)
        self.assertEqual(listing(self.home), {})
        out, _ = self.fetch("--dry-run", "--json")
        self.assertEqual(
            json.loads(out)["to_fetch_bytes"],
            sum(
                len(data)
                for name, data in sample_files().items()
                if name
                in (
                    "config.json",
                    "model.safetensors",
                    "tokenizer.json",
                    "chat_template.jinja",
                    "README.md",
                    "empty.json",
                )
            ),
        )

    def test_a_cache_that_may_not_be_written_serves(self):
        self.fetch()
        for path in [self.cache, *self.cache.rglob("*")]:
            if path.is_dir():
                path.chmod(0o555)
        try:
            self.fetch()
        finally:
            for path in [self.cache, *self.cache.rglob("*")]:
                if path.is_dir():
                    path.chmod(0o755)


class Faults(FetchCase):
    def fault(self, **fault):
        self.hub.faults.append(fault)

    def test_a_cut_connection_goes_on_where_it_was(self):
        self.fault(match=self.repository.etag("model.safetensors"), cut=50_000, method="GET")
        self.fetch()
        self.expect_whole(["model.safetensors"])
        self.assertEqual(self.bytes_asked("model.safetensors"), ["", "bytes=50000-"])

    def test_a_server_without_ranges_begins_again(self):
        self.fault(match=self.repository.etag("model.safetensors"), cut=50_000, method="GET")
        self.fault(match=self.repository.etag("model.safetensors"), no_range=True, method="GET")
        self.fetch()
        self.expect_whole(["model.safetensors"])

    def test_busy_answers_are_waited_out(self):
        self.fault(match="/api/", status=503)
        self.fault(match="config.json", method="HEAD", status=500)
        self.fault(match="tokenizer.json", method="GET", status=429, headers={"Retry-After": "1"})
        began = time.monotonic()
        self.fetch()
        self.assertGreater(time.monotonic() - began, 1)
        self.expect_whole(["config.json", "tokenizer.json", "model.safetensors"])

    def test_a_hub_that_stays_away_is_an_error_that_says_so(self):
        self.fault(match="/api/", status=502, times=-1)
        _, err = self.fetch(code=69, HF_HUB_DOWNLOAD_TIMEOUT="1")
        self.assertIn("502", err)
        for words in (("models", "fetch", NAME), ("data", "fetch", "org/rows")):
            _, err = self.run_convoy(*words, code=69, HF_ENDPOINT="http://127.0.0.1:9")
            lines = err.splitlines()
            self.assertIn(f"asking http://127.0.0.1:9 for {words[2]}", lines[0])
            self.assertIn("again in 0.5 s", lines[1])
            for wanted in ("127.0.0.1:9", "HF_ENDPOINT", "without a network", "copy the folder"):
                self.assertIn(wanted, lines[-2])
            self.assertEqual(json.loads(lines[-1])["kind"], "network")

    def test_a_stall_is_noticed(self):
        self.fault(match=self.repository.etag("model.safetensors"), stall=20_000, method="GET")
        self.fetch(HF_HUB_DOWNLOAD_TIMEOUT="1")
        self.expect_whole(["model.safetensors"])

    def test_spoilt_bytes_are_refused_and_not_kept(self):
        for name in ("model.safetensors", "config.json"):
            match = self.repository.etag(name) if name in LFS else name
            shutil.rmtree(self.cache, ignore_errors=True)
            self.hub.faults = [{"match": match, "spoil": True, "method": "GET", "times": -1}]
            _, err = self.fetch(code=10)
            self.assertIn(name, err)
            self.assertFalse((self.snapshot() / name).exists())
            self.assertFalse((self.folder / "refs/main").exists())
        self.hub.faults.clear()
        self.fetch()
        self.expect_whole(["model.safetensors", "config.json"])

    def test_a_spoilt_part_of_an_earlier_fetch_is_fetched_from_its_start(self):
        part = self.folder / "blobs" / (self.repository.etag("model.safetensors") + ".incomplete")
        part.parent.mkdir(parents=True)
        for bytes_there in (
            b"not what the hub has",
            bytes(len(self.repository.files["model.safetensors"]) + 5),
        ):
            part.write_bytes(bytes_there)
            self.fetch()
            self.expect_whole(["model.safetensors"])
            (self.snapshot() / "model.safetensors").resolve().unlink()

    def test_a_killed_fetch_goes_on(self):
        whole = len(self.repository.files["model.safetensors"])
        self.fault(match=self.repository.etag("model.safetensors"), stall=120_000, method="GET")
        process = self.start("models", "fetch", NAME)
        self.wait_for_part("model.safetensors", 60_000)
        process.kill()
        process.communicate()
        self.fetch()
        self.expect_whole(["model.safetensors"])
        first, second = self.bytes_asked("model.safetensors")
        self.assertEqual(first, "")
        self.assertTrue(
            60_000 <= int(second.removeprefix("bytes=").removesuffix("-")) < whole, second
        )

    def test_a_signal_ends_it_with_75_and_the_part_kept(self):
        self.fault(match=self.repository.etag("model.safetensors"), stall=120_000, method="GET")
        process = self.start("models", "fetch", NAME)
        self.wait_for_part("model.safetensors", 60_000)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, err)
        self.wait_for_part("model.safetensors", 60_000)
        self.fetch()
        self.expect_whole(["model.safetensors"])

    def test_random_kills_never_leave_a_wrong_file(self):
        draw = random.Random(5)
        self.fault(match="", pace=0.01, times=-1, method="GET")
        for _ in range(6):
            process = self.start("models", "fetch", NAME)
            time.sleep(draw.uniform(0.02, 0.6))
            process.kill()
            process.communicate()
            if self.snapshot().exists():
                for path in self.snapshot().iterdir():
                    self.assertEqual(path.read_bytes(), self.repository.files[path.name], path.name)
        self.hub.faults.clear()
        self.fetch()
        self.expect_whole(["config.json", "model.safetensors", "tokenizer.json"])

    def test_two_fetches_share_the_work(self):
        self.fault(match=self.repository.etag("model.safetensors"), pace=0.02, method="GET")
        both = [self.start("models", "fetch", NAME) for _ in range(2)]
        for process in both:
            _, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
        self.expect_whole(["model.safetensors"])
        self.assertEqual(len(self.bytes_asked("model.safetensors")), 1)

    def test_an_address_at_the_cdn_that_is_too_old_is_asked_for_again(self):
        self.fault(match=self.repository.etag("model.safetensors"), status=403, method="GET")
        self.fetch()
        self.expect_whole(["model.safetensors"])

    def test_redirects_in_a_circle_end(self):
        self.fault(
            match="/resolve/",
            status=302,
            headers={"Location": self.hub.url + "/org/tiny/resolve/main/x"},
            times=-1,
        )
        _, err = self.fetch(code=10)
        self.assertIn("redirected", err)

    def test_redirects_lead_to_web_hosts_only(self):
        self.fault(match="/api/", status=302, headers={"Location": "file:///etc/passwd"}, times=-1)
        _, err = self.fetch(code=10)
        self.assertIn("which is not allowed", err)

    def test_a_page_instead_of_an_answer_is_no_answer(self):
        self.fault(match="/api/", status=200, times=-1)
        _, err = self.fetch(code=10)
        self.assertIn("/api/models/org/tiny", err)

    def test_renamed_repositories_are_followed(self):
        self.hub.renamed["org/old"] = NAME
        self.run_convoy("models", "fetch", "org/old")
        self.assertTrue(
            (
                self.cache / "models--org--old/snapshots" / self.repository.commit / "config.json"
            ).exists()
        )


class Access(FetchCase):
    def test_the_token_goes_to_the_hub_alone(self):
        self.fetch(HF_TOKEN=Hub.token)
        self.assertTrue(any(r["cdn"] for r in self.hub.requests))
        for request in self.hub.requests:
            self.assertEqual(
                request["authorization"], "" if request["cdn"] else f"Bearer {Hub.token}", request
            )

    def test_a_proxy_is_asked_where_one_is_set(self):
        self.fetch(
            "--include",
            "config.json",
            HF_ENDPOINT="http://hub.invalid",
            http_proxy=self.hub.url,
            NO_PROXY="",
        )
        self.expect_whole(["config.json"])
        self.assertTrue(all(r["path"].startswith("http://hub.invalid/") for r in self.hub.requests))

    def test_without_a_token_nothing_is_sent(self):
        self.fetch()
        self.assertEqual({r["authorization"] for r in self.hub.requests}, {""})

    def test_where_the_token_comes_from(self):
        self.repository.private = True
        self.fetch(code=10)
        (self.home / "token").write_text(Hub.token + "\n")
        self.fetch("--dry-run")
        self.fetch("--dry-run", HF_HUB_DISABLE_IMPLICIT_TOKEN="1", code=10)
        (self.home / "token").unlink()
        elsewhere = self.home / "elsewhere"
        elsewhere.write_text(Hub.token)
        self.fetch("--dry-run", HF_TOKEN_PATH=str(elsewhere))
        self.fetch("--dry-run", HUGGING_FACE_HUB_TOKEN=Hub.token)
        self.fetch("--dry-run", HF_TOKEN=Hub.token, HUGGING_FACE_HUB_TOKEN="other")
        self.fetch("--dry-run", HF_TOKEN="two words", code=2)

    def test_gated_repositories_say_what_to_do(self):
        self.repository.gated = True
        for token in ({}, {"HF_TOKEN": "hf_of_another"}):
            _, err = self.fetch(code=10, **token)
            self.assertIn(f"{self.hub.url}/{NAME}", err)
            self.assertIn("terms", err)
        self.assertNotIn("hf_of_another", err)
        self.fetch(HF_TOKEN=Hub.token)

    def test_a_name_that_is_not_there(self):
        for token in ({}, {"HF_TOKEN": Hub.token}):
            _, err = self.run_convoy("models", "fetch", "org/absent", code=10, **token)
            self.assertIn("org/absent", err)
        for name in ("a/b/c", "../x", "-x/../y"):
            self.run_convoy("models", "fetch", "--", name, code=2)

    def test_offline_means_offline(self):
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
            self.fetch(code=2, **{name: "1"})
        self.assertEqual(self.hub.requests, [])

    def test_too_little_space_is_told_before_anything_is_fetched(self):
        etag = self.repository.etag("model.safetensors")
        self.hub.faults.append(
            {
                "match": "model.safetensors",
                "method": "HEAD",
                "status": 302,
                "times": -1,
                "headers": {
                    "X-Linked-ETag": f'"{etag}"',
                    "X-Linked-Size": str(1 << 49),
                    "Location": self.hub.cdn_url,
                },
            }
        )
        _, err = self.fetch(code=12)
        self.assertIn("free", err)
        self.assertEqual(self.bytes_asked("model.safetensors"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
