# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files, with the Python package gguf and llama.cpp, for types that Convoy only reads: types whose values
come from tables (iq*), types of three values (tq*) and four-bit floats (mxfp4).

codebooks.safetensors: for each type `TYPE.blocks`, which are rows that ggml's quantiser wrote and then random codes, and
`TYPE.values`, which the package reads from these blocks. ggml's own reader must give the same bits.
convoy/core/io/gguf/grids.inl: the package's tables.
Run: LLAMA_CPP_LIB_PATH=FOLDER python make_codebooks.py, with gguf 0.19 and safetensors. The folder holds libggml-base.so, such as that of the
npm package @node-llama-cpp/linux-x64 3.22.1 (llama.cpp v0.5.0).
"""

import ctypes
import os
import pathlib

import gguf
import numpy as np
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
Q = gguf.GGMLQuantizationType
NAMES = [
    "IQ2_XXS",
    "IQ2_XS",
    "IQ2_S",
    "IQ3_XXS",
    "IQ3_S",
    "IQ1_S",
    "IQ1_M",
    "IQ4_NL",
    "IQ4_XS",
    "TQ1_0",
    "TQ2_0",
    "MXFP4",
]
# Offset of the fp16 scale in a block. None: iq1_m spreads the scale over four numbers, and mxfp4 has a
# power of two.
SCALES_AT = {"TQ1_0": 52, "TQ2_0": 64, "IQ1_M": None, "MXFP4": None}
ROW = 512

GGML = ctypes.CDLL(str(pathlib.Path(os.environ["LLAMA_CPP_LIB_PATH"]) / "libggml-base.so"))
GGML.ggml_quantize_chunk.restype = ctypes.c_size_t
GGML.ggml_quantize_chunk.argtypes = [
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
]


def quantised_rows(random, kind):
    values = random.standard_normal((3, ROW)).astype(np.float32) * np.float32(0.02)
    values[1] *= np.exp(random.standard_normal(ROW)).astype(np.float32)
    importance = np.ones(ROW, np.float32)  # iq1 and iq2 need an importance
    block, size = gguf.GGML_QUANT_SIZES[kind]
    out = np.zeros((len(values), ROW // block * size), np.uint8)
    GGML.ggml_quantize_chunk(
        kind, values.ctypes.data, out.ctypes.data, 0, *values.shape, importance.ctypes.data
    )
    return out


def random_rows(random, name, kind):
    block, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (6 * ROW // block, size)).astype(np.uint8)
    scales = (
        (random.standard_normal(len(blocks)) * 0.01)
        .astype(np.float16)
        .view(np.uint8)
        .reshape(-1, 2)
    )
    at = SCALES_AT.get(name, 0)
    if name == "MXFP4":
        blocks[:, 0] %= 240
        blocks[:3, 0] = [0, 1, 2]
    elif name == "IQ1_M":
        bits = scales.view(np.uint16)[:, 0]
        for part in range(4):
            high = blocks[:, 48 + 2 * part + 1]
            blocks[:, 48 + 2 * part + 1] = (high & 15) | ((bits >> (4 * part) & 15) << 4).astype(
                np.uint8
            )
    else:
        blocks[:, at : at + 2] = scales
    return blocks.reshape(6, -1)


def ggml_values(name, blocks, count):
    read = getattr(GGML, "dequantize_row_" + name.lower())
    read.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    out = np.zeros(count, np.float32)
    read(blocks.ctypes.data, out.ctypes.data, count)
    return out


def make_values():
    random = np.random.default_rng(11)
    tensors = {}
    for name in NAMES:
        kind = Q[name]
        rows = [quantised_rows(random, kind), random_rows(random, name, kind)]
        blocks = np.ascontiguousarray(np.concatenate(rows))
        values = np.ascontiguousarray(gguf.quants.dequantize(blocks, kind), dtype=np.float32)
        assert np.isfinite(values).all(), name
        assert ggml_values(name, blocks, values.size).tobytes() == values.tobytes(), name
        tensors[name.lower() + ".blocks"] = blocks
        tensors[name.lower() + ".values"] = values
    save_file(tensors, HERE / "codebooks.safetensors")


def make_grids():
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        "//",
        "// The grids of llama.cpp's iq types (ggml-common.h), as the Python package gguf has them",
        "// (gguf/quants.py, MIT). Written by tests/golden/gguf/make_codebooks.py.",
        "//",
        "// An entry holds eight codes of two bits or four codes of three bits, the first code in the lowest",
        "// bits.",
    ]
    for name in ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"]:
        kind = getattr(gguf.quants, name)
        kind.init_grid()
        entries, width = kind.grid_shape
        numbers = np.searchsorted(kind.grid_map, kind.grid.reshape(entries, width))
        assert (np.array(kind.grid_map)[numbers] == kind.grid.reshape(entries, width)).all()
        packed = (numbers << (np.arange(width) * (2 if width == 8 else 3))).sum(axis=1)
        words = "".join("".join(part.capitalize() for part in name.split("_")))
        lines += ["", f"constexpr std::array<uint16_t, {entries}> k{words}Grid = {{"]
        line = ""
        for number in packed:
            word = f"{number}, "
            if len(line) + len(word) > 96:
                lines.append("    " + line.rstrip())
                line = ""
            line += word
        lines += ["    " + line.rstrip(", "), "};"]
    (ROOT / "convoy/core/io/gguf/grids.inl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    make_values()
    make_grids()
