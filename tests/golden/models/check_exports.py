# SPDX-License-Identifier: Apache-2.0
"""Shows that transformers loads every model folder we export, with the logits of the model it came from.

Run: python check_exports.py BUILD/bin/models_tests
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import glimmer_text  # noqa: F401
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent


def check(folder):
    name, dtype = folder.name.rsplit("-", 1)
    golden = load_file(HERE / name.removesuffix("-v4") / "golden.safetensors")
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    problems = {kind: found for kind, found in info.items() if found}
    assert not problems, (folder.name, problems)
    stored = AutoModelForCausalLM.from_pretrained(folder, dtype="auto").dtype
    assert stored == {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype], (folder.name, stored)
    with torch.no_grad():
        logits = torch.cat(
            [model(input_ids=golden[row][None]).logits[0] for row in ("row_0", "row_1")]
        )
    error = ((logits - golden["logits"]).norm() / golden["logits"].norm()).item()
    assert error < (1e-6 if dtype == "fp32" else 0.05), (folder.name, error)
    print(f"{folder.name}: {error:.1e}")


def main():
    with tempfile.TemporaryDirectory() as exports:
        environment = {
            **os.environ,
            "CONVOY_EXPORT_FOLDER": exports,
            "CONVOY_SOURCE_DIR": str(HERE.parents[2]),
        }
        subprocess.run(
            [sys.argv[1], "--gtest_filter=*ExportLoadsToTheSameModel*", "--gtest_brief=1"],
            env=environment,
            check=True,
        )
        folders = sorted(pathlib.Path(exports).iterdir())
        assert folders
        for folder in folders:
            check(folder)
        print(f"{len(folders)} exports load in transformers")


if __name__ == "__main__":
    main()
