# SPDX-License-Identifier: Apache-2.0
"""Encodes a file of conversations as tokens and loss mask: datasets + tokenizers in Python, and Convoy, in turn.

usage: python encode_rows.py [--convoy PROGRAM] [--rows N] [--num-proc N] [--rounds N] [--model FOLDER]

The rows are made from examples/sums with other names and numbers, as `messages`. The peer is the usual script: load_dataset("json"),
map(batched=False) with apply_chat_template and the prefix for the mask, num_proc processes. Convoy's figure is the whole of
`convoy data encode`, hashing of the file included. The tokenizer alone: encode_batch of the rendered texts, on all cores.
Memory is the largest sum of private memory of all processes of a side, sampled."""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent


def write_rows(path, count):
    sums = [json.loads(line) for line in open(HERE.parent / "examples/sums/train.jsonl")]
    drawn = random.Random(1)
    with open(path, "w") as file:
        for row in range(count):
            pick = sums[row % len(sums)]
            number = drawn.randrange(10**6)
            file.write(
                json.dumps(
                    {
                        "messages": [
                            {"role": "user", "content": f"{pick['question']} (Case {number}.)"},
                            {
                                "role": "assistant",
                                "content": f"{pick['answer']} That was case {number}.",
                            },
                        ]
                    }
                )
                + "\n"
            )


def descendants(pid):
    """`pid` and every process that it started."""
    found = [pid]
    for parent in found:
        for task in pathlib.Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:
                continue
    return found


def private_bytes(pid):
    total = 0
    for process in descendants(pid):
        try:
            status = pathlib.Path(f"/proc/{process}/status").read_text()
        except OSError:
            continue
        total += sum(
            int(line.split()[1]) * 1024
            for line in status.splitlines()
            if line.startswith("RssAnon")
        )
    return total


def run_watched(command, env=None):
    """Seconds, and the largest private memory of the command and the processes that it starts."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=env)
    most = [0]
    ended = threading.Event()

    def watch():
        while not ended.wait(0.1):
            most[0] = max(most[0], private_bytes(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out = process.communicate()[0]
    seconds = time.perf_counter() - start
    ended.set()
    watcher.join()
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed")
    return seconds, most[0], out


PEER = r"""
import json, sys, time
from datasets import load_dataset
from transformers import AutoTokenizer
rows, model, num_proc, cache = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
tokenizer = AutoTokenizer.from_pretrained(model)
def encode(row):
    messages = row["messages"]
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    prompt = tokenizer.apply_chat_template(messages[:-1], tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    first = len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
    return {"input_ids": ids, "labels": [-100] * first + ids[first:]}
start = time.perf_counter()
data = load_dataset("json", data_files=rows, split="train", cache_dir=cache)
data = data.map(encode, remove_columns=data.column_names, num_proc=num_proc)
print(json.dumps({"rows": len(data), "seconds": time.perf_counter() - start}))
"""

TOKENIZER = r"""
import json, sys, time
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[2] + "/tokenizer.json")
texts = [json.loads(line)["text"] for line in open(sys.argv[1])]
start = time.perf_counter()
tokens = 0
for begin in range(0, len(texts), 1000):
    tokens += sum(len(row.ids) for row in tokenizer.encode_batch_fast(texts[begin:begin + 1000], add_special_tokens=False))
print(json.dumps({"seconds": time.perf_counter() - start, "tokens": tokens}))
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--convoy", default=str(HERE.parent / "build/bin/convoy"))
    parser.add_argument("--model", default=str(HERE.parent / "examples/tally-3m"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--num-proc", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--no-peer", action="store_true")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = folder + "/rows.jsonl"
        write_rows(rows, flags.rows)
        quiet = dict(
            os.environ, HF_DATASETS_DISABLE_PROGRESS_BARS="1", TOKENIZERS_PARALLELISM="true"
        )
        for _ in range(flags.rounds):
            shutil.rmtree(folder + "/tokens", ignore_errors=True)
            own_s, own_bytes, out = run_watched(
                [
                    flags.convoy,
                    "data",
                    "encode",
                    "model.name=" + flags.model,
                    "data.train_path=" + rows,
                    "data.split={train_ratio: 1, val_ratio: 0, test_ratio: 0}",
                    "data.cache_dir=" + folder + "/tokens",
                    "model.max_seq_len=512",
                    "--json",
                ]
            )
            result = {
                "rows": flags.rows,
                "bytes": os.path.getsize(rows),
                "convoy_s": round(own_s, 2),
                "convoy_mib": own_bytes >> 20,
                "tokens": json.loads(out)[0]["tokens"],
            }
            texts = folder + "/texts.jsonl"
            if not os.path.exists(texts):
                subprocess.run(
                    [
                        flags.convoy,
                        "data",
                        "render",
                        rows,
                        texts,
                        "--model",
                        flags.model,
                        "--to",
                        "text",
                        "--quiet",
                    ],
                    check=True,
                )
            alone = json.loads(
                subprocess.run(
                    [sys.executable, "-c", TOKENIZER, texts, flags.model],
                    check=True,
                    env=quiet,
                    capture_output=True,
                ).stdout
            )
            result["tokenizer_alone_s"] = round(alone["seconds"], 2)
            result["of_tokenizer_alone"] = round(alone["seconds"] / own_s, 2)
            if not flags.no_peer:
                shutil.rmtree(folder + "/hf", ignore_errors=True)
                peer_s, peer_bytes, out = run_watched(
                    [
                        sys.executable,
                        "-c",
                        PEER,
                        rows,
                        flags.model,
                        str(flags.num_proc),
                        folder + "/hf",
                    ],
                    quiet,
                )
                result["peer_s"] = round(json.loads(out)["seconds"], 2)
                result["peer_mib"] = peer_bytes >> 20
                result["times_faster"] = round(result["peer_s"] / own_s, 2)
            print(json.dumps(result), flush=True)


main()
