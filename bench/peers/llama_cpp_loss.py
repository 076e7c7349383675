"""Peer: loss, number of right next tokens, and greedy answers of llama.cpp. Convoy has encoded the rows, so that only the arithmetic differs.

usage: LLAMA_CPP_LIB_PATH=FOLDER python llama_cpp_loss.py FILE.gguf ROWS.jsonl [--lora A.gguf] [--answers OUT.jsonl] [--new-tokens N] (package numpy)
ROWS.jsonl: `convoy data tokens --json`. FOLDER: llama.cpp's libraries, such as those of the npm package @node-llama-cpp/linux-x64.
OUT.jsonl: a line {"input", "pred", "ref"} for each row, for `convoy eval --samples`. Prints one JSON line.
"""

import argparse
import ctypes
import json
import os
import pathlib

import numpy as np

p = argparse.ArgumentParser()
p.add_argument("model")
p.add_argument("rows")
p.add_argument("--lora")
p.add_argument("--answers")
p.add_argument("--new-tokens", type=int, default=120)
p.add_argument("--threads", type=int, default=2)
a = p.parse_args()
FOLDER = pathlib.Path(os.environ["LLAMA_CPP_LIB_PATH"])


def library(name):
    found = sorted(path for path in FOLDER.glob(f"lib{name}.*so*"))
    return ctypes.CDLL(str(found[0]), ctypes.RTLD_GLOBAL)


class Opaque(
    ctypes.Structure
):  # larger than the struct of any version, so that it is passed and returned in memory
    _fields_ = [("bytes", ctypes.c_uint8 * 512)]


class Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.c_void_p),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]


library("ggml-base")
GGML, LLAMA = library("ggml"), library("llama")
for name, result, arguments in [
    ("llama_model_default_params", Opaque, []),
    ("llama_context_default_params", Opaque, []),
    ("llama_model_load_from_file", ctypes.c_void_p, [ctypes.c_char_p, Opaque]),
    ("llama_init_from_model", ctypes.c_void_p, [ctypes.c_void_p, Opaque]),
    ("llama_adapter_lora_init", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]),
    (
        "llama_set_adapters_lora",
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_float),
        ],
    ),
    ("llama_get_memory", ctypes.c_void_p, [ctypes.c_void_p]),
    ("llama_memory_clear", None, [ctypes.c_void_p, ctypes.c_bool]),
    ("llama_batch_init", Batch, [ctypes.c_int32] * 3),
    ("llama_decode", ctypes.c_int32, [ctypes.c_void_p, Batch]),
    ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), [ctypes.c_void_p, ctypes.c_int32]),
    ("llama_model_get_vocab", ctypes.c_void_p, [ctypes.c_void_p]),
    ("llama_vocab_n_tokens", ctypes.c_int32, [ctypes.c_void_p]),
    ("llama_vocab_is_eog", ctypes.c_bool, [ctypes.c_void_p, ctypes.c_int32]),
    (
        "llama_token_to_piece",
        ctypes.c_int32,
        [
            ctypes.c_void_p,
            ctypes.c_int32,
            ctypes.c_char_p,
            ctypes.c_int32,
            ctypes.c_int32,
            ctypes.c_bool,
        ],
    ),
    ("llama_set_n_threads", None, [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]),
]:
    function = getattr(LLAMA, name)
    function.restype, function.argtypes = result, arguments
SILENT = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(
    lambda level, text, data: None
)
LLAMA.llama_log_set(SILENT, None)
GGML.ggml_backend_load_all_from_path(str(FOLDER).encode())
LLAMA.llama_backend_init()

rows = [json.loads(line) for line in open(a.rows)]
most = max(len(row["ids"]) for row in rows) + a.new_tokens
model = LLAMA.llama_model_load_from_file(a.model.encode(), LLAMA.llama_model_default_params())
assert model, a.model
parameters = LLAMA.llama_context_default_params()
np.frombuffer(parameters, np.uint32)[:3] = most  # n_ctx, n_batch, n_ubatch
context = LLAMA.llama_init_from_model(model, parameters)
LLAMA.llama_set_n_threads(context, a.threads, a.threads)
if a.lora:
    adapter = LLAMA.llama_adapter_lora_init(model, a.lora.encode())
    assert adapter, a.lora
    assert (
        LLAMA.llama_set_adapters_lora(
            context, ctypes.byref(ctypes.c_void_p(adapter)), 1, ctypes.byref(ctypes.c_float(1))
        )
        == 0
    )
vocabulary = LLAMA.llama_model_get_vocab(model)
width = LLAMA.llama_vocab_n_tokens(vocabulary)
batch = LLAMA.llama_batch_init(most, 0, 1)


def logits(ids, start, wanted):
    """The logits at the places `wanted` of `ids`. The first of the ids is at place `start` of the row."""
    if start == 0:
        LLAMA.llama_memory_clear(LLAMA.llama_get_memory(context), True)
    batch.n_tokens = len(ids)
    for at, token in enumerate(ids):
        batch.token[at], batch.pos[at], batch.n_seq_id[at], batch.logits[at] = (
            token,
            start + at,
            1,
            at in wanted,
        )
        batch.seq_id[at][0] = 0
    assert LLAMA.llama_decode(context, batch) == 0
    return [
        np.ctypeslib.as_array(LLAMA.llama_get_logits_ith(context, at), (width,)).astype(np.float64)
        for at in sorted(wanted)
    ]


def piece(token):
    place = ctypes.create_string_buffer(256)
    size = LLAMA.llama_token_to_piece(vocabulary, token, place, len(place), 0, False)
    return place.raw[:size]


def text(ids):
    return b"".join(piece(token) for token in ids).decode(errors="replace")


def answer(prompt):
    found, ids, start = [], prompt, 0
    while len(found) < a.new_tokens:
        token = int(logits(ids, start, {len(ids) - 1})[0].argmax())
        if LLAMA.llama_vocab_is_eog(vocabulary, token):
            break
        start += len(ids)
        found.append(token)
        ids = [token]
    return found


total, right, count = 0.0, 0, 0
out = open(a.answers, "w") if a.answers else None
for row in rows:
    ids, mask = row["ids"], row["mask"]
    wanted = {at - 1 for at in range(1, len(ids)) if mask[at]}
    for at, values in zip(sorted(wanted), logits(ids, 0, wanted)):
        target = ids[at + 1]
        total += np.log(np.exp(values - values.max()).sum()) + values.max() - values[target]
        right += int(values.argmax() == target)
    count += len(wanted)
    if out:
        cut = mask.index(1)
        out.write(
            json.dumps(
                {"input": text(ids[:cut]), "pred": text(answer(ids[:cut])), "ref": text(ids[cut:])}
            )
            + "\n"
        )
        out.flush()
print(
    json.dumps(
        {
            "peer": "llama.cpp",
            "file": pathlib.Path(a.model).name,
            "loss": total / count,
            "perplexity": float(np.exp(total / count)),
            "mean_token_accuracy": right / count,
            "supervised_tokens": count,
            "rows": len(rows),
        }
    )
)
