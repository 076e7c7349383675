# SPDX-License-Identifier: Apache-2.0
"""Compares the planned memory of trainings and engines with measured peaks: memory_test.py CONVOY [FILE.gguf]."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CONVOY = sys.argv.pop(1)
SMOLLM2 = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
TALLY = SOURCE / "examples/tally-3m"
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
# Runs a command and prints the peak of the largest of its processes, in KiB.
MEASURE = (
    "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
    "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)"
)


def run(*words):
    ended = subprocess.run(
        [sys.executable, "-c", MEASURE, CONVOY, *map(str, words)], capture_output=True, text=True
    )
    if ended.returncode != 0:
        raise AssertionError(f"{words}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
    return ended.stderr


def bytes_of(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


class Memory(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def check(self, planned, peak, said):
        print(
            f"{self.id()}: planned {planned / 2**20:.0f} MiB, peak {peak / 2**20:.0f} MiB, {planned / peak:.3f}",
            file=sys.stderr,
        )
        self.assertLess(abs(planned / peak - 1), 0.1, said)

    def trains_as_planned(self, config, *words):
        run_folder = self.path / "run"
        said = run("train", config, *words, "--run-dir", run_folder)
        figures = json.loads((run_folder / "metrics.json").read_text())
        self.check(figures["planned_memory_bytes"], max(figures["rank_peak_memory_bytes"]), said)

    def generates_as_planned(self, model, prompt, tokens, *words):
        rows = self.path / "prompts.jsonl"
        rows.write_text(
            "".join(json.dumps({"prompt": f"{prompt} {number}"}) + "\n" for number in range(16))
        )
        said = run(
            "generate",
            "--model",
            model,
            "--prompts",
            rows,
            "--max-new-tokens",
            tokens,
            "--temperature",
            1,
            "--chat",
            "off",
            "--json",
            *words,
        )
        planned = bytes_of(re.search(r"memory of an engine: (\S+ \S+) = ", said)[1])
        self.check(planned, int(re.search(r"peak (\d+)", said)[1]) << 10, said)

    def evaluates_as_planned(self, model, *words):
        rows = self.path / "rows.jsonl"
        rows.write_text(
            "".join(
                json.dumps(
                    {"prompt": f"The history of {number}:", "completion": " It is long." * 20}
                )
                + "\n"
                for number in range(32)
            )
        )
        said = run(
            "eval", "--model", model, "--data", rows, "--output-dir", self.path / "results", *words
        )
        planned = bytes_of(re.search(r"memory of an engine: (\S+ \S+) = ", said)[1])
        self.check(planned, int(re.search(r"peak (\d+)", said)[1]) << 10, said)

    def sums(self, *words):
        self.trains_as_planned(
            SOURCE / "examples/sums/lora.yaml",
            f"model.name={TALLY}",
            f"data.train_path={SOURCE / 'examples/sums/train.jsonl'}",
            f"data.val_path={SOURCE / 'examples/sums/test.jsonl'}",
            "train.steps=6",
            *words,
        )

    def test_full_tally_in_bf16(self):
        self.sums("tuning.mode=full", "train.bf16=true")

    def test_full_tally_in_fp32(self):
        self.sums("tuning.mode=full", "train.bf16=false")

    def test_lora_tally(self):
        self.sums("train.bf16=auto")

    def test_pairs(self):
        for words in (
            ("train.steps=12",),
            ("train.steps=2", "train.packing=true", "train.batch_size=1"),
        ):
            with self.subTest(words=words):
                self.trains_as_planned(
                    SOURCE / "examples/preferences/dpo.yaml",
                    f"model.name={TALLY}",
                    f"data.train_path={SOURCE / 'examples/preferences/train.jsonl'}",
                    f"data.val_path={SOURCE / 'examples/preferences/test.jsonl'}",
                    "train.bf16=true",
                    "train.resume_from_checkpoint=never",
                    *words,
                )

    def test_sensor_windows(self):
        said = run(
            "train",
            SOURCE / "examples/har/har.yaml",
            f"classify.data_dir={SOURCE / 'examples/har/sample'}",
            "train.steps=20",
            "--run-dir",
            self.path / "run",
        )
        planned = bytes_of(re.search(r"memory of a rank: (\S+ \S+) = ", said)[1])
        self.check(planned, int(re.search(r"peak (\d+)", said)[1]) << 10, said)

    def test_tally_generates(self):
        self.generates_as_planned(TALLY, "Question: what is 3 + 4?", 64)

    @unittest.skipIf(SMOLLM2 is None, "without SmolLM2")
    def test_lora_smollm2(self):
        for bf16 in ("true", "false"):
            with self.subTest(bf16=bf16):
                self.trains_as_planned(
                    SOURCE / "examples/orders/lora.yaml",
                    f"model.name={SMOLLM2}",
                    f"data.train_path={SOURCE / 'examples/orders/train.jsonl'}",
                    "train.steps=3",
                    f"train.bf16={bf16}",
                    "train.resume_from_checkpoint=never",
                )

    @unittest.skipIf(SMOLLM2 is None, "without SmolLM2")
    def test_smollm2_is_evaluated(self):
        for words in (
            ("--dtype", "fp32"),
            ("--dtype", "bf16"),
            ("--dtype", "fp32", "--generate", "--max-new-tokens", "16"),
        ):
            with self.subTest(words=words):
                self.evaluates_as_planned(SMOLLM2, *words)

    @unittest.skipIf(SMOLLM2 is None, "without SmolLM2")
    def test_smollm2_generates(self):
        for dtype in ("bf16", "fp32"):
            with self.subTest(dtype=dtype):
                self.generates_as_planned(SMOLLM2, "The history of", 32, "--dtype", dtype)


unittest.main()
