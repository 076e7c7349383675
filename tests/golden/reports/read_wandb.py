# SPDX-License-Identifier: Apache-2.0
"""Prints as JSON what wandb's protobuf classes read in the file of an offline run: read_wandb.py FILE. Exit code 77: no wandb.

The blocks of the file are read here: wandb 0.19 and later read them in its Go program.
"""

import json
import pathlib
import struct
import sys
import zlib

try:
    from wandb.proto import wandb_internal_pb2
except ImportError:
    sys.exit(77)


def records(data):
    assert data[:7] == b":W&B\xe1\xbe\x00", data[:7]
    at, text = 7, b""
    while at < len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        crc, length, kind = struct.unpack("<IHB", data[at : at + 7])
        piece = data[at + 7 : at + 7 + length]
        assert zlib.crc32(piece, zlib.crc32(bytes([kind]))) == crc, at
        at += 7 + length
        text = piece if kind in (1, 2) else text + piece
        if kind in (1, 4):
            yield wandb_internal_pb2.Record.FromString(text)


def items_of(items):
    return {(item.key or "/".join(item.nested_key)): json.loads(item.value_json) for item in items}


told = {"loss": [], "rows": [], "summary": {}, "axis": [], "files": [], "exits": []}
numbers = []
for record in records(pathlib.Path(sys.argv[1]).read_bytes()):
    numbers.append(record.num)
    kind = record.WhichOneof("record_type")
    if kind == "run":
        told["run"] = [record.run.run_id, record.run.project, record.run.display_name]
        told["config"] = items_of(record.run.config.update)
    elif kind == "config":
        told["config"].update(items_of(record.config.update))
    elif kind == "history":
        row = items_of(record.history.item)
        assert row["_step"] == record.history.step.num
        told["rows"].append(row["_step"])
        if "train/loss" in row:
            told["loss"].append([row["train/global_step"], row["train/loss"]])
    elif kind == "summary":
        told["summary"].update(items_of(record.summary.update))
    elif kind == "metric" and record.metric.glob_name:
        told["axis"].append([record.metric.glob_name, record.metric.step_metric])
    elif kind == "files":
        told["files"] += [file.path for file in record.files.files]
    elif kind == "exit":
        told["exits"].append(record.exit.exit_code)
told["numbers"] = "in order" if numbers == list(range(1, len(numbers) + 1)) else numbers
print(json.dumps(told))
