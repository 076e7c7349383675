#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of DPO with Convoy and with TRL in turn, on the same pairs in the same order and the same threads.

  bench/preferences.py [--model examples/tally-3m] [--data examples/preferences/train.jsonl] [--tuning lora|full]
                       [--pairs 8] [--steps 12] [--threads 1] [--rounds 3] [--convoy build/bin/convoy]
                       [--peer-python PYTHON_WITH_TRL] [--json]

For each round it prints the median seconds of a step after the first two, of both programs, and the ratio. The largest difference of a
loss shows that both do the same work. With --tuning lora only the first loss is compared, because each program draws its own adapter.
Memory is the largest resident size of a process, with Python's imports and LibTorch in it. Without a Python that has trl (also:
CONVOY_PEER_PYTHON) there is no peer column.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(command, environment):
    """Returns the output of the command, and the peak MiB of its largest process."""
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return printed, used.ru_maxrss / 1024


def convoy_run(options):
    with tempfile.TemporaryDirectory() as folder:
        command = [
            options.convoy,
            "train",
            str(HERE.parent / "examples/preferences/dpo.yaml"),
            "--quiet",
            "--run-dir",
            folder + "/run",
        ]
        command += [
            f"model.name={options.model}",
            f"data.train_path={options.data}",
            "data.val_path=",
            "data.split.val_ratio=0",
        ]
        command += [
            "data.shuffle=false",
            "data.cache_dir=none",
            f"tuning.mode={options.tuning}",
            f"train.steps={options.steps}",
        ]
        command += [
            f"train.batch_size={options.pairs}",
            "train.learning_rate=1e-4",
            "train.lr_scheduler_type=constant",
        ]
        command += [
            "train.weight_decay=0",
            "train.eval_strategy=no",
            "train.save_strategy=no",
            "train.metric_for_best_model=eval_loss",
        ]
        environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
        _, peak_mib = run(command, environment)
        events = [
            json.loads(line)
            for line in pathlib.Path(folder, "run/events.jsonl").read_text().splitlines()
        ]
    steps = [event for event in events if event["event"] == "step"]
    return {
        "seconds": [step["seconds"] for step in steps[2:]],
        "losses": [step["loss"] for step in steps],
        "peak_mib": peak_mib,
    }


def peer_run(options):
    command = [
        options.peer_python,
        str(HERE / "peers/trl_dpo.py"),
        options.model,
        options.data,
        options.tuning,
        str(options.pairs),
        str(options.steps),
        str(options.threads),
    ]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    printed, peak_mib = run(command, environment)
    return {**json.loads(printed.strip().splitlines()[-1]), "peak_mib": peak_mib}


def has_trl(python):
    return (
        subprocess.run(
            [python, "-c", "import trl"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ).returncode
        == 0
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="examples/tally-3m")
    parser.add_argument("--data", default="examples/preferences/train.jsonl")
    parser.add_argument("--tuning", choices=["lora", "full"], default="lora")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--convoy", default="build/bin/convoy")
    parser.add_argument(
        "--peer-python", default=os.environ.get("CONVOY_PEER_PYTHON", sys.executable)
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    peer = has_trl(options.peer_python)
    with tempfile.TemporaryDirectory() as folder:
        # Both programs score all rows of the file before the first step, so the file has only the rows
        # that the steps use.
        lines = pathlib.Path(options.data).read_text().splitlines(keepends=True)
        options.data = str(pathlib.Path(folder, "pairs.jsonl"))
        pathlib.Path(options.data).write_text("".join(lines[: options.pairs * options.steps]))
        compare(options, peer)


def compare(options, peer):
    rounds = []
    for _ in range(options.rounds):
        convoy = convoy_run(options)
        row = {
            "convoy_seconds": statistics.median(convoy["seconds"]),
            "convoy_peak_mib": convoy["peak_mib"],
        }
        text = f"convoy {row['convoy_seconds']:.3f} s a step, {row['convoy_peak_mib']:.0f} MiB"
        if peer:
            other = peer_run(options)
            row["peer_seconds"] = statistics.median(other["seconds"])
            row["peer_peak_mib"] = other["peak_mib"]
            row["ratio"] = row["peer_seconds"] / row["convoy_seconds"]
            row["memory_ratio"] = row["convoy_peak_mib"] / row["peer_peak_mib"]
            compared = len(convoy["losses"]) if options.tuning == "full" else 1
            row["loss_difference"] = max(
                abs(a - b) for a, b in zip(convoy["losses"][:compared], other["losses"][:compared])
            )
            text += (
                f"   TRL {row['peer_seconds']:.3f}, {row['peer_peak_mib']:.0f} MiB"
                f"   {row['ratio']:.2f}x, memory {row['memory_ratio']:.2f}x"
                f"   losses differ by {row['loss_difference']:.1e}"
            )
        rounds.append(row)
        if not options.json:
            print(text, flush=True)
    ratio = statistics.median(row["ratio"] for row in rounds) if peer else None
    if options.json:
        print(
            json.dumps(
                {
                    "tuning": options.tuning,
                    "pairs": options.pairs,
                    "threads": options.threads,
                    "rounds": rounds,
                    "ratio": ratio,
                }
            )
        )
    elif peer:
        print(f"median {ratio:.2f}x")


if __name__ == "__main__":
    main()
