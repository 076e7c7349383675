# SPDX-License-Identifier: Apache-2.0
"""Writes small data sets in the schemas and layouts of the Hugging Face hub with pyarrow and Python's compressors, and
rows.json: the rows that Python reads back from them. Run from this folder: python make_datasets.py (pyarrow, zstandard)"""

import bz2
import gzip
import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

HERE = pathlib.Path(__file__).parent

COT = [
    {
        "source": "synthetic_math",
        "problem": f"Find ${a}x + {b} = {a * 3 + b}$ for $x$ 🙂.",
        "solution": f"Subtract {b}, divide by {a}: $x = \\boxed{{3}}$",
        "messages": [
            {"content": f"Find ${a}x + {b} = {a * 3 + b}$ for $x$ 🙂.", "role": "user"},
            {"content": f"Subtract {b}, divide by {a}: $x = \\boxed{{3}}$", "role": "assistant"},
        ],
    }
    for a in range(2, 6)
    for b in range(1, 4)
]

ANSWERS = ["3", "proof", "notfound", "", "\\frac{1}{2}", None]
NUMINA_15 = [
    {
        "problem": None if i == 7 else f"Problem {i}",
        "solution": f"Solution {i} with $\\boxed{{\\frac{{{i}}}{{2}}}}$",
        "answer": ANSWERS[i % len(ANSWERS)],
        "problem_type": "Algebra",
        "question_type": "math-word-problem" if i % 2 == 0 else "proof",
        "problem_is_valid": "Yes",
        "solution_is_valid": "Yes" if i % 3 else "Incomplete",
        "source": "olympiads",
        "synthetic": i % 4 == 0,
    }
    for i in range(10)
]

LINES = [
    {"question": f"What is {i} + {i}?", "answer": f"{i}+{i}={2 * i}\n#### {2 * i}"}
    for i in range(25)
]


def write_parquet(rows, name, schema=None, **options):
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, **options)


def lines_of(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def main():
    for shard in range(3):
        write_parquet(
            COT[4 * shard : 4 * shard + 4],
            f"numina_cot/data/train-{shard:05}-of-00003.parquet",
            row_group_size=3,
            compression="snappy",
        )
    write_parquet(COT[:2], "numina_cot/data/test-00000-of-00001.parquet")
    write_parquet(
        NUMINA_15,
        "numina_15/data/train-00000-of-00001.parquet",
        compression="zstd",
        row_group_size=4,
    )

    packed = HERE / "packed"
    packed.mkdir(exist_ok=True)
    plain = lines_of(LINES)
    (packed / "lines.jsonl.gz").write_bytes(gzip.compress(plain, mtime=0))
    # A gzip file of two members, as `cat a.gz b.gz` or bgzip makes it.
    (packed / "members.jsonl.gz").write_bytes(
        gzip.compress(plain[:700], mtime=0) + gzip.compress(plain[700:], mtime=0)
    )
    (packed / "lines.jsonl.zst").write_bytes(
        zstandard.ZstdCompressor(write_checksum=True).compress(plain)
    )
    (packed / "lines.jsonl.bz2").write_bytes(bz2.compress(plain))
    (packed / "list.json.gz").write_bytes(
        gzip.compress(json.dumps(LINES, indent=1).encode(), mtime=0)
    )
    (HERE / "rows.json").write_text(
        json.dumps({"cot": COT, "numina_15": NUMINA_15, "lines": LINES}, indent=1)
    )


if __name__ == "__main__":
    main()
