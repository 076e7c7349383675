# SPDX-License-Identifier: Apache-2.0
"""The files of the repository that tests fetch."""

import random

LFS = ("model.safetensors", "pytorch_model.bin", "onnx/model.onnx")


def sample_files():
    draw = random.Random(11)
    return {
        "config.json": b'{"model_type": "none of these"}\n',
        "tokenizer.json": b'{"version": "1.0"}\n' + draw.randbytes(70_000),
        "chat_template.jinja": b"{{ messages }}",
        "README.md": b"# A model with an \xc3\xa4\n",
        "empty.json": b"",
        ".gitattributes": b"*.safetensors filter=lfs\n",
        "model.safetensors": draw.randbytes(300_000),
        "pytorch_model.bin": draw.randbytes(9_000),
        "onnx/model.onnx": draw.randbytes(12_345),
        "original/params with a space.json": b"{}",
    }
