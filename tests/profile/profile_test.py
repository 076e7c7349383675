#!/usr/bin/env python3
"""Runs `convoy profile` on real trainings: profile_test.py SOURCE_FOLDER PROGRAM_FOLDER

Perfetto's trace processor reads the traces; its sums in SQL equal the figures of the report. PERFETTO_UI: see trace_processor.mjs."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

SOURCE, PROGRAMS = map(pathlib.Path, sys.argv[1:3])
ENVIRONMENT = {
    **os.environ,
    "OMP_WAIT_POLICY": "PASSIVE",
}  # spinning threads would take cores from other processes
CONFIG = "examples/sums/lora.yaml"
TRAIN = ("train", CONFIG, "train.final_eval=false")


def convoy(*words, cwd, status=0):
    ended = subprocess.run(
        [PROGRAMS / "convoy", *map(str, words)],
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert ended.returncode == status, (
        f"{words}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    )
    return ended


def opened(trace):
    return TraceProcessor(
        trace=str(trace),
        config=TraceProcessorConfig(bin_path=str(SOURCE / "tests/profile/trace_processor.mjs")),
    )


def rows(processor, sql):
    return [vars(row) for row in processor.query(sql)]


# Slices with the name of their rank: the name of the parent track, or else of their own track.
SLICES = """
  select slice.name as name, slice.category as category, slice.ts as ts, slice.dur as dur, slice.depth as depth,
         coalesce(above.name, track.name) as rank
  from slice join track on slice.track_id = track.id left join track as above on track.parent_id = above.id
