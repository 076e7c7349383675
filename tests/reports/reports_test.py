# SPDX-License-Identifier: Apache-2.0
"""trackio and wandb read what `convoy train` writes for them, of a run that was resumed under another project.

Run with a Python that has trackio and wandb (reports_test.sh). CONVOY_BIN_DIR: the folder of the program.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from wandb_server import WandbServer

CONVOY = pathlib.Path(os.environ["CONVOY_BIN_DIR"]) / "convoy"
SOURCE = pathlib.Path(os.environ["CONVOY_SOURCE_DIR"])
TRACKIO = SOURCE / "tests/golden/reports/read_trackio.py"
PROJECT = "süms 数"


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.home = pathlib.Path(temporary.name)
        cls.run_folder = cls.home / "night"
        cls.environment = {
            **{
                key: os.environ[key]
                for key in ("PATH", "LD_LIBRARY_PATH", "CONVOY_TORCH")
                if key in os.environ
            },
            "HOME": str(cls.home),
            "OMP_NUM_THREADS": "1",
            "NO_PROXY": "*",
        }
        cls.first = cls.train("--ranks", "2")
        # The state of step 3 is the newest: steps 4 to 6 are done again.
        shutil.rmtree(cls.run_folder / "checkpoints/step-00000006")
        for name in ("last", "best"):
            (cls.run_folder / "checkpoints" / name).unlink(missing_ok=True)
        cls.second = cls.train("--ranks", "2", project="other")

    @classmethod
    def train(cls, *words, project=PROJECT):
        settings = {
            "train.steps": 6,
            "train.save_steps": 3,
            "train.eval_steps": 3,
            "train.load_best_model_at_end": "false",
            "train.logging_steps": 1,
            "train.report_to": "[wandb, trackio]",
            "train.project": project,
            "train.output_dir": cls.run_folder,
        }
        done = subprocess.run(
            [CONVOY, "train", "examples/sums/lora.yaml", *words]
            + [f"{key}={value}" for key, value in settings.items()],
            cwd=SOURCE,
            env=cls.environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return done.stderr

    def losses(self):
        """The loss of each step, by the run's own record."""
        lines = (self.run_folder / "events.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        steps = {row["step"]: row["loss"] for row in rows if row["event"] == "step"}
        self.assertEqual(sorted(steps), [1, 2, 3, 4, 5, 6])
        return steps

    def expect_losses(self, curve):
        losses = self.losses()
        self.assertEqual([step for step, _ in curve], [1, 2, 3, 4, 5, 6])
        for step, loss in curve:
            self.assertAlmostEqual(loss, losses[step], places=6)

    def test_the_start_says_where(self):
        for text in (self.first, self.second):
            self.assertRegex(text, "trackio: run night .*süms数.db; `trackio show --project .*süms")
            self.assertEqual(text.count("wandb sync"), 1, text)
        self.assertIn("resuming at step 3", self.second)
        self.assertNotIn("the run goes on in", self.first)
        self.assertEqual(self.second.count("warning: trackio: the run goes on in"), 1, self.second)
        self.assertIn(f"wandb: the run goes on in project {PROJECT}, ", self.second)
        self.assertEqual(len(list((self.home / ".cache/huggingface/trackio").glob("*.db"))), 1)

    def test_trackio_shows_the_run(self):
        read = subprocess.run(
            [sys.executable, TRACKIO, PROJECT],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        self.assertEqual(read.returncode, 0, read.stderr)
        told = json.loads(read.stdout)
        run_id = json.loads((self.run_folder / "report.json").read_text())["id"]
        self.assertEqual(told["runs"], [["night", run_id]])
        self.assertEqual(told["config"]["train"]["steps"], 6)
        self.expect_losses(told["loss"])
        self.assertEqual([step for step, _ in told["eval"]], [3, 6])

    def test_wandb_uploads_the_run(self):
        server = WandbServer()
        self.addCleanup(server.close)
        (folder,) = (self.run_folder / "wandb").glob("offline-run-*")
        synced = subprocess.run(
            [pathlib.Path(sys.executable).parent / "wandb", "sync", folder],
            env={
                **self.environment,
                "WANDB_BASE_URL": server.url,
                "WANDB_API_KEY": "a" * 40,
                "WANDB_ERROR_REPORTING": "false",
            },
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=240,
        )
        self.assertEqual(synced.returncode, 0, synced.stderr + synced.stdout)
        ((run_id, run),) = server.runs.items()
        self.assertEqual(run_id, json.loads((self.run_folder / "report.json").read_text())["id"])
        self.assertEqual((run["project"], run["name"]), (PROJECT, "night"))
        self.assertEqual(run["config"]["train"]["value"]["steps"], 6)
        history = run["history"]
        self.assertEqual([row["_step"] for row in history], list(range(len(history))))
        self.expect_losses(
            [
                (row["train/global_step"], row["train/loss"])
                for row in history
                if "train/loss" in row
            ]
        )
        evaluated = [row["train/global_step"] for row in history if "eval/loss" in row]
        self.assertEqual(evaluated, [3, 6])
        self.assertAlmostEqual(run["summary"]["train/loss"], self.losses()[6], places=6)
        self.assertEqual(run["exit_code"], 0)
        self.assertIn("convoy.json", run["files"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
