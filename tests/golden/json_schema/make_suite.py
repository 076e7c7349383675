# SPDX-License-Identifier: Apache-2.0
"""Writes suite.jsonl: groups of JSON Schema's own test suite (MIT licence, Copyright (c) 2012 Julian Berman), draft 2020-12,
one a line. Left out are files of keywords that Convoy refuses in every group, and of other documents.

    git clone https://github.com/json-schema-org/JSON-Schema-Test-Suite  # 44401e0c
    python3 tests/golden/json_schema/make_suite.py JSON-Schema-Test-Suite
"""

import json
import pathlib
import sys

LEFT_OUT = {
    "unevaluatedItems",
    "unevaluatedProperties",
    "refRemote",
    "dynamicRef",
    "anchor",
    "vocabulary",
    "default",
}


def groups(folder):
    for file in sorted(folder.glob("*.json")):
        if file.stem in LEFT_OUT:
            continue
        for group in json.loads(file.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict):
                schema.pop("$schema", None)
            tests = [{"data": test["data"], "valid": test["valid"]} for test in group["tests"]]
            yield {
                "file": file.stem,
                "description": group["description"],
                "schema": schema,
                "tests": tests,
            }


def main():
    suite = pathlib.Path(sys.argv[1]) / "tests" / "draft2020-12"
    lines = [
        json.dumps(group, ensure_ascii=False, separators=(",", ":")) for group in groups(suite)
    ]
    pathlib.Path(__file__).with_name("suite.jsonl").write_text("\n".join(lines) + "\n")


main()
