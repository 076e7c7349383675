# SPDX-License-Identifier: Apache-2.0
"""Writes a made-up byte-level BPE tokenizer as large as the tokenizer of Llama 3 (128,000 tokens, 280,147 merges, 256 special tokens).

usage: python make_large_tokenizer.py FOLDER     (the same bytes every time; needs nothing)
"""

import itertools
import json
import pathlib
import random
import sys

TOKENS, MERGES, SPECIALS = 128_000, 280_147, 256
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def byte_letters():
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return [chr(byte) for byte in own] + [chr(0x100 + index) for index in range(len(others))]


def main(folder):
    draw = random.Random(1)
    tokens = byte_letters()
    letters = "etaoinshrdlu"
    for length in (2, 3, 4):
        tokens += ["".join(word) for word in itertools.product(letters, repeat=length)]
    known = set(tokens)
    while len(tokens) < TOKENS:
        word = "".join(draw.choices(letters, k=draw.choice((5, 7, 8))))
        if word not in known:
            tokens.append(word)
            known.add(word)
    # Several merges may make the same token, as in the list of Llama 3.
    pairs = [(word[:cut], word[cut:]) for word in tokens for cut in range(1, len(word))]
    merges = [" ".join(pair) for pair in pairs if known.issuperset(pair)][:MERGES]
    assert len(merges) == MERGES, len(merges)
    specials = ["<|begin_of_text|>", "<|end_of_text|>"]
    specials += [f"<|reserved_special_token_{index}|>" for index in range(SPECIALS - 2)]
    flags = {
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    added = [
        {"id": TOKENS + index, "content": name, **flags} for index, name in enumerate(specials)
    ]
    pieces = [
        {"Split": {"pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}},
        {"ByteLevel": {"add_prefix_space": False, "trim_offsets": True, "use_regex": False}},
    ]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": name, **options} for piece in pieces for name, options in piece.items()
            ],
        },
        "post_processor": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": False,
            "use_regex": True,
        },
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": merges,
        },
    }
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, indent=2, ensure_ascii=False))
    decoder = {
        str(token["id"]): {key: token[key] for key in token if key != "id"} for token in added
    }
    config = {
        "added_tokens_decoder": decoder,
        "bos_token": specials[0],
        "eos_token": specials[1],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
