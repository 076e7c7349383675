# SPDX-License-Identifier: Apache-2.0
"""Makes the weights that PEFT gives when it merges adapters into a base that is stored in fp16 or in bf16.

The base is tests/golden/train/qwen2, rounded to the type. The adapters are its folders lora and dora. Writes
merged_<adapter>_<type>.safetensors: the linear layers of the blocks after merge_and_unload(). Run: python make_merged.py
"""

import pathlib

import torch
from peft import PeftModel
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE.parent / "train/qwen2"


def main():
    for adapter in ("lora", "dora"):
        for name, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16)):
            model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=dtype)
            merged = PeftModel.from_pretrained(model, MODEL / adapter).merge_and_unload()
            linears = {
                key: value.contiguous()
                for key, value in merged.state_dict().items()
                if "_proj.weight" in key
            }
            assert all(value.dtype == dtype for value in linears.values())
            save_file(linears, HERE / f"merged_{adapter}_{name}.safetensors")


if __name__ == "__main__":
    main()
