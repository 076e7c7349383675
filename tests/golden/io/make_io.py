# SPDX-License-Identifier: Apache-2.0
"""Golden files of the reference safetensors library (0.8.0, torch 2.11). With a folder as argument: reads back every
safetensors file in it, as written by our tests (CONVOY_KEEP_FILES), and compares with the golden file of the same name."""

import os
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.float8_e5m2,
    torch.float8_e4m3fn,
    torch.float8_e8m0fnu,
    torch.int16,
    torch.uint16,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.uint32,
    torch.float32,
    torch.complex64,
    torch.float64,
    torch.int64,
    torch.uint64,
]


def golden():
    files = {"every_dtype": {}, "names_and_shapes": {}, "no_metadata": {"x": torch.arange(3)}}
    for number, dtype in enumerate(DTYPES):
        values = (
            torch.tensor([[1, 0, 1], [1, 1, 0]])
            if dtype is torch.bool
            else torch.tensor([[1, 2, 4], [8, 16, 32]])
        )
        files["every_dtype"][f"tensor.{number:02}"] = values.to(dtype)
    names = files["names_and_shapes"]
    names["scalar"] = torch.tensor(0.1)
    names["nothing"] = torch.zeros(3, 0)
    names["eight.dims"] = torch.arange(4.0).reshape(2, 1, 1, 1, 1, 1, 2, 1)
    names['größe "quoted" \\ \n\t\x01\x7f 数 😀'] = torch.full((2,), -0.0)
    for number in range(30):
        names[f"model.layers.{number}.weight"] = torch.full(
            (number % 3 + 1,), number, dtype=DTYPES[number % 3 + 8]
        )
    names["special"] = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e-45])
    return files


def main():
    for name, tensors in golden().items():
        path = os.path.join(HERE, name + ".safetensors")
        if len(sys.argv) == 1:
            save_file(tensors, path, None if name == "no_metadata" else {"format": "pt"})
            continue
        ours = os.path.join(sys.argv[1], name + ".safetensors")
        with safe_open(ours, "pt") as file:
            assert set(file.keys()) == set(tensors), name
        for key, value in load_file(ours).items():
            assert value.dtype == tensors[key].dtype and value.shape == tensors[key].shape, key
            assert (
                value.contiguous().view(torch.uint8).numpy().tobytes()
                == tensors[key].contiguous().view(torch.uint8).numpy().tobytes()
                if value.dim()
                else True
            ), key
        print(name, "equal")


main()
