# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus of broken files beside this script: safetensors/*.safetensors and models/<case>/. Every one must be
refused with exit code 10. Larger cases are made by the test itself. Standard library only."""

import json
import os
import shutil
import struct

HERE = os.path.dirname(os.path.abspath(__file__))


def pack(header, data=b"", length=None):
    if not isinstance(header, (bytes, str)):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode("utf-8")
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def tensor(begin, end, shape, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


DATA8 = bytes(range(8))
GOOD = pack({"a": tensor(0, 8, [2])}, DATA8)

SAFETENSORS = {
    "empty": b"",
    "seven_bytes": b"\x02\0\0\0\0\0\0",
    "length_only": struct.pack("<Q", 2),
    "length_zero": struct.pack("<Q", 0) + b"{}",
    "length_beyond_file": pack({"a": tensor(0, 8, [2])}, DATA8, length=5000),
    "length_huge": pack({"a": tensor(0, 8, [2])}, DATA8, length=2**63),
    "length_all_ones": pack({"a": tensor(0, 8, [2])}, DATA8, length=2**64 - 1),
    "length_over_100mb": pack({"a": tensor(0, 8, [2])}, DATA8, length=100_000_001),
    "length_too_short": pack({"a": tensor(0, 8, [2])}, DATA8, length=10),
    "begins_with_space": pack(" " + json.dumps({"a": tensor(0, 8, [2])}), DATA8),
    "begins_with_bom": pack(b"\xef\xbb\xbf" + json.dumps({"a": tensor(0, 8, [2])}).encode(), DATA8),
    "header_is_list": pack("[]"),
    "header_is_not_json": pack("{a:1}"),
    "padded_with_newline": pack(json.dumps({"a": tensor(0, 8, [2])}) + "\n", DATA8),
    "padded_with_nul": pack(json.dumps({"a": tensor(0, 8, [2])}).encode() + b"\0\0", DATA8),
    "nul_inside": pack(json.dumps({"a": tensor(0, 8, [2])}).encode() + b"\0PK}", DATA8),
    "two_objects": pack(json.dumps({"a": tensor(0, 8, [2])}) + "{}", DATA8),
    "bad_utf8": pack(b'{"\xff":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', DATA8),
    "lone_surrogate": pack(b'{"\\ud800":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', DATA8),
    "duplicate_name": pack(
        '{"a":%s,"a":%s}' % (json.dumps(tensor(0, 4, [1])), json.dumps(tensor(4, 8, [1]))), DATA8
    ),
    "duplicate_metadata": pack(
        '{"__metadata__":{},"__metadata__":{},"a":%s}' % json.dumps(tensor(0, 8, [2])), DATA8
    ),
    "duplicate_metadata_key": pack(
        '{"__metadata__":{"x":"1","x":"2"},"a":%s}' % json.dumps(tensor(0, 8, [2])), DATA8
    ),
    "duplicate_dtype": pack(
        '{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', DATA8
    ),
    "duplicate_shape": pack(
        '{"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}}', DATA8
    ),
    "metadata_not_string": pack({"__metadata__": {"x": 1}, "a": tensor(0, 8, [2])}, DATA8),
    "metadata_nested": pack({"__metadata__": {"x": {"y": "z"}}, "a": tensor(0, 8, [2])}, DATA8),
    "metadata_is_string": pack({"__metadata__": "pt", "a": tensor(0, 8, [2])}, DATA8),
    "hole_at_start": pack({"a": tensor(4, 8, [1])}, DATA8),
    "hole_between": pack({"a": tensor(0, 4, [1]), "b": tensor(8, 12, [1])}, bytes(12)),
    "overlap": pack({"a": tensor(0, 8, [2]), "b": tensor(4, 12, [2])}, bytes(12)),
    "same_range_twice": pack({"a": tensor(0, 8, [2]), "b": tensor(0, 8, [2])}, DATA8),
    "data_too_long": pack({"a": tensor(0, 8, [2])}, DATA8 + b"x"),
    "data_cut": pack({"a": tensor(0, 8, [2])}, DATA8[:7]),
    "data_missing": pack({"a": tensor(0, 8, [2])}),
    "no_tensors_but_data": pack({}, DATA8),
    "offsets_reversed": pack({"a": tensor(8, 0, [2])}, DATA8),
    "offsets_negative": pack({"a": tensor(-8, 0, [2])}, DATA8),
    "offsets_fraction": pack({"a": tensor(0.0, 8.0, [2])}, DATA8),
    "offsets_beyond_int64": pack({"a": tensor(0, 2**63, [2])}, DATA8),
    "offsets_one": pack({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8]}}, DATA8),
    "offsets_three": pack({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4, 8]}}, DATA8),
    "offsets_string": pack({"a": {"dtype": "F32", "shape": [2], "data_offsets": "0,8"}}, DATA8),
    "offsets_nested": pack({"a": {"dtype": "F32", "shape": [2], "data_offsets": [[0, 8]]}}, DATA8),
    "shape_does_not_fit": pack({"a": tensor(0, 8, [3])}, DATA8),
    "shape_negative": pack({"a": tensor(0, 8, [-2])}, DATA8),
    "shape_two_negatives": pack({"a": tensor(0, 8, [-1, -2])}, DATA8),
    "shape_overflows_to_fit": pack({"a": tensor(0, 8, [2**62, 2**62, 16])}, DATA8),
    "shape_overflows_to_zero": pack({"a": tensor(0, 0, [2**62, 4])}),
    "shape_overflows_before_zero": pack({"a": tensor(0, 0, [2**40, 2**40, 0])}),
    "shape_huge": pack({"a": tensor(0, 8, [2**64])}, DATA8),
    "shape_fraction": pack({"a": tensor(0, 8, [2.0])}, DATA8),
    "shape_nine_dims": pack({"a": tensor(0, 8, [2] + [1] * 8)}, DATA8),
    "shape_is_number": pack({"a": tensor(0, 8, 2)}, DATA8),
    "shape_holds_string": pack({"a": tensor(0, 8, ["2"])}, DATA8),
    "dtype_unknown": pack({"a": tensor(0, 8, [2], "F33")}, DATA8),
    "dtype_lower_case": pack({"a": tensor(0, 8, [2], "f32")}, DATA8),
    "dtype_is_number": pack({"a": tensor(0, 8, [2], 32)}, DATA8),
    "dtype_missing": pack({"a": {"shape": [2], "data_offsets": [0, 8]}}, DATA8),
    "shape_missing": pack({"a": {"dtype": "F32", "data_offsets": [0, 8]}}, DATA8),
    "offsets_missing": pack({"a": {"dtype": "F32", "shape": [2]}}, DATA8),
    "tensor_is_null": pack({"a": None}),
    "tensor_is_list": pack({"a": []}),
    "unknown_field": pack({"a": {**tensor(0, 8, [2]), "more": 1}}, DATA8),
    "nested_field": pack({"a": {**tensor(0, 8, [2]), "more": {"x": {}}}}, DATA8),
    "pickle_inside": b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x01s.",
    "zip_inside": b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0",
    "web_page_inside": b"<!DOCTYPE html><html>404</html>",
    "lfs_pointer_inside": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
}


def index(weight_map, **more):
    return {"metadata": {"total_size": 8}, "weight_map": weight_map, **more}


def config(**changes):
    return {"model_type": "llama", "hidden_size": 8, **changes}


INDEX = "model.safetensors.index.json"
SHARD1, SHARD2 = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
SHARD_B = pack({"b": tensor(0, 8, [2])}, DATA8)


def sharded(weight_map, **files):
    return {
        "config.json": config(),
        INDEX: index(weight_map),
        SHARD1: GOOD,
        SHARD2: SHARD_B,
        **files,
    }


MODELS = {
    "no_config": {"model.safetensors": GOOD},
    "config_empty": {"config.json": b"", "model.safetensors": GOOD},
    "config_is_list": {"config.json": b"[]", "model.safetensors": GOOD},
    "config_is_number": {"config.json": b"7", "model.safetensors": GOOD},
    "config_cut": {"config.json": b'{"model_type": "lla', "model.safetensors": GOOD},
    "config_duplicate_key": {
        "config.json": b'{"hidden_size": 8, "hidden_size": 16}',
        "model.safetensors": GOOD,
    },
    "config_bad_utf8": {"config.json": b'{"model_type": "\xff\xfe"}', "model.safetensors": GOOD},
    "config_nul": {"config.json": b'{"model_type": "llama"}\0{', "model.safetensors": GOOD},
    "config_trailing_text": {
        "config.json": b'{"model_type": "llama"} x',
        "model.safetensors": GOOD,
    },
    "config_comment": {"config.json": b'{"a": 1 /* no */}', "model.safetensors": GOOD},
    "config_nan": {"config.json": b'{"rope_theta": NaN}', "model.safetensors": GOOD},
    "config_number_too_large": {"config.json": b'{"rope_theta": 1e999}', "model.safetensors": GOOD},
    "config_deep": {"config.json": b"[" * 3000 + b"]" * 3000, "model.safetensors": GOOD},
    "generation_config_is_list": {
        "config.json": config(),
        "generation_config.json": b"[1]",
        "model.safetensors": GOOD,
    },
    "no_weights": {"config.json": config()},
    "pickle_only": {"config.json": config(), "pytorch_model.bin": b"PK\x03\x04"},
    "index_parent": sharded({"a": "../outside.safetensors", "b": SHARD2}),
    "index_absolute": sharded({"a": "/etc/passwd", "b": SHARD2}),
    "index_subfolder": sharded({"a": "sub/" + SHARD1, "b": SHARD2}),
    "index_backslash": sharded({"a": "..\\" + SHARD1, "b": SHARD2}),
    "index_dot": sharded({"a": ".", "b": SHARD2}),
    "index_dotdot": sharded({"a": "..", "b": SHARD2}),
    "index_empty_name": sharded({"a": "", "b": SHARD2}),
    "index_nul_name": sharded({"a": SHARD1 + "\0", "b": SHARD2}),
    "index_long_name": sharded({"a": "x" * 300, "b": SHARD2}),
    "index_missing_shard": sharded({"a": SHARD1, "b": "model-00003-of-00003.safetensors"}),
    "index_pickle_shard": sharded({"a": "pytorch_model-00001-of-00002.bin", "b": SHARD2}),
    "index_tensor_not_in_shard": sharded({"a": SHARD1, "b": SHARD2, "c": SHARD2}),
    "index_lacks_a_tensor": {
        "config.json": config(),
        INDEX: index({"a": SHARD1, "b": SHARD2}),
        SHARD1: GOOD,
        SHARD2: pack({"b": tensor(0, 4, [1]), "c": tensor(4, 8, [1])}, DATA8),
    },
    "index_tensor_in_both_shards": {
        "config.json": config(),
        INDEX: index({"a": SHARD1, "b": SHARD2}),
        SHARD1: GOOD,
        SHARD2: pack({"b": tensor(0, 4, [1]), "a": tensor(4, 8, [1])}, DATA8),
    },
    "index_shards_swapped": sharded({"a": SHARD2, "b": SHARD1}),
    "index_tensor_twice": {
        "config.json": config(),
        INDEX: (
            '{"weight_map": {"a": "%s", "a": "%s", "b": "%s"}}' % (SHARD1, SHARD2, SHARD2)
        ).encode(),
        SHARD1: GOOD,
        SHARD2: SHARD_B,
    },
    "index_shard_cut": sharded({"a": SHARD1, "b": SHARD2}, **{SHARD2: SHARD_B[:-1]}),
    "index_no_weight_map": {"config.json": config(), INDEX: {"metadata": {}}},
    "index_empty_weight_map": {"config.json": config(), INDEX: index({})},
    "index_weight_map_list": {"config.json": config(), INDEX: index(["a"])},
    "index_shard_is_number": sharded({"a": 1, "b": SHARD2}),
    "index_shard_is_null": sharded({"a": None, "b": SHARD2}),
    "index_is_list": {"config.json": config(), INDEX: b"[]"},
    "index_not_json": {"config.json": config(), INDEX: b"<html>"},
    "index_names_itself": {"config.json": config(), INDEX: index({"a": INDEX})},
}


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not isinstance(content, bytes):
        content = json.dumps(content).encode("utf-8")
    with open(path, "wb") as file:
        file.write(content)


def main():
    for folder in ("safetensors", "models"):
        shutil.rmtree(os.path.join(HERE, folder), ignore_errors=True)
    for name, content in SAFETENSORS.items():
        write(os.path.join(HERE, "safetensors", name + ".safetensors"), content)
    for case, files in MODELS.items():
        for name, content in files.items():
            write(os.path.join(HERE, "models", case, name), content)
    print(len(SAFETENSORS), "safetensors files,", len(MODELS), "model folders")


main()
