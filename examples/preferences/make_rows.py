#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes train.jsonl (400 pairs) and test.jsonl (100 pairs) from the rows of examples/sums: short correct sums are preferred.

  examples/preferences/make_rows.py

The chosen answer is the last line of a row's own answer alone. The rejected one is, in turn, the same line with a wrong
number, the whole answer with its steps, and a long sentence around the right number.
"""

import json
import pathlib
import random

HERE = pathlib.Path(__file__).resolve().parent
SUMS = HERE.parent / "sums"


def pairs(name, count, seed):
    draw = random.Random(seed)
    rows = [json.loads(line) for line in (SUMS / f"{name}.jsonl").read_text().splitlines()]
    for index, row in enumerate(rows[:count]):
        result = row["answer"].rsplit("#### ", 1)[1]
        wrong = str(int(result) + draw.choice([-11, -10, -2, -1, 1, 2, 10, 11]))
        rejected = (
            f"#### {wrong}",
            row["answer"],
            f"Let me think about it. The result must be {result}.\n#### {result}",
        )[index % 3]
        yield {
            "prompt": [{"role": "user", "content": row["question"]}],
            "chosen": [{"role": "assistant", "content": f"#### {result}"}],
            "rejected": [{"role": "assistant", "content": rejected}],
        }


if __name__ == "__main__":
    for name, count in (("train", 400), ("test", 100)):
        text = "".join(json.dumps(row) + "\n" for row in pairs(name, count, seed=count))
        (HERE / f"{name}.jsonl").write_text(text)
