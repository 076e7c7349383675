# SPDX-License-Identifier: Apache-2.0
"""Writes masks.json: the tokens that another engine, xgrammar, allows at each place of texts that match a schema.
make_masks.py [FOLDER...]; pip install xgrammar==0.2.9 transformers. answer_masks_test.cpp compares ours.

Special tokens are left out but for the end: xgrammar reads them as text. White space is set equal: up to 40 signs between
two others. `strict_mode` is off, so that a schema means what the standard says. No text has a bounded length: there xgrammar
0.2.9 allows bare control characters, which are no JSON, and no escapes."""

import json
import pathlib
import sys

import transformers
import xgrammar

ROOT = pathlib.Path(__file__).parents[3]
FOLDERS = ["examples/tally-3m", "tests/golden/text/llama3", "tests/golden/text/gemma"]


def closed(properties, required=None):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


INTEGER, TEXT, BOOLEAN = {"type": "integer"}, {"type": "string"}, {"type": "boolean"}
CASES = [
    (closed({"a": INTEGER, "b": BOOLEAN}), ['{"a": 12, "b": true}', '{"a":-3,"b":false}']),
    (
        closed({"a": INTEGER, "b": TEXT, "c": {"type": "null"}}, ["b"]),
        ['{"b":"x","c":null}', '{\n  "a": 1,\n  "b": ""\n}'],
    ),
    (
        closed({"from": closed({"x": INTEGER}), "to": closed({"x": INTEGER}, [])}),
        ['{"from": {"x": 1}, "to": {}}'],
    ),
    (
        {"type": "array", "items": BOOLEAN, "minItems": 2, "maxItems": 3},
        ["[true,false]", "[ true, true, false ]"],
    ),
    ({"type": "array", "items": INTEGER}, ["[]", "[1, 20]"]),
    (
        {"type": "array", "prefixItems": [{"const": "x"}, INTEGER], "items": False, "minItems": 2},
        ['["x", 7]'],
    ),
    ({"enum": ["red", 7, None, True]}, ['"red"', "7", "null"]),
    ({"const": "a b"}, ['"a b"']),
    (TEXT, ['"It is \\"so\\"."', '"a\\n\u00e4"']),
    ({"type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,3}$"}, ['"AB-12"']),
    (INTEGER, ["0", "-17", "1024"]),
    ({"type": "integer", "minimum": 3, "maximum": 120}, ["3", "99", "120"]),
    ({"type": "number"}, ["0.5", "-12.25"]),
    ({"type": ["integer", "null"]}, ["null", "5"]),
    (
        {"anyOf": [closed({"kind": {"const": "box"}}), {"type": "array", "items": TEXT}]},
        ['{"kind": "box"}', '["a"]'],
    ),
    (
        {
            "$defs": {
                "node": closed(
                    {"name": TEXT, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}
                )
            },
            "$ref": "#/$defs/node",
        },
        ['{"name": "a", "next": {"name": "b", "next": null}}'],
    ),
]


def ranges(ids):
    """1, 2, 3, 7 as "1-3 7"."""
    parts = []
    for one in ids:
        if parts and parts[-1][1] == one - 1:
            parts[-1][1] = one
        else:
            parts.append([one, one])
    return " ".join(f"{a}-{b}" if a < b else str(a) for a, b in parts)


def no_text(tokenizer):
    special = {i for i, one in tokenizer.added_tokens_decoder.items() if one.special}
    return special - {tokenizer.eos_token_id}


def walk(compiler, tokenizer, schema, text):
    """The ids of the text, and the allowed ones before each of them and behind the last."""
    compiled = compiler.compile_json_schema(
        json.dumps(schema), any_whitespace=True, max_whitespace_cnt=40, strict_mode=False
    )
    matcher = xgrammar.GrammarMatcher(compiled)
    bits = xgrammar.allocate_token_bitmask(1, len(tokenizer))
    ids = tokenizer.encode(text, add_special_tokens=False)
    drawn = [one for one in range(len(tokenizer)) if one not in no_text(tokenizer)]
    masks = []
    for one in [*ids, None]:
        matcher.fill_next_token_bitmask(bits)
        words = bits[0].tolist()
        masks.append(ranges(i for i in drawn if words[i // 32] >> (i % 32) & 1))
        if one is not None and not matcher.accept_token(one):
            raise SystemExit(f"{schema} does not allow {tokenizer.decode([one])!r} in {text}")
    return {"ids": ids, "text": text, "masks": masks}


def masks_of(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(ROOT / folder)
    info = xgrammar.TokenizerInfo.from_huggingface(
        tokenizer, vocab_size=len(tokenizer), stop_token_ids=[tokenizer.eos_token_id]
    )
    compiler = xgrammar.GrammarCompiler(info)
    return {
        "folder": folder,
        "end": tokenizer.eos_token_id,
        "cases": [
            {"schema": schema, "walks": [walk(compiler, tokenizer, schema, text) for text in texts]}
            for schema, texts in CASES
        ],
    }


if __name__ == "__main__":
    made = [masks_of(folder) for folder in sys.argv[1:] or FOLDERS]
    lines = json.dumps(made, ensure_ascii=False, indent=None)
    (pathlib.Path(__file__).parent / "masks.json").write_text(lines + "\n")
