# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files for GGUF with llama.cpp and its Python package.

types.safetensors: `input`, and for each type `TYPE.blocks`, which ggml's quantiser makes from it, and `TYPE.values`,
which the package gguf reads from these blocks. Also for q2_k and q3_k, which Convoy only reads.
tiny.gguf: a small Llama, written by the package gguf, with weights in several types and metadata of every kind;
tiny.safetensors: some of its weights under transformers' names, in fp32, with the rows of queries and keys in transformers'
order.
cuts.json: ids that llama.cpp gives texts, by the name of the pre-tokenizer, with the vocabulary of examples/tally-3m;
null where a text is not in NFC.
Run: LLAMA_CPP_LIB_PATH=FOLDER python make_gguf.py, with llama-cpp-python, gguf and safetensors. The folder holds libllama.so and
libggml-base.so of that llama-cpp-python.
"""

import ctypes
import json
import os
import pathlib
import tempfile
import unicodedata

import gguf
import numpy as np
from llama_cpp import Llama
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
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
Q = gguf.GGMLQuantizationType
CODED = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]


def ggml_blocks(values, kind):
    rows = values.reshape(-1, values.shape[-1])
    block, size = gguf.GGML_QUANT_SIZES[kind]
    out = np.zeros((rows.shape[0], rows.shape[1] // block * size), np.uint8)
    GGML.ggml_quantize_chunk(
        kind, rows.ctypes.data, out.ctypes.data, 0, rows.shape[0], rows.shape[1], None
    )
    return out


def hard_rows(random):
    """Rows of 256 values: usual weights, outliers, few different values, zeros, very small and very large values."""
    usual = random.standard_normal((4, 256)) * 0.02
    outliers = random.standard_normal((2, 256)) * np.exp(2 * random.standard_normal((2, 256)))
    few = np.round(random.standard_normal((2, 256)) * 4) / 4
    few[0, :64] = 0
    same = np.full((1, 256), 0.75)
    signs = np.abs(random.standard_normal((2, 256)))
    signs[1] *= -1
    small = random.standard_normal((1, 256)) * 1e-7
    large = random.standard_normal((1, 256)) * 1e3
    rows = np.concatenate([usual, outliers, few, same, np.zeros((1, 256)), signs, small, large])
    return np.ascontiguousarray(rows.astype(np.float32))


def make_types():
    values = hard_rows(np.random.default_rng(7))
    tensors = {"input": values}
    for name in CODED + ["F16", "BF16"]:
        kind = Q[name]
        if name in CODED:
            blocks = ggml_blocks(values, kind)
        else:
            blocks = gguf.quants.quantize(values, kind)
            blocks = np.ascontiguousarray(blocks).view(np.uint8).reshape(values.shape[0], -1)
        tensors[name.lower() + ".blocks"] = blocks
        plain = blocks.view(np.float16) if name == "F16" else blocks
        tensors[name.lower() + ".values"] = np.ascontiguousarray(
            gguf.quants.dequantize(plain, kind), dtype=np.float32
        )
    save_file(tensors, HERE / "types.safetensors")


HIDDEN, HEADS, KV, FFN, VOCAB, HEAD = 256, 4, 2, 256, 290, 32


def in_own_order(values, heads):
    """Undoes LlamaModel.permute of convert_hf_to_gguf.py."""
    rest = values.shape[1:]
    return np.ascontiguousarray(
        values.reshape(heads, HEAD // 2, 2, *rest).swapaxes(1, 2).reshape(values.shape)
    )


def byte_tokens():
    letters = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in letters]
    table = {byte: chr(byte) for byte in letters} | {
        byte: chr(256 + at) for at, byte in enumerate(others)
    }
    return [table[byte] for byte in range(256)]


def make_tiny():
    random = np.random.default_rng(3)
    writer = gguf.GGUFWriter(HERE / "tiny.gguf", "llama")
    writer.add_name("tiny")
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500000.0)
    writer.add_rope_dimension_count(HEAD)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_key_value(
        "convoy.test.numbers", [1, 2, 3], gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.UINT16
    )
    writer.add_key_value(
        "convoy.test.reals", [0.5, 0.1], gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.FLOAT64
    )
    writer.add_key_value(
        "convoy.test.truths", [True, False], gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.BOOL
    )
    for kind, value in [
        ("UINT8", 200),
        ("INT8", -100),
        ("UINT16", 60000),
        ("INT16", -30000),
        ("INT32", -70000),
        ("UINT64", 1 << 40),
        ("INT64", -(1 << 40)),
        ("FLOAT64", 0.1),
    ]:
        writer.add_key_value("convoy.test." + kind.lower(), value, gguf.GGUFValueType[kind])
    tokens = byte_tokens() + ["\u0120t", "\u0120a", "he", "in", "\u0120the", "re"]
    tokens += ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool>"]
    types = (
        [gguf.TokenType.NORMAL] * 262 + [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.USER_DEFINED]
    )
    while len(tokens) < VOCAB:
        tokens.append(f"[PAD{len(tokens)}]")
        types.append(gguf.TokenType.UNUSED)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(["\u0120 t", "\u0120 a", "h e", "i n", "\u0120t he", "r e"])
    writer.add_bos_token_id(263)
    writer.add_eos_token_id(264)
    writer.add_chat_template(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    )
    expected = {}

    def add(name, own, shape, kind, heads=0):
        values = (random.standard_normal(shape) * 0.05).astype(np.float32)
        if kind in (Q.F32, Q.F16):
            stored = values.astype(np.float32 if kind == Q.F32 else np.float16)
            writer.add_tensor(name, stored)
            values = stored.astype(np.float32)
        else:
            blocks = ggml_blocks(values, kind)
            writer.add_tensor(name, blocks, raw_dtype=kind)
            values = gguf.quants.dequantize(blocks, kind).reshape(shape)
        expected[own] = in_own_order(values, heads) if heads else values

    add("token_embd.weight", "model.embed_tokens.weight", (VOCAB, HIDDEN), Q.Q6_K)
    add("output_norm.weight", "model.norm.weight", (HIDDEN,), Q.F32)
    for name, own, shape, kind, heads in [
        ("attn_norm.weight", "input_layernorm.weight", (HIDDEN,), Q.F32, 0),
        ("attn_q.weight", "self_attn.q_proj.weight", (HEADS * HEAD, HIDDEN), Q.Q4_K, HEADS),
        ("attn_k.weight", "self_attn.k_proj.weight", (KV * HEAD, HIDDEN), Q.F16, KV),
        ("attn_v.weight", "self_attn.v_proj.weight", (KV * HEAD, HIDDEN), Q.Q5_1, 0),
        ("attn_output.weight", "self_attn.o_proj.weight", (HIDDEN, HEADS * HEAD), Q.Q8_0, 0),
        ("ffn_norm.weight", "post_attention_layernorm.weight", (HIDDEN,), Q.F32, 0),
        ("ffn_gate.weight", "mlp.gate_proj.weight", (FFN, HIDDEN), Q.Q4_0, 0),
        ("ffn_up.weight", "mlp.up_proj.weight", (FFN, HIDDEN), Q.Q3_K, 0),
        ("ffn_down.weight", "mlp.down_proj.weight", (HIDDEN, FFN), Q.Q2_K, 0),
    ]:
        add("blk.0." + name, "model.layers.0." + own, shape, kind, heads)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    keep = {
        name: expected[name]
        for name in (
            "model.layers.0.self_attn.q_proj.weight",
            "model.layers.0.self_attn.k_proj.weight",
            "model.layers.0.input_layernorm.weight",
        )
    }
    save_file(
        {name: np.ascontiguousarray(values, dtype=np.float32) for name, values in keep.items()},
        HERE / "tiny.safetensors",
    )


def texts():
    rows = json.loads((ROOT / "tests/golden/text/encodings.json").read_text())[0]["rows"]
    more = [
        "1 22 333 4444 55555 3.3 3..3",
        "I've 'told HE'LL We'Ve",
        "x = a[3]+=1; // \u4e2d\u6587 7",
        "\u0967\u0968\u0969 \u00bd\u2177",
        "tabs\t\tand\n\n\nlines \n \n x",
        "camelCaseWord HTTPServer fooBAR",
    ]
    return [row["text"] for row in rows if row["text"]] + more


def ids_of(fields, rows):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "vocab.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        fields(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        model = Llama(str(path), vocab_only=True, verbose=False)
        return [model.tokenize(row.encode(), add_bos=False, special=True) for row in rows]


PRE = [
    "gpt-2",
    "smollm",
    "llama-bpe",
    "smaug-bpe",
    "qwen2",
    "stablelm2",
    "tekken",
    "gpt-4o",
    "deepseek-v3",
    "deepseek-coder",
    "falcon",
    "default",
]


def make_cuts():
    tokenizer = json.loads((ROOT / "examples/tally-3m/tokenizer.json").read_text())
    vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda item: item[1])
    added = {token["content"]: token for token in tokenizer["added_tokens"]}
    by_id = {id: token for token, id in vocabulary} | {
        token["id"]: text for text, token in added.items()
    }
    tokens = [by_id[id] for id in range(len(by_id))]
    types = [
        gguf.TokenType.CONTROL if token in added else gguf.TokenType.NORMAL for token in tokens
    ]
    merges = [
        merge if isinstance(merge, str) else " ".join(merge)
        for merge in tokenizer["model"]["merges"]
    ]
    rows = texts()
    found = {}
    for name in PRE:

        def fields(writer, name=name):
            writer.add_tokenizer_model("gpt2")
            writer.add_tokenizer_pre(name)
            writer.add_token_list(tokens)
            writer.add_token_types(types)
            writer.add_token_merges(merges)
            writer.add_bos_token_id(0)
            writer.add_eos_token_id(2)

        ids = ids_of(fields, rows)
        found[name] = [
            None if unicodedata.normalize("NFC", row) != row else own for row, own in zip(rows, ids)
        ]
    (HERE / "cuts.json").write_text(
        json.dumps({"texts": rows, "ids": found}, ensure_ascii=True) + "\n"
    )


if __name__ == "__main__":
    make_types()
    make_tiny()
    make_cuts()
