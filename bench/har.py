#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the activity classifier with Convoy and with PyTorch's DDP in turn: the same network, windows and batches.

  bench/har.py DATA [--convoy build/bin/convoy] [--python PYTHON_WITH_TORCH] [--ranks 2] [--epochs 4] [--rounds 3]
               [--dtype fp32|bf16] [--strategy ddp|dp] [--json]

DATA: the UCI HAR data set. For each round it prints the samples per second of both programs (training steps alone), their
accuracy on the test windows, and the ratio of the speeds. Without a Python that has torch (also: CONVOY_PEER_PYTHON) there
is no peer column.
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


def convoy_run(options):
    with tempfile.TemporaryDirectory() as folder:
        command = [
            options.convoy,
            "train",
            str(HERE.parent / "examples/har/har.yaml"),
            "--quiet",
            "--data-dir",
            options.data,
        ]
        command += [
            "--save-dir",
            folder,
            "--mode",
            "joint",
            "--epochs",
            str(options.epochs),
            "--multi-gpu",
            options.strategy,
        ]
        if options.strategy == "dp":
            command += [f"parallel.replicas={options.ranks}"]
        else:
            command += ["--nproc", str(options.ranks)]
        command += [
            "--lr",
            "1e-3",
            "train.lr_scheduler_type=constant",
            "classify.val_ratio=0",
            "train.save_strategy=no",
        ]
        command += [
            "train.early_stopping_patience=0",
            f"train.bf16={'true' if options.dtype == 'bf16' else 'false'}",
        ]
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        subprocess.run(
            command,
            check=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        results = json.loads((pathlib.Path(folder) / "training_results.json").read_text())
    return {"samples_per_second": results["samples_per_second"], "accuracy": results["test_acc"]}


def peer_run(options):
    command = [
        options.python,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(options.ranks),
    ]
    command += [str(HERE / "peers/ddp_har.py"), options.data, str(options.epochs)]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    ended = subprocess.run(
        command,
        check=True,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    results = json.loads(ended.stdout.strip().splitlines()[-1])
    return {"samples_per_second": results["samples_per_s"], "accuracy": results["test_accuracy"]}


def has_torch(python):
    return (
        subprocess.run(
            [python, "-c", "import torch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ).returncode
        == 0
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("--convoy", default="build/bin/convoy")
    parser.add_argument("--python", default=os.environ.get("CONVOY_PEER_PYTHON", sys.executable))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--strategy", choices=["ddp", "dp"], default="ddp")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    peer = has_torch(options.python)
    rounds = []
    for _ in range(options.rounds):
        row = {"convoy": convoy_run(options)}
        if peer:
            row["peer"] = peer_run(options)
            row["ratio"] = row["convoy"]["samples_per_second"] / row["peer"]["samples_per_second"]
        rounds.append(row)
        if not options.json:
            text = f"convoy {row['convoy']['samples_per_second']:7.0f} samples/s, accuracy {row['convoy']['accuracy']:.4f}"
            if peer:
                text += f"   peer {row['peer']['samples_per_second']:7.0f}, {row['peer']['accuracy']:.4f}   {row['ratio']:.2f}x"
            print(text, flush=True)
    ratio = statistics.median(row["ratio"] for row in rounds) if peer else None
    if options.json:
        print(
            json.dumps(
                {"ranks": options.ranks, "dtype": options.dtype, "rounds": rounds, "ratio": ratio}
            )
        )
    elif peer:
        print(f"median {ratio:.2f}x")


if __name__ == "__main__":
    main()
