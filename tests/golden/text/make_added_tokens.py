# SPDX-License-Identifier: Apache-2.0
"""Adds tokens with every combination of options to tokenizer.json with transformers, and writes the tokens that it finds in texts.

usage: python make_added_tokens.py      (writes added/ beside itself; needs transformers 5, tokenizers)
"""

import itertools
import json
import pathlib
import shutil

from tokenizers import AddedToken, Tokenizer, normalizers
from transformers import AutoTokenizer

HERE = pathlib.Path(__file__).parent
FLAGS = ("lstrip", "rstrip", "normalized", "single_word", "special")


def token(content, **flags):
    return {"content": content, **{flag: flags.get(flag, False) for flag in FLAGS}}


def main():
    folder = HERE / "added"
    folder.mkdir(exist_ok=True)
    shutil.copy(HERE / "llama3" / "tokenizer.json", folder / "tokenizer.json")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.normalizer = normalizers.Lowercase()  # so that the option `normalized` has an effect
    tokenizer.add_tokens(
        [AddedToken("<both>", normalized=False), AddedToken("<kept>", special=True)]
    )
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    size = tokenizer.get_vocab_size()
    declared = {}
    for values in itertools.product((False, True), repeat=len(FLAGS)):
        name = "<T" + "".join(letter for letter, value in zip("lrnws", values) if value) + ">"
        declared[str(size + len(declared))] = token(name, **dict(zip(FLAGS, values)))
    declared[str(tokenizer.token_to_id("<both>"))] = token("<both>", special=True, lstrip=True)
    declared[str(tokenizer.token_to_id("<kept>"))] = token("<kept>", special=True)
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "added_tokens_decoder": declared,
                "bos_token": "<|begin_of_text|>",
                "eos_token": "<|eot_id|>",
                "additional_special_tokens": ["<more>", "<both>"],
                "tokenizer_class": "PreTrainedTokenizerFast",
            },
            indent=1,
        )
        + "\n"
    )
    names = [entry["content"] for entry in declared.values()] + ["<more>"]
    texts = [
        pattern.format(name=name)
        for name in names
        for pattern in ("a {name} b", "a{name}b", "A  {name}  {name}B", "{name}")
    ]
    texts += [" ".join(names), "".join(names), "<tlrnws> <TLRNWS> <BOTH> <More>"]
    loaded = AutoTokenizer.from_pretrained(folder)
    rows = [
        {"text": text, "ids": loaded(text, add_special_tokens=False)["input_ids"]} for text in texts
    ]
    (folder / "encodings.json").write_text(json.dumps(rows, separators=(",", ":")) + "\n")


main()
