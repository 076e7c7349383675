#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training and greedy decoding of a model of Qwen3.5's form (Gated DeltaNet and attention), in turn with transformers.

  bench/hybrid.py --peer-python PYTHON [--batch 4] [--steps 8] [--threads 1] [--rounds 3] [--convoy build/bin/convoy] [--json]

Random weights, fp32, the tokenizer of examples/tally-3m, rows of about 200 tokens of examples/sums, all weights trained. PYTHON has torch and
transformers, but neither flash-linear-attention nor causal-conv1d, which do not run on CPUs. For each round it prints the median seconds of a
training step after the first two, the seconds of a new token of 8 answers that are generated together, and the ratios. The time of a token is
the difference between a long and a short run, so that start, loading and prompts do not count. The largest difference of a loss and the number
of equal answers show that both programs do the same work.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PEER = str(HERE / "peers/hf_hybrid.py")
TOKENIZER = str(HERE.parent / "examples/tally-3m")
ANSWERS = 8
SHORT, LONG = 16, 144  # new tokens


def run(command, threads):
    return subprocess.run(
        command,
        env=dict(os.environ, OMP_NUM_THREADS=str(threads), CUDA_VISIBLE_DEVICES=""),
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ).stdout


def write_rows(path, rows):
    pathlib.Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_inputs(folder, count):
    sums = [
        json.loads(line)
        for line in (HERE.parent / "examples/sums/train.jsonl").read_text().splitlines()
    ]
    texts = [f"Question: {row['question']}\nAnswer: {row['answer']}\n" for row in sums]
    rows = [
        {"prompt": "Sums.\n", "completion": "".join(texts[place * 3 : place * 3 + 3])}
        for place in range(count)
    ]
    write_rows(folder / "rows.jsonl", rows)
    # All prompts have the same number of tokens, so that the peer pads nothing.
    prompts = [
        {"prompt": "Question: " + " ".join(f"{(place * 37 + at) % 90 + 10}" for at in range(16))}
        for place in range(ANSWERS)
    ]
    write_rows(folder / "prompts.jsonl", prompts)


def convoy_train(options, folder):
    with tempfile.TemporaryDirectory() as runs:
        settings = {
            "model.name": folder / "model",
            "model.max_seq_len": 1024,
            "data.train_path": folder / "rows.jsonl",
            "data.val_path": "",
            "data.split.val_ratio": 0,
            "data.shuffle": "false",
            "data.cache_dir": "none",
            "tuning.mode": "full",
            "train.bf16": "false",
            "train.steps": options.steps,
            "train.batch_size": options.batch,
            "train.learning_rate": 1e-4,
            "train.lr_scheduler_type": "constant",
            "train.warmup_ratio": 0,
            "train.weight_decay": 0,
            "train.max_grad_norm": 1,
            "train.eval_strategy": "no",
            "train.save_strategy": "no",
            "train.logging_steps": 1,
        }
        command = [options.convoy, "train", str(HERE.parent / "examples/sums/lora.yaml"), "--quiet"]
        command += ["--run-dir", runs + "/run"]
        command += [f"{key}={value}" for key, value in settings.items()]
        run(command, options.threads)
        events = pathlib.Path(runs, "run/events.jsonl").read_text().splitlines()
    steps = [event for event in map(json.loads, events) if event["event"] == "step"]
    return {
        "seconds": [step["seconds"] for step in steps[2:]],
        "losses": [step["loss"] for step in steps],
    }


def convoy_generate(options, folder, tokens):
    command = [options.convoy, "generate", "--model", str(folder / "model"), "--prompts"]
    command += [str(folder / "prompts.jsonl"), "--chat", "off", "--greedy", "--dtype", "fp32"]
    command += ["--batch-size", str(ANSWERS), "--max-new-tokens", str(tokens)]
    begin = time.perf_counter()
    printed = run(command, options.threads)
    seconds = time.perf_counter() - begin
    rows = sorted(map(json.loads, printed.splitlines()), key=lambda row: row["index"])
    return seconds, [row["token_ids"] for row in rows]


def peer(options, folder, action, *words):
    command = [options.peer_python, PEER, action, str(folder / "model"), *map(str, words)]
    return json.loads(run([*command, str(options.threads)], options.threads).splitlines()[-1])


def training_round(options, folder):
    ours = convoy_train(options, folder)
    theirs = peer(options, folder, "train", folder / "rows.jsonl", options.batch, options.steps)
    a, b = statistics.median(ours["seconds"]), statistics.median(theirs["seconds"])
    return {
        "convoy_seconds": a,
        "peer_seconds": b,
        "ratio": b / a,
        "loss_difference": max(abs(x - y) for x, y in zip(ours["losses"], theirs["losses"])),
    }


def decoding_round(options, folder):
    short, _ = convoy_generate(options, folder, SHORT)
    long, ids = convoy_generate(options, folder, LONG)
    theirs = peer(options, folder, "generate", folder / "prompts.jsonl", SHORT, LONG)
    tokens = ANSWERS * (LONG - SHORT)
    a = (long - short) / tokens
    b = (theirs["seconds"][str(LONG)] - theirs["seconds"][str(SHORT)]) / tokens
    return {
        "convoy_seconds": a,
        "peer_seconds": b,
        "ratio": b / a,
        "equal_answers": sum(x == y for x, y in zip(ids, theirs["token_ids"])),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--convoy", default="build/bin/convoy")
    parser.add_argument(
        "--peer-python", default=os.environ.get("CONVOY_PEER_PYTHON", sys.executable)
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_inputs(folder, options.batch * options.steps)
        run([options.peer_python, PEER, "make", TOKENIZER, str(folder / "model")], options.threads)
        for _ in range(options.rounds):
            row = {
                "train": training_round(options, folder),
                "decode": decoding_round(options, folder),
            }
            rounds.append(row)
            if not options.json:
                train, decode = row["train"], row["decode"]
                print(
                    f"train: convoy {train['convoy_seconds']:.3f} s a step, transformers {train['peer_seconds']:.3f}, {train['ratio']:.2f}x,"
                    f" losses differ by {train['loss_difference']:.1e}"
                    f"   decode: {1 / decode['convoy_seconds']:.0f} and {1 / decode['peer_seconds']:.0f} tokens/s, {decode['ratio']:.2f}x,"
                    f" {decode['equal_answers']} of {ANSWERS} answers equal",
                    flush=True,
                )
    ratios = {
        kind: statistics.median(row[kind]["ratio"] for row in rounds)
        for kind in ("train", "decode")
    }
    if options.json:
        print(json.dumps({"threads": options.threads, "rounds": rounds, "ratios": ratios}))
    else:
        print(f"median: train {ratios['train']:.2f}x, decode {ratios['decode']:.2f}x")


if __name__ == "__main__":
    main()
