"""`convoy eval --tasks` beside the harness' own measurements: harness_test.py CONVOY PYTHON. PYTHON has lm-eval[api]."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

CONVOY, PYTHON = (sys.argv.pop(1) for _ in range(2))
MODEL = "examples/tally-3m"
TASKS = pathlib.Path("tests/harness/tasks")
GOLDEN = json.loads(pathlib.Path("tests/golden/harness/tasks.json").read_text())


def measure(*flags, python=PYTHON):
    command = [CONVOY, "eval", "--tasks-folder", TASKS, "--harness-python", python, *flags]
    return subprocess.run(command, capture_output=True, text=True)


class Harness(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_measures_as_with_transformers(self):
        golden = GOLDEN["tally-3m"]
        output = self.folder / "results"
        ended = measure(
            "--tasks", ",".join(golden), "--model", MODEL, "--dtype", "fp32", "--output", output
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        found = json.loads((output / "tasks.json").read_text())
        self.assertEqual(found["harness"], "0.4.13")
        for task, figures in golden.items():
            for key, wanted in figures.items():
                value = found["tasks"][task][key.removesuffix(",none")]
                self.assertAlmostEqual(value / wanted, 1, delta=5e-5, msg=f"{task} {key}")
            self.assertEqual(found["tasks"][task]["n"], 28)
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
        ended = measure("--tasks", "sums_next", "--model", MODEL, python="/usr/bin/python3")
        self.assertEqual(ended.returncode, 2)
        self.assertIn('pip install "lm-eval[api]"', ended.stderr)


if __name__ == "__main__":
    unittest.main()
