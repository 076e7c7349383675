"""Peer: new tokens/s of llama.cpp (llama-cpp-python; a GGUF file written from a geometry, random weights), greedy and sampled.

Each row is to get a quarter of --new-tokens or more. --batches: numbers of rows at a time, each row in a sequence of its own; when a row is finished, the next one takes its place.
usage: llama_cpp_generate.py --geometry small --file-type bf16|q8_0|q4_0 --batches 1 8 32 ... (as hf_generate.py)
The file stays in --folder; q8_0 and q4_0 are quantised from the bf16 one by llama.cpp itself. q4_0 keeps the output head in 8 bits, as Convoy does.
Prints one JSON line.
"""

import argparse
import ctypes
import json
import os
import resource
import tempfile
import time

import gguf
import llama_cpp
import numpy as np
from geometry import GEOMETRY

p = argparse.ArgumentParser()
p.add_argument("--geometry", default="small")
p.add_argument("--dtype", default="bf16")
p.add_argument("--file-type", default="bf16", choices=["bf16", "q8_0", "q4_0"])
p.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
p.add_argument("--top-p", type=float, default=0.95)
p.add_argument("--temperature", type=float, default=0.6)
p.add_argument("--devices", default="cpu", choices=["cpu"])
p.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "convoy-peer-models"))
for name, default in (
    ("prompts", 32),
    ("prompt-tokens", 64),
    ("new-tokens", 64),
    ("repeats", 3),
    ("threads", 2),
):
    p.add_argument("--" + name, type=int, default=default)
a = p.parse_args()
G = GEOMETRY[a.geometry]
V, H, F, KV = G["vocab_size"], G["hidden_size"], G["intermediate_size"], G["num_key_value_heads"]
D = H // G["num_attention_heads"]


def write_model(path):
    w = gguf.GGUFWriter(path, "qwen2")
    w.add_block_count(G["num_hidden_layers"])
    w.add_context_length(32768)
    w.add_embedding_length(H)
    w.add_feed_forward_length(F)
    w.add_head_count(G["num_attention_heads"])
    w.add_head_count_kv(KV)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(10000.0)
    w.add_vocab_size(V)
    w.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    w.add_tokenizer_model("none")
    draw = np.random.default_rng(0)

    def add(name, *shape):
        values = draw.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        w.add_tensor(
            name,
            gguf.quants.quantize(values, gguf.GGMLQuantizationType.BF16),
            raw_dtype=gguf.GGMLQuantizationType.BF16,
        )

    def add_plain(name, width, value):
        w.add_tensor(name, np.full(width, value, dtype=np.float32))

    add("token_embd.weight", V, H)
    add_plain("output_norm.weight", H, 1.0)
    if not G["tie_word_embeddings"]:
        add("output.weight", V, H)
    for layer in range(G["num_hidden_layers"]):
        b = f"blk.{layer}."
        add_plain(b + "attn_norm.weight", H, 1.0)
        add_plain(b + "ffn_norm.weight", H, 1.0)
        for name, width in (("q", H), ("k", KV * D), ("v", KV * D)):
            add(f"{b}attn_{name}.weight", width, H)
            add_plain(f"{b}attn_{name}.bias", width, 0.0)
        add(b + "attn_output.weight", H, H)
        add(b + "ffn_gate.weight", F, H)
        add(b + "ffn_up.weight", F, H)
        add(b + "ffn_down.weight", H, F)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def model_file(kind):
    path = os.path.join(a.folder, f"{a.geometry}-{kind}.gguf")
    if os.path.exists(path):
        return path
    os.makedirs(a.folder, exist_ok=True)
    part = path + ".part"
    if kind == "bf16":
        write_model(part)
    else:
        q = llama_cpp.llama_model_quantize_default_params()
        q.nthread = a.threads
        q.ftype = {
            "q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
            "q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0,
        }[kind]
        q.output_tensor_type = q.token_embedding_type = int(gguf.GGMLQuantizationType.Q8_0)
        failed = llama_cpp.llama_model_quantize(
            model_file("bf16").encode(), part.encode(), ctypes.byref(q)
        )
        if failed:
            raise SystemExit(f"llama.cpp could not quantise {path}")
    os.replace(part, path)
    return path


quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
llama_cpp.llama_log_set(quiet, None)
llama_cpp.llama_backend_init()
model = llama_cpp.llama_model_load_from_file(
    model_file(a.file_type).encode(), llama_cpp.llama_model_default_params()
)
if not model:
    raise SystemExit("llama.cpp could not load the model")


def wanted(row):
    least = a.new_tokens // 4
    return least + (row * 7919 + 13) % (a.new_tokens - least + 1)


def make_sampler(greedy, row):
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    steps = (
        [llama_cpp.llama_sampler_init_greedy()]
        if greedy
        else [
            llama_cpp.llama_sampler_init_top_p(a.top_p, 1),
            llama_cpp.llama_sampler_init_temp(a.temperature),
            llama_cpp.llama_sampler_init_dist(row),
        ]
    )
    for step in steps:
        llama_cpp.llama_sampler_chain_add(chain, step)
    return chain


def rate(rows, rows_at_once, greedy):
    c = llama_cpp.llama_context_default_params()
    c.n_seq_max = rows_at_once
    c.n_ctx = rows_at_once * (a.prompt_tokens + a.new_tokens)
    c.kv_unified = True  # one cache for all rows: faster for many rows, as fast for one
    c.n_batch = c.n_ubatch = max(512, rows_at_once)
    c.n_threads = c.n_threads_batch = a.threads
    context = llama_cpp.llama_init_from_model(model, c)
    if not context:
        raise SystemExit("llama.cpp could not make a context")
    memory = llama_cpp.llama_get_memory(context)
    batch = llama_cpp.llama_batch_init(c.n_batch, 0, 1)
    samplers = [make_sampler(greedy, row) for row in range(rows)]
    live, free, next_row, useful, begin = {}, list(range(rows_at_once)), 0, 0, time.time()

    def add(token, position, sequence, last):
        at = batch.n_tokens
        batch.token[at], batch.pos[at], batch.n_seq_id[at], batch.logits[at] = (
            token,
            position,
            1,
            last,
        )
        batch.seq_id[at][0] = sequence
        batch.n_tokens += 1
        return at

    while live or next_row < rows:
        batch.n_tokens, asked = 0, []
        while free and next_row < rows and batch.n_tokens + a.prompt_tokens <= c.n_batch:
            sequence = free.pop()
            for token in range(a.prompt_tokens):
                at = add(
                    (next_row * 1009 + token * 31 + 7) % V,
                    token,
                    sequence,
                    token == a.prompt_tokens - 1,
                )
            live[sequence] = dict(row=next_row, position=a.prompt_tokens, made=0, token=0)
            asked.append((sequence, at))
            next_row += 1
        for sequence, state in [] if asked else live.items():
            asked.append((sequence, add(state["token"], state["position"], sequence, True)))
            state["position"] += 1
        if llama_cpp.llama_decode(context, batch):
            raise SystemExit("llama.cpp could not decode a batch")
        for sequence, at in asked:
            state = live[sequence]
            state["token"] = llama_cpp.llama_sampler_sample(samplers[state["row"]], context, at)
            state["made"] += 1
            if state["made"] < wanted(state["row"]):
                continue
            useful += state["made"]
            llama_cpp.llama_memory_seq_rm(memory, sequence, -1, -1)
            del live[sequence]
            free.append(sequence)
    elapsed = time.time() - begin
    for sampler in samplers:
        llama_cpp.llama_sampler_free(sampler)
    llama_cpp.llama_batch_free(batch)
    llama_cpp.llama_free(context)
    return useful / elapsed


points = []
for rows_at_once in a.batches:
    for name in ("greedy", "top_p"):
        rates = sorted(
            [
                rate(min(a.prompts, 4 * rows_at_once), rows_at_once, name == "greedy")
                for _ in range(a.repeats + 1)
            ][1:]
        )
        points.append(
            dict(
                batch=rows_at_once,
                sampling=name,
                tokens_per_s=round(rates[len(rates) // 2], 1),
                best=round(rates[-1], 1),
            )
        )
print(
    json.dumps(
        dict(
            peer="llama.cpp " + a.file_type,
            dtype=a.dtype,
            geometry=a.geometry,
            prompt_tokens=a.prompt_tokens,
            new_tokens=a.new_tokens,
            points=points,
            peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        )
    )
)
