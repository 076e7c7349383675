# SPDX-License-Identifier: Apache-2.0
"""Tests a job when a GPU of one of its ranks breaks, with whole programs and the fake NVML.

python3 faults_test.py SOURCE_FOLDER PROGRAM_FOLDER
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import machines

SOURCE, PROGRAMS = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


class Faults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {
            **machines.plain_environment(PROGRAMS),
            **machines.lay_out(SOURCE, "lost", self.folder / "root"),
        }

    def launch(
        self, gpu, *arguments, program=("sleep", "900"), count=4, environment=None, driver=None
    ):
        """Runs `convoy launch`. `gpu`: figures of the third of four GPUs."""
        described = json.loads((SOURCE / "tests/machines/lost.json").read_text())
        described["nvml"]["gpus"][2].pop("xids")
        described["nvml"]["gpus"][2].pop("lost_at")
        described["nvml"]["gpus"][2].update(gpu)
        described["nvml"].update(driver or {})
        scenario = self.folder / "scenario.json"
        scenario.write_text(json.dumps(described))
        begin = time.monotonic()
        run = subprocess.run(
            [PROGRAMS / "convoy", "launch", "--nproc-per-node", str(count), *arguments, *program],
            env={**self.environment, "FAKE_NVML_SCENARIO": str(scenario), **(environment or {})},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        self.seconds = time.monotonic() - begin
        return run

    def test_a_fatal_xid_of_a_ranks_gpu_ends_the_job(self):
        run = self.launch({"xids_at_ms": {"500": 79}})
        self.assertEqual(run.returncode, 14, run.stderr)
        self.assertLess(self.seconds, 600)
        last = json.loads(run.stderr.splitlines()[-1])
        self.assertEqual((last["code"], last["kind"], last["rank"]), (14, "device", 2))
        for word in ("gpu2", "0000:34:00.0", "Xid 79", "fallen off the bus", "PCIe slot"):
            self.assertIn(word, last["message"])
        self.assertIn("PCIe slot", last["hint"])

    def test_a_lost_gpu_ends_the_job_without_an_xid(self):
        run = self.launch({"lost_at_ms": 500})
        self.assertEqual(run.returncode, 14, run.stderr)
        self.assertIn("gpu2 (NVIDIA H100 80GB HBM3, 0000:34:00.0) is lost: GPU is lost", run.stderr)

    def test_it_can_be_flagged_only(self):
        run = self.launch(
            {"xids_at_ms": {"300": 79}}, "--on-device-fault", "flag", program=("sleep", "1")
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr.count("Xid 79"), 1)

    def test_the_variable_of_the_flag_counts(self):
        run = self.launch(
            {"xids_at_ms": {"300": 79}},
            program=("sleep", "1"),
            environment={"PET_ON_DEVICE_FAULT": "flag"},
        )
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_faults_that_are_not_fatal_are_told_once(self):
        run = self.launch(
            {"xids_at_ms": {"200": 63, "300": 63, "400": 13, "500": 13}}, program=("sleep", "1.5")
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(
            (run.stderr.count("Xid 63"), run.stderr.count("Xid 13")), (1, 1), run.stderr
        )

    def test_gpus_without_a_rank_do_not_matter(self):
        run = self.launch({"xids_at_ms": {"200": 79}}, program=("sleep", "1"), count=2)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("Xid", run.stderr)

    def test_a_restart_goes_on_after_it(self):
        run = self.launch(
            {"xids_at_ms": {"500": 48}},
            "--max-restarts",
            "1",
            program=("--no-python", "sh", "-c", "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || sleep 900"),
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("Xid 48", run.stderr)
        self.assertLess(self.seconds, 600)

    def test_a_gpu_that_stays_lost_fails_every_attempt(self):
        run = self.launch({"lost_at_ms": 300}, "--max-restarts", "1")
        self.assertEqual(run.returncode, 14, run.stderr)
        self.assertGreaterEqual(run.stderr.count("is lost: GPU is lost"), 2)

    def test_a_driver_that_hangs_does_not_hold_up_the_end(self):
        run = self.launch({}, program=("sleep", "1.5"), driver={"hangs_at_ms": 300})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertLess(self.seconds, 600)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
