# SPDX-License-Identifier: Apache-2.0
"""Finds out which keys of adapter_config.json may be null: how PEFT loads an adapter when one key is null.

Takes the adapter tests/golden/train/qwen2/lora, sets one key to null and loads the adapter with its model. Writes nulls.json: for
each key "same" (loads, with the same scores as without the null), "differs" or "fails". Run: python make_nulls.py
"""

import json
import pathlib
import shutil
import tempfile
import warnings

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE.parent / "train/qwen2"


def logits(adapter):
    model = AutoModelForCausalLM.from_pretrained(
        MODEL, dtype=torch.float32, attn_implementation="eager"
    )
    with torch.no_grad():
        return (
            PeftModel.from_pretrained(model, adapter)
            .eval()(input_ids=torch.tensor([[5, 17, 3, 90]]))
            .logits
        )


def verdict(config, key, wanted):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copy(MODEL / "lora/adapter_model.safetensors", folder)
        (folder / "adapter_config.json").write_text(json.dumps({**config, key: None}))
        try:
            found = logits(folder)
        except Exception:
            return "fails"
    return "same" if torch.equal(found, wanted) else "differs"


def main():
    warnings.simplefilter("ignore")
    config = json.loads((MODEL / "lora/adapter_config.json").read_text())
    wanted = logits(MODEL / "lora")
    verdicts = {key: verdict(config, key, wanted) for key in sorted(config)}
    (HERE / "nulls.json").write_text(json.dumps(verdicts, indent=1) + "\n")
    for word in ("differs", "fails"):
        print(word, [key for key, found in verdicts.items() if found == word])


if __name__ == "__main__":
    main()
