#!/usr/bin/env python3
"""How near the measured batch comes to the largest batch that fits, for ten models and limits.

Each case runs in a memory cgroup of its own (root is needed, v1 or v2). The first run has `train.auto_find_batch_size`
and a maximum that memory does not hold, because on CPUs `train.batch_size: auto` stops where more rows bring no
speed. Further runs have fixed batch sizes: a bisection finds the largest one with which the run ends well.

    python3 bench/auto_batch.py --bin build/bin [--case 3] [--no-bisection]

Prints one line of JSON per case and a table for docs/benchmarks-log.md.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

MIB = 1 << 20
# name, hidden, ffn, layers, heads, kv heads, row tokens, limit in MiB, ranks, settings
CASES = [
    ("lora fp32", 192, 512, 6, 4, 2, 128, 300, 1, "tuning.mode=lora train.bf16=false"),
    ("lora bf16", 256, 704, 8, 4, 2, 256, 340, 1, "tuning.mode=lora train.bf16=true"),
    ("full fp32", 256, 704, 4, 4, 4, 256, 380, 1, "tuning.mode=full train.bf16=false"),
    (
        "full bf16, recompute",
        320,
        896,
        6,
        5,
        5,
        512,
        400,
        1,
        "tuning.mode=full train.bf16=true train.gradient_checkpointing=true",
    ),
    ("lora, packed", 192, 512, 4, 4, 2, 256, 260, 1, "train.packing=true train.bf16=false"),
    ("ddp, 2 ranks", 192, 512, 4, 4, 2, 256, 480, 2, "tuning.mode=lora train.bf16=false"),
    (
        "zero1, 2 ranks",
        256,
        704,
        4,
        4,
        2,
        256,
        640,
        2,
        "tuning.mode=full parallel.strategy=zero1 train.bf16=false",
    ),
    (
        "zero2, 2 ranks",
        256,
        704,
        6,
        4,
        2,
        128,
        640,
        2,
        "tuning.mode=full parallel.strategy=zero2 train.bf16=true",
    ),
    (
        "zero3, 2 ranks",
        320,
        896,
        6,
        5,
        5,
        256,
        720,
        2,
        "tuning.mode=full parallel.strategy=zero3 train.bf16=false",
    ),
    ("few long rows", 256, 704, 6, 4, 2, 1000, 330, 1, "tuning.mode=lora train.bf16=false"),
]


class Group:
    """A memory cgroup, which exists as long as the `with` block runs."""

    def __init__(self, limit_bytes):
        self.limit = limit_bytes

    def __enter__(self):
        for root, limit in (
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ):
            folder = pathlib.Path(root) / f"convoy-bench-{os.getpid()}"
            try:
                folder.mkdir()
                (folder / limit).write_text(str(self.limit))
            except OSError:
                continue
            for name in ("memory.swappiness", "memory.swap.max"):
                if (folder / name).exists():
                    (folder / name).write_text("0")
            self.folder = folder
            return self
        sys.exit("this machine lets nobody limit memory")

    def __exit__(self, *_):
        for _ in range(200):
            try:
                return self.folder.rmdir()
            except OSError:
                subprocess.run(["sleep", "0.05"], check=False)

    def run(self, command, **options):
        shell = f"echo $$ > {self.folder}/cgroup.procs && exec {command}"
        return subprocess.run(["sh", "-c", shell], capture_output=True, text=True, **options)


def write_model(folder, case):
    """Writes a model with random weights and the tokenizer of tally-3m."""
    _, hidden, ffn, layers, heads, kv_heads, *_ = case
    source = pathlib.Path(__file__).parent.parent / "examples/tally-3m"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = json.loads((folder / "config.json").read_text())
    head = hidden // heads
    vocab = config["vocab_size"]
    config.update(
        hidden_size=hidden,
        intermediate_size=ffn,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head,
        max_position_embeddings=2048,
        dtype="float32",
        layer_types=["full_attention"] * layers,
    )
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": [vocab, hidden], "model.norm.weight": [hidden]}
    if not config.get("tie_word_embeddings"):
        shapes["lm_head.weight"] = [vocab, hidden]
    for layer in range(layers):
        at = f"model.layers.{layer}."
        for name, out in (("q", hidden), ("k", kv_heads * head), ("v", kv_heads * head)):
            shapes[f"{at}self_attn.{name}_proj.weight"] = [out, hidden]
            shapes[f"{at}self_attn.{name}_proj.bias"] = [out]
        shapes[f"{at}self_attn.o_proj.weight"] = [hidden, hidden]
        shapes[f"{at}mlp.gate_proj.weight"] = [ffn, hidden]
        shapes[f"{at}mlp.up_proj.weight"] = [ffn, hidden]
        shapes[f"{at}mlp.down_proj.weight"] = [hidden, ffn]
        shapes[f"{at}input_layernorm.weight"] = [hidden]
        shapes[f"{at}post_attention_layernorm.weight"] = [hidden]
    header, offset = {}, 0
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {
            "dtype": "F32",
            "shape": shape,
            "data_offsets": [offset, offset + 4 * count],
        }
        offset += 4 * count
    text = json.dumps(header).encode()
    chance = random.Random(0)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for shape in shapes.values():
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            block = struct.pack("<4096f", *(chance.gauss(0, 0.02) for _ in range(4096)))
            file.write((block * (count // 4096 + 1))[: 4 * count])


def write_rows(file, tokens):
    """Writes texts of digits, each 60 to 100 % of `tokens` long. A digit is a token."""
    chance = random.Random(1)
    with open(file, "w") as rows:
        for _ in range(600):
            count = int(tokens * chance.uniform(0.6, 1.0)) - 4
            digits = "".join(chance.choice("0123456789") for _ in range(max(count, 8)))
            rows.write(json.dumps({"text": digits}) + "\n")


def batch_settings(batch):
    """The settings for a fixed batch size, or for the largest one that memory holds ("auto")."""
    if batch == "auto":
        return "train.batch_size=100000 train.auto_find_batch_size=true"
    return f"train.batch_size={batch}"


class Case:
    def __init__(self, case, bin_folder, work):
        self.case, self.bin, self.work = case, bin_folder, work
        write_model(work / "model", case)
        write_rows(work / "rows.jsonl", case[6])

    def train(self, batch, name):
        _, *_, tokens, limit, ranks, more = self.case
        command = (
            f"env OMP_NUM_THREADS=1 {self.bin}/convoy train model.name={self.work}/model "
            f"task=pretrain model.max_seq_len={tokens} data.split.train_ratio=1 "
            f"data.split.val_ratio=0 data.split.test_ratio=0 "
            f"data.train_path={self.work}/rows.jsonl data.cache_dir={self.work}/cache "
            f"train.steps=3 train.save_strategy=no train.eval_strategy=no "
            f"logging.backend=none --resume never --output-dir {self.work}/{name} "
            f"--nproc {ranks} {batch_settings(batch)} {more}"
        )
        with Group(limit * MIB) as group:
            done = group.run(command)
        return done

    def fits(self, batch):
        return self.train(batch, "fixed").returncode == 0

    def largest(self, low, most):
        """The largest batch from `low`, which fits, to `most` that fits. Doubles the step until a batch does not fit, then bisects."""
        high = low + 1
        step = max(1, low // 8)
        while high <= most and self.fits(high):
            low, high, step = high, high + step, 2 * step
        if high > most:
            return low if low == most or not self.fits(most) else most
        while high - low > 1:
            middle = (low + high) // 2
            if self.fits(middle):
                low = middle
            else:
                high = middle
        return low

    def run(self, bisection):
        done = self.train("auto", "auto")
        result = {
            "case": self.case[0],
            "limit_mib": self.case[7],
            "ranks": self.case[8],
            "code": done.returncode,
        }
        if done.returncode != 0:
            result["error"] = done.stderr[-600:]
            return result
        metrics = json.loads((self.work / "auto/metrics.json").read_text())
        choice = metrics["auto_batch"]
        result.update(
            batch=metrics["per_device_train_batch_size"],
            bound=choice["bound"],
            sizes=len(choice["peaks"]),
            predicted_mib=choice["predicted_bytes"] // MIB,
            peak_mib=max(metrics["rank_peak_memory_bytes"]) // MIB,
            curvature=round(choice["curvature"], 3),
        )
        if bisection:
            most = 600 // self.case[8]
            result["largest"] = self.largest(result["batch"], most)
        return result


def table(results):
    print("\n| model and settings | limit | batch | largest that fits | share | predicted | peak |")
    print("|---|---|---|---|---|---|---|")
    for one in results:
        if one["code"] != 0:
            print(f"| {one['case']} | {one['limit_mib']} MiB | failed: {one['code']} | | | | |")
            continue
        largest = one.get("largest", 0)
        share = f"{100 * one['batch'] / largest:.0f} %" if largest else ""
        print(
            f"| {one['case']} | {one['limit_mib']} MiB | {one['batch']} | {largest or ''} | "
            f"{share} | {one['predicted_mib']} MiB | {one['peak_mib']} MiB |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--case", type=int, action="append", help="only this one, from 0")
    parser.add_argument("--no-bisection", action="store_true")
    flags = parser.parse_args()
    results = []
    for number, case in enumerate(CASES):
        if flags.case and number not in flags.case:
            continue
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            one = Case(case, pathlib.Path(flags.bin).resolve(), work).run(not flags.no_bisection)
        print(json.dumps(one), flush=True)
        results.append(one)
    table(results)


if __name__ == "__main__":
    main()
