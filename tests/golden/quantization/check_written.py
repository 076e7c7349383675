# SPDX-License-Identifier: Apache-2.0
"""Loads the files that `convoy quantize` wrote with transformers and bitsandbytes, and compares every value with Convoy's value.

Run: python check_written.py path/to/convoy
"""

import pathlib
import subprocess
import sys
import tempfile

import bitsandbytes as bnb
import torch
from make_quantization import HERE, values_4bit
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

KINDS = {"nf4": ["nf4"], "nf4-double": ["nf4", "--double-quant"], "fp4": ["fp4"], "int8": ["int8"]}


def values(module):
    if isinstance(module, bnb.nn.Linear8bitLt):
        return bnb.functional.int8_vectorwise_dequant(module.weight.data, module.weight.SCB)
    return values_4bit(module.weight.data, module.weight.quant_state)


def main(convoy):
    for kind, flags in KINDS.items():
        with tempfile.TemporaryDirectory() as place:
            written, back = pathlib.Path(place) / "written", pathlib.Path(place) / "back"

            def run(*words):
                return subprocess.run([convoy, "quantize", "--quiet", *map(str, words)], check=True)

            run("--model", HERE / "base", "--output", written, "--quantization", *flags)
            run("--model", written, "--output", back, "--dequantize", "--dtype", "fp32")
            own = load_file(back / "model.safetensors")
            model = AutoModelForCausalLM.from_pretrained(written, device_map="cpu")
            loaded = 0
            for name, module in model.named_modules():
                if isinstance(module, (bnb.nn.Linear4bit, bnb.nn.Linear8bitLt)):
                    assert torch.equal(values(module), own[f"{name}.weight"]), (kind, name)
                    loaded += 1
            assert loaded == 14, loaded
            for name in ("model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"):
                assert torch.equal(model.state_dict()[name].float(), own[name]), (kind, name)
            print(f"{kind}: {loaded} linear maps have the same values in transformers")


if __name__ == "__main__":
    main(sys.argv[1])
