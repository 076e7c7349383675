# SPDX-License-Identifier: Apache-2.0
"""Shows that PEFT and transformers load the models that Convoy writes, and compute the same scores with them as Convoy.

Trains each family of this folder for a few steps (full, also in bf16; LoRA, rsLoRA, DoRA; with modules saved whole),
merges the adapters, and compares the score of every row. Checkpoint folders load as the exports do.
Run: python check_written.py FOLDER_OF_PROGRAMS [FAMILY ...]
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
from make_train import FAMILIES, HERE, read_rows, score
from peft import PeftModel
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

# name: (options of tuning.lora, or None for full training)
RUNS = {
    "full": None,
    "full, bf16": None,
    "lora": {},
    "patterns": {
        "rank_pattern": {"q_proj": 2},
        "alpha_pattern": {"layers.1.mlp.up_proj": 3},
        "use_rslora": True,
    },
    "dora": {"use_dora": True, "target_modules": ["q_proj", "down_proj"]},
    "whole": {
        "modules_to_save": ["lm_head", "input_layernorm"],
        "target_modules": r".*\.(k_proj|gate_proj)",
    },
}


def convoy(programs, *arguments):
    done = subprocess.run(
        [programs / "convoy", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, (arguments, done.stderr)


def train(programs, model, lora, bf16, output):
    # The head is left out of modules_to_save if it is the same tensor as the embedding.
    tied = json.loads((model / "config.json").read_text()).get("tie_word_embeddings", True)
    if lora and tied and "modules_to_save" in lora:
        lora = {**lora, "modules_to_save": lora["modules_to_save"][1:]}
    tuning = (
        {"mode": "full"}
        if lora is None
        else {"mode": "lora", "lora": {"r": 3, "alpha": 5, "dropout": 0.1, **lora}}
    )
    config = output.with_suffix(".yaml")
    config.write_text(
        json.dumps(
            {  # JSON is YAML
                "model": {"name": str(model), "max_seq_len": 256},
                "tuning": tuning,
                "train": {
                    "steps": 4,
                    "batch_size": 4,
                    "learning_rate": 0.01,
                    "bf16": bf16,
                    "eval_strategy": "no",
                    "output_dir": str(output),
                },
                "data": {
                    "train_path": str(HERE / "chats.jsonl"),
                    "cache_dir": "none",
                    "split": {"train_ratio": 1, "val_ratio": 0, "test_ratio": 0},
                },
            }
        )
    )
    convoy(programs, "train", config)


def compare(name, scored, model, rows):
    """Largest relative difference between Convoy's scores in the file `scored` and the model's."""
    ours = [json.loads(line) for line in scored.read_text().splitlines()]
    theirs = score(model, rows)
    assert [row["tokens"] for row in ours] == [row["tokens"] for row in theirs], name
    worst = max(abs(a["nll"] - b["nll"]) / b["nll"] for a, b in zip(ours, theirs, strict=True))
    assert worst < 1e-4, (name, worst)
    print(f"{name}: {worst:.1e}")
    return sum(row["nll"] for row in ours)


def load(folder):
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    assert not any(info.values()), (folder, info)
    return model


def check(programs, family, name, folder):
    model = folder / "model"
    shutil.copytree(HERE / family, model)
    shutil.copytree(HERE / "tokenizer", model, dirs_exist_ok=True)
    # AutoTokenizer is not used, because for Qwen2 it replaces the pre-tokenizer of tokenizer.json.
    rows = read_rows(PreTrainedTokenizerFast.from_pretrained(model), "chats")
    data, scores, run = HERE / "chats.jsonl", folder / "scores.jsonl", folder / "run"
    label = f"{family} {name}"
    train(programs, model, RUNS[name], "bf16" in name, run)
    if RUNS[name] is None:
        convoy(
            programs,
            "score",
            "--model",
            run / "model",
            "--data",
            data,
            "--output",
            scores,
            "--dtype",
            "fp32",
        )
        for written in (run / "model", run / "checkpoints/last"):
            assert read_rows(PreTrainedTokenizerFast.from_pretrained(written), "chats") == rows, (
                label
            )
            compare(f"{label}, {written.name}", scores, load(written), rows)
        return
    convoy(
        programs,
        "score",
        "--model",
        model,
        "--adapter",
        run / "adapter",
        "--data",
        data,
        "--output",
        scores,
        "--dtype",
        "fp32",
    )
    adapted = PeftModel.from_pretrained(load(model), run / "adapter")
    total = compare(label, scores, adapted, rows)
    assert abs(total - sum(row["nll"] for row in score(load(model), rows))) > 1e-3 * total, (
        "the adapter does nothing"
    )
    compare(
        f"{label}, last checkpoint",
        scores,
        PeftModel.from_pretrained(load(model), run / "checkpoints/last"),
        rows,
    )
    merged = folder / "merged"
    convoy(programs, "merge", "--model", model, "--adapter", run / "adapter", "--output", merged)
    convoy(
        programs, "score", "--model", merged, "--data", data, "--output", scores, "--dtype", "fp32"
    )
    compare(f"{label}, merged", scores, load(merged), rows)
    compare(f"{label}, merged by PEFT", scores, adapted.merge_and_unload(), rows)


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    for family in sys.argv[2:] or FAMILIES:
        for name in RUNS:
            with tempfile.TemporaryDirectory() as folder:
                check(programs, family, name, pathlib.Path(folder))
    print("all that was written loads and scores equal")


if __name__ == "__main__":
    main()
