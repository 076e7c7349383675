# SPDX-License-Identifier: Apache-2.0
"""Tests the reports of a training on its devices, with whole programs on this machine's CPUs.

python3 training_test.py SOURCE_FOLDER PROGRAM_FOLDER
"""

import csv
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import machines

SOURCE, PROGRAMS = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


def children_of(pid):
    return [
        int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]


class Training(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {
            **machines.plain_environment(PROGRAMS),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "CONVOY_NVML_LIBRARY": "libno-such.so",
            "OMP_WAIT_POLICY": "PASSIVE",
        }

    def convoy(self, *arguments, code=0):
        run = subprocess.run(
            [PROGRAMS / "convoy", *arguments],
            env=self.environment,
            cwd=SOURCE,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        self.assertEqual(run.returncode, code, run.stderr)
        return run

    def train(self, *arguments, steps=12):
        return self.convoy(
            "train",
            "examples/sums/lora.yaml",
            f"train.steps={steps}",
            "train.final_eval=false",
            "--output-dir",
            str(self.folder / "run"),
            "--device-interval",
            "0.3",
            *arguments,
        )

    def metrics(self):
        return json.loads((self.folder / "run/metrics.json").read_text())

    def test_its_devices_are_told_kept_and_shown(self):
        begin, used_before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        run = self.train("--nproc", "2")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = used.ru_utime + used.ru_stime - used_before.ru_utime - used_before.ru_stime
        had_cores = min(
            1, cpu_s / (time.monotonic() - begin)
        )  # cores that the training got; few on a busy machine
        devices = self.metrics()["devices"]
        self.assertEqual(devices["gpus"], [])
        cores = devices["cpu"]["job_cpu_cores"]
        self.assertGreater(cores["mean"], 0.2 * had_cores)
        self.assertLessEqual(cores["mean"], os.cpu_count() + 0.5)
        self.assertGreater(devices["cpu"]["job_mem_mib"]["max"], 50)
        self.assertGreater(devices["tokens"], devices["supervised_tokens"])
        if devices["energy_j"] is None:
            self.assertIsNone(devices["joules_per_token"])
            self.assertTrue(devices["energy_reason"])
        self.assertIn("devices: CPUs: the job used ", run.stderr)
        self.assertEqual("energy: " in run.stderr, devices["energy_j"] is not None)
        shown = self.convoy("runs", "show", str(self.folder / "run")).stdout
        self.assertIn("devices: CPUs: the job used ", shown)
        with open(self.folder / "run/devices.csv", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["device"] == "host"]
        self.assertTrue(any(float(row["job_cpu_cores"] or 0) > 0.2 for row in rows))
        gaps = json.loads((self.folder / "run/devices.csv.meta.json").read_text())["unavailable"]
        blank = [gap["metric"] for gap in gaps if gap["device"] == "host"]
        self.assertNotIn("job_cpu_cores", blank)

    def test_the_share_of_the_peak_is_told_once_the_peak_is_known(self):
        run = self.train()
        self.assertNotIn("speed: ", run.stderr)
        self.assertNotIn("train_mfu", self.metrics())
        peaks = json.loads(
            self.convoy("bench", "peak", "--json", "--devices", "cpu").stdout.splitlines()[-1]
        )["peaks"]
        self.assertEqual([peak["dtype"] for peak in peaks], ["fp32", "bf16"])
        run = self.train(steps=24)  # continues the run
        self.assertIn("% of the measured peak", run.stderr)
        metrics = self.metrics()
        self.assertEqual(metrics["devices"]["tokens"], metrics["train_tokens"])
        self.assertLess(metrics["train_tokens"], metrics["tokens_seen"])
        self.assertGreater(metrics["train_mfu"], 0.001)
        self.assertLess(metrics["train_mfu"], 1)
        events = [
            json.loads(line) for line in (self.folder / "run/events.jsonl").read_text().splitlines()
        ]
        shares = [event.get("mfu") for event in events if event["event"] == "step"]
        self.assertIsNone(shares[0])
        self.assertTrue(0.001 < shares[-1] < 1, shares)

    def test_what_a_rank_could_not_write_of_is_in_the_events(self):
        train = subprocess.Popen(
            [
                PROGRAMS / "convoy",
                "train",
                "examples/sums/lora.yaml",
                "--output-dir",
                str(self.folder / "run"),
                "--nproc",
                "2",
                "-q",
            ],
            env=self.environment,
            cwd=SOURCE,
            stderr=subprocess.DEVNULL,
        )
        events = self.folder / "run/events.jsonl"
        ranks = []
        for _ in range(1200):
            time.sleep(0.05)
            ranks = [
                child
                for child in children_of(train.pid)
                if "convoy-worker" in pathlib.Path(f"/proc/{child}/cmdline").read_text()
            ]
            if events.exists() and '"step"' in events.read_text() and len(ranks) == 2:
                break
        os.kill(ranks[1], signal.SIGSTOP)
        self.assertEqual(train.wait(1200), 13)
        last = json.loads(events.read_text().splitlines()[-1])
        self.assertEqual((last["event"], last["code"], last["kind"]), ("failure", 13, "silent"))
        self.assertIn("SIGSTOP", last["message"])

    def test_a_driver_that_hangs_costs_the_figures_and_not_the_run(self):
        self.environment.update(machines.plain_environment(PROGRAMS))
        self.environment.update(machines.lay_out(SOURCE, "h200x8", self.folder / "root"))
        described = json.loads((SOURCE / "tests/machines/h200x8.json").read_text())
        described["nvml"]["hangs_at_ms"] = 1500
        (self.folder / "hangs.json").write_text(json.dumps(described))
        self.environment["FAKE_NVML_SCENARIO"] = str(self.folder / "hangs.json")
        run = self.train("--devices", "cpu", steps=6)
        self.assertIn("the GPU driver does not answer", run.stderr)
        self.assertNotIn("devices", self.metrics())

    def test_watching_eight_gpus_beside_it_is_cheap(self):
        self.environment.update(machines.plain_environment(PROGRAMS))
        self.environment.update(machines.lay_out(SOURCE, "h200x8", self.folder / "root"))
        looks_per_second = 10  # many, so that their cost is measurable
        self.train(
            "--devices",
            "cpu",
            "--device-interval",
            str(1 / looks_per_second),
            "logging.backend=tensorboard",
            steps=30,
        )
        cost = json.loads((self.folder / "run/devices.csv.meta.json").read_text())["summary"][
            "own_cost"
        ]
        print(
            f"8 GPUs beside a training at 1 Hz: {cost['core_percent'] / looks_per_second:.3f} % of one core"
        )
        self.assertLess(cost["core_percent"] / looks_per_second, 0.5)
        self.assertTrue(list((self.folder / "run/tb/devices").iterdir()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
