#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of learning from rewards with Convoy and with TRL in turn: the same model, problems, samples, limit of tokens and threads.

  bench/grpo.py [--model examples/tally-3m] [--data examples/sums/train.jsonl] [--prompt examples/sums/prompt.txt]
                [--tuning lora|full] [--loss dapo] [--problems 8] [--samples 8] [--new-tokens 96] [--steps 8] [--threads 1]
                [--rounds 3] [--convoy build/bin/convoy] [--peer-python PYTHON_WITH_TRL] [--json]

Per round the median seconds of a step after the first, of both, and the ratio. Both draw texts of their own, by a rate that leaves
the model as it is; the mean tokens of a text and the mean reward beside it say that both do the same work. Memory is the largest
resident size of a process, with Python's imports and LibTorch in it. Without a Python that has trl (also: CONVOY_PEER_PYTHON)
there is no peer column.
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
    """What the command printed, and the peak MiB of its largest process."""
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
            str(HERE.parent / "examples/sums/grpo.yaml"),
            "--quiet",
            "--run-dir",
            folder + "/run",
            f"model.name={options.model}",
            f"data.train_path={options.data}",
            "data.val_path=",
            "data.shuffle=false",
            f"rollout.prompt={options.prompt}",
            f"rollout.samples={options.samples}",
            f"rollout.max_new_tokens={options.new_tokens}",
            f"policy.loss={options.loss}",
            f"tuning.mode={options.tuning}",
            f"train.steps={options.steps}",
            f"train.batch_size={options.problems}",
            "train.learning_rate=1e-6",
            "train.weight_decay=0",
            "train.eval_strategy=no",
            "train.save_strategy=no",
        ]
        environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
        _, peak_mib = run(command, environment)
        lines = pathlib.Path(folder, "run/events.jsonl").read_text().splitlines()
    steps = [event for event in map(json.loads, lines) if event["event"] == "step"]
    return {
        "seconds": [step["seconds"] for step in steps[1:]],
        "tokens": statistics.mean(step["completions/mean_length"] for step in steps[1:]),
        "rewards": [step["reward"] for step in steps],
        "peak_mib": peak_mib,
    }


def peer_run(options):
    command = [options.peer_python, str(HERE / "peers/trl_grpo.py")]
    command += [options.model, options.data, options.prompt, options.tuning]
    command += map(str, (options.problems, options.samples, options.new_tokens, options.loss))
    command += map(str, (options.steps, options.threads))
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


def figures(found):
    return {
        "seconds": statistics.median(found["seconds"]),
        "tokens": found["tokens"],
        "reward": statistics.mean(found["rewards"]),
        "peak_mib": found["peak_mib"],
    }


def text_of(name, found):
    return (
        f"{name} {found['seconds']:.3f} s a step, {found['tokens']:.0f} tokens a text, reward {found['reward']:.2f},"
        f" {found['peak_mib']:.0f} MiB"
    )


def compare(options, peer):
    rounds = []
    for _ in range(options.rounds):
        row = {"convoy": figures(convoy_run(options))}
        text = text_of("convoy", row["convoy"])
        if peer:
            row["peer"] = figures(peer_run(options))
            row["ratio"] = row["peer"]["seconds"] / row["convoy"]["seconds"]
            row["memory_ratio"] = row["convoy"]["peak_mib"] / row["peer"]["peak_mib"]
            text += f"   {text_of('TRL', row['peer'])}   {row['ratio']:.2f}x, memory {row['memory_ratio']:.2f}x"
        rounds.append(row)
        if not options.json:
            print(text, flush=True)
    ratio = statistics.median(row["ratio"] for row in rounds) if peer else None
    if options.json:
        names = ("tuning", "loss", "problems", "samples", "new_tokens", "threads")
        settings = {name: getattr(options, name) for name in names}
        print(json.dumps({**settings, "rounds": rounds, "ratio": ratio}))
    elif peer:
        print(f"median {ratio:.2f}x")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="examples/tally-3m")
    parser.add_argument("--data", default="examples/sums/train.jsonl")
    parser.add_argument("--prompt", default="examples/sums/prompt.txt")
    parser.add_argument("--tuning", choices=["lora", "full"], default="lora")
    parser.add_argument("--loss", choices=["grpo", "dapo", "dr_grpo", "bnpo"], default="dapo")
    parser.add_argument("--problems", type=int, default=8)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--new-tokens", type=int, default=96)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--convoy", default="build/bin/convoy")
    parser.add_argument(
        "--peer-python", default=os.environ.get("CONVOY_PEER_PYTHON", sys.executable)
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    compare(options, has_trl(options.peer_python))


if __name__ == "__main__":
    main()