"""


class Profile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.work.name)
        (cls.folder / "examples").symlink_to(SOURCE / "examples")
        cls.ended = convoy(
            "profile",
            CONFIG,
            "tuning.mode=full",
            "parallel.bucket_mb=1",
            "--nproc",
            2,
            "--steps",
            "3:6",
            "--output-dir",
            "looked-at",
            cwd=cls.folder,
        )
        cls.many = cls.folder / "looked-at/ranks"
        cls.report = json.loads(
            convoy("profile", "report", cls.many, "--json", cwd=cls.folder).stdout
        )

    @classmethod
    def tearDownClass(cls):
        cls.work.cleanup()

    def test_says_where_the_time_goes_of_many_ranks_and_one(self):
        text = self.ended.stdout
        for words in [
            "looked-at/ranks: steps 3 to 6 of 2 ranks",
            "  computing",
            "    backward",
            "  waiting for collectives",
            "  waiting for data",
            "  the host's own work",
            "world all_reduce",
            "tracing took about",
            "steps took ",
            "1 rank",
            "2 ranks, mean",
            "tokens/s beside ",
            "could do ",
        ]:
            self.assertIn(words, text)
        self.assertFalse((self.many / "model").exists(), "the weights of a few steps are nobody's")
        self.assertTrue((self.many / "traces/run.perfetto-trace").exists())
        self.assertEqual(convoy("profile", "report", "looked-at", cwd=self.folder).stdout, text)

    def test_no_folder_of_others_is_touched(self):
        (self.folder / "mine/ranks/adapter").mkdir(parents=True)
        ended = convoy(
            "profile", CONFIG, "--steps", 1, "--output-dir", "mine", cwd=self.folder, status=2
        )
        self.assertIn("mine is not a profile's folder", ended.stderr)
        self.assertTrue((self.folder / "mine/ranks/adapter").exists())

    def test_replicas_are_compared_with_one(self):
        ended = convoy(
            "profile",
            CONFIG,
            "parallel.strategy=dp",
            "parallel.replicas=2",
            "--steps",
            2,
            "--output-dir",
            "replicas",
            "--json",
            cwd=self.folder,
        )
        record = json.loads(ended.stdout)
        self.assertEqual([record["first"]["world_size"], record["second"]["world_size"]], [1, 2])
        self.assertGreater(record["speedup"], 0)

    def test_perfetto_finds_the_slices_of_every_rank(self):
        with opened(self.many / "traces/run.perfetto-trace") as processor:
            slices = rows(processor, SLICES)
            faults = rows(
                processor,
                "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
            )
            counters = rows(
                processor,
                """select counter_track.name as name, unit, count(*) as looks, min(value) as least
                                          from counter join counter_track on counter.track_id = counter_track.id group by 1, 2""",
            )
        self.assertEqual(faults, [])
        ranks = {row["rank"] for row in slices}
        self.assertEqual(len(ranks), 2)
        for number, rank in enumerate(sorted(ranks)):
            self.assertTrue(rank.startswith(f"rank {number} ("), rank)
            own = [row for row in slices if row["rank"] == rank]
            steps = [row for row in own if row["category"] == "step"]
            self.assertEqual(
                [row["name"] for row in steps], [f"step {number}" for number in range(3, 7)]
            )
            phases = {
                row["name"] for row in own if row["category"] == "phase" and row["depth"] == 1
            }
            self.assertLessEqual({"data", "forward", "backward", "reduce", "optimize"}, phases)
            begin, end = steps[0]["ts"], steps[-1]["ts"] + steps[-1]["dur"]
            backward = [row for row in own if row["name"] == "backward"]
            reductions = [
                row
                for row in own
                if row["category"] == "collective" and row["name"] == "world all_reduce"
            ]
            self.assertGreater(len(reductions), 4 * 6)
            hidden = [
                row
                for row in reductions
                if any(phase["ts"] < row["ts"] < phase["ts"] + phase["dur"] for phase in backward)
            ]
            self.assertGreater(len(hidden), len(reductions) / 2)
            for row in own:
                self.assertGreater(row["dur"], -1, f"{row} never ends")
                self.assertTrue(begin <= row["ts"] <= end, row)
        self.assertIn("host_cpu_pct", {row["name"] for row in counters})

    def test_the_report_is_what_sql_adds_up(self):
        with opened(self.many / "traces/run.perfetto-trace") as processor:
            slices = rows(processor, SLICES)
        for rank in self.report["ranks"]:
            own = [row for row in slices if row["rank"] == f"rank {rank['rank']} ({rank['host']})"]

            def total(**wanted):
                return (
                    sum(
                        row["dur"]
                        for row in own
                        if all(row[key] == value for key, value in wanted.items())
                    )
                    / 4e6
                )

            self.assertAlmostEqual(rank["step_ms"], total(category="step"), places=3)
            self.assertAlmostEqual(
                rank["communication_exposed_ms"], total(category="wait"), places=3
            )
            self.assertAlmostEqual(rank["data_ms"], total(name="data"), places=3)
            phases = total(category="phase")
            self.assertAlmostEqual(rank["host_ms"], rank["step_ms"] - phases, places=3)
            kinds = [
                "compute_ms",
                "communication_exposed_ms",
                "data_ms",
                "evaluation_ms",
                "host_ms",
            ]
            self.assertAlmostEqual(sum(rank[kind] for kind in kinds), rank["step_ms"], places=6)
            self.assertLess(rank["tracing_ms"], 0.01 * rank["step_ms"])

    def test_a_rank_s_own_trace_opens_too(self):
        with opened(self.many / "traces/rank-1.json") as processor:
            names = {row["name"] for row in rows(processor, "select distinct name from slice")}
        self.assertLessEqual({"step 3", "forward", "world all_reduce"}, names)

    def test_a_training_traces_what_it_is_told(self):
        convoy(
            *TRAIN,
            "train.steps=4",
            "--profile-steps",
            "2:3",
            "--output-dir",
            "run",
            cwd=self.folder,
        )
        ended = convoy("profile", "report", "run", "--output", "timeline.pftrace", cwd=self.folder)
        self.assertIn("run: steps 2 to 3 of 1 rank\n", ended.stdout)
        with opened(self.folder / "timeline.pftrace") as processor:
            steps = rows(processor, "select name from slice where category = 'step'")
        self.assertEqual([row["name"] for row in steps], ["step 2", "step 3"])

    def test_what_cannot_be_traced_is_said(self):
        ended = convoy(
            *TRAIN,
            "train.steps=2",
            "--profile-steps",
            "9:3",
            "--output-dir",
            "no",
            cwd=self.folder,
            status=2,
        )
        self.assertIn(
            'logging.profile_steps: the last step comes before the first, found "9:3"', ended.stderr
        )
        ended = convoy(
            *TRAIN,
            "train.steps=2",
            "--profile-steps",
            "5:9",
            "--output-dir",
            "short",
            cwd=self.folder,
        )
        self.assertIn("no step was traced: this training took none of steps 5 to 9", ended.stderr)
        ended = convoy("profile", "report", "short", cwd=self.folder, status=2)
        self.assertIn("holds no traces", ended.stderr)
        ended = convoy(
            *TRAIN,
            "train.steps=3",
            "--profile-steps",
            "2:9",
            "--output-dir",
            "cut",
            cwd=self.folder,
        )
        self.assertIn("2 of 8 steps were traced", ended.stderr)

    def test_traces_are_there_while_the_training_goes_on(self):
        training = subprocess.Popen(
            [
                PROGRAMS / "convoy",
                *TRAIN,
                "train.steps=100000",
                "--profile-steps",
                "3:4",
                "--output-dir",
                "live",
            ],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        trace = self.folder / "live/traces/rank-0.json"
        deadline = time.monotonic() + 1200
        while not trace.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertIsNone(training.poll())
        ended = convoy("profile", "report", "live", cwd=self.folder)
        self.assertIn("live: steps 3 to 4 of 1 rank", ended.stdout)
        training.terminate()
        self.assertEqual(training.wait(timeout=1200), 75)

    def test_traces_of_an_earlier_start_are_not_mixed_in(self):
        for ranks in [2, 1]:
            convoy(
                *TRAIN,
                "train.steps=4",
                "--nproc",
                ranks,
                "--profile-steps",
                "2:3",
                "--output-dir",
                "twice",
                "--resume",
                "never",
                cwd=self.folder,
            )
        self.assertIn(
            "twice: steps 2 to 3 of 1 rank\n",
            convoy("profile", "report", "twice", cwd=self.folder).stdout,
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
