"""Writes hjson.json: texts, and the values that the hjson package (3.1.0, DeepSpeed's parser) reads from them; null = it refuses the text."""

import json
from pathlib import Path

import hjson

TEXTS = [
    '{"a": 1, "b": [1, 2.5, -3e8], "c": {"d": "auto"}, "e": null, "f": true}',
    '// head\n{\n  # one\n  "a": 1, // two\n  /* three\n lines */ "b": 2 # four\n}\n// tail',
    '{\n "a": 1\n "b": "x"\n "c": [1\n2\n3]\n}',
    '{"a": 1, "b": [1, 2,], }',
    '{a: 1, b-c: two words, d: "x"\n}',
    "{\n  a: two words, and a comma\n  b: true, c: false\n  d: 1 # comment\n  e: 1x # no comment\n}",
    "{'a': 'single', \"b\": \"it's\"}",
    '{"a": "tab\\t, quote \\", slash \\/, \\u00e9, \\ud83d\\ude00"}',
    '{"a": "caf\u00e9 \u4e2d \U0001f600"}',
    "{\n  a: '''\n    first\n      second\n    third\n    '''\n}",
    "a: 1\nb: [2]\n",
    "[]",
    "{}",
    "",
    "# nothing\n",
    '{"a": 01}',
    '{"a": -0.5e-3, "b": 1E5, "c": 10}',
    '{"a": .5}',
    '{"a": +5}',
    '{"a": 1.}',
    '{"a": nullx, \n"b": null}',
    '{"a": [true, false, null, word\n]}',
    '{"a": {"b": {"c": [{"d": 1}]}}}',
    '{"a": 1',
    '{"a" 1}',
    '{"a": }',
    '{"a": [1, 2}',
    '{"a": "open}',
    '{"a": 1} x',
    '{"a": 1,, "b": 2}',
    '{"a": "\\x"}',
    '{"a": "\\u12"}',
    "{a b: 1}",
    "{: 1}",
    '{"a": /* c */ 1}',
    '{"a": 1 // c\n, "b": 2}',
    '{"a": http://x.y/z\n}',
    '{"a":1,"b":2}',
    '\ufeff{"a": 1}',
    '{\r\n"a": word\r\n"b": 2\r\n}\r\n',
    '{"": 1}',
]


def read(text):
    try:
        return {"value": json.loads(json.dumps(hjson.loads(text)))}
    except Exception:
        return None


path = Path(__file__).with_name("hjson.json")
path.write_text(json.dumps([{"text": text, "read": read(text)} for text in TEXTS], indent=1) + "\n")
