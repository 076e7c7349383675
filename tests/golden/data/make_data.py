# SPDX-License-Identifier: Apache-2.0
"""Writes the data files of the row-source tests with the reference writers (csv, json, pyarrow), and rows.json: the rows
that Python reads back from them. Run from this folder: python make_data.py"""

import csv
import io
import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent

ROWS = [
    {"question": "plain", "answer": "one"},
    {"question": "with, comma", "answer": 'quote " inside'},
    {"question": "line\nbreak", "answer": "crlf\r\nbreak"},
    {"question": "", "answer": "数は三 é 🙂"},
    {"question": "  spaces kept  ", "answer": "tab\tkept"},
]


def write_csv(name, **options):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, ["question", "answer"], **options)
    writer.writeheader()
    writer.writerows(ROWS)
    (HERE / name).write_bytes(text.getvalue().encode())


def write_nested():
    """Writes columns of nested types beside plain ones. Returns the rows that Python reads back, with maps as dicts."""
    turns = [[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Arr"}], []]
    turn = pa.struct([("role", pa.string()), ("content", pa.string())])
    table = pa.table(
        {
            "messages": pa.array(turns, pa.list_view(turn)),
            "counts": pa.array([[1, 2], None], pa.large_list_view(pa.int32())),
            "map": pa.array([[("a", 1), ("b", 2)], []], pa.map_(pa.string(), pa.int64())),
            "bytes": pa.array([b"x", b"y"], pa.binary_view()),
            "document": pa.array(['{"a": 1}', "null"], pa.json_()),
        }
    )
    pq.write_table(table, HERE / "nested.parquet", compression="zstd")
    assert pq.read_table(HERE / "nested.parquet").schema.field("messages").type == pa.list_view(
        turn
    )
    rows = table.to_pylist(maps_as_pydicts="strict")
    for row in rows:
        row["bytes"] = row["bytes"].decode()
    return rows


def main():
    write_csv("minimal.csv", lineterminator="\n")
    write_csv("quoted_crlf.csv", lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    write_csv("tabs.tsv", delimiter="\t", lineterminator="\n")
    (HERE / "ascii.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (HERE / "pretty.json").write_text(json.dumps(ROWS, indent=2, ensure_ascii=False))
    (HERE / "data_key.json").write_text(
        json.dumps({"version": [1, {"a": "]"}], "data": ROWS, "end": None})
    )
    pq.write_table(pa.Table.from_pylist(ROWS), HERE / "rows.parquet", compression="snappy")

    typed = [
        {
            "text": "a",
            "count": 1,
            "share": 0.5,
            "flag": True,
            "tags": ["x", "y"],
            "who": {"name": "Ann", "age": 3},
        },
        {
            "text": None,
            "count": -(2**60),
            "share": None,
            "flag": False,
            "tags": [],
            "who": {"name": None, "age": 0},
        },
    ]
    table = pa.Table.from_pylist(typed)
    table = table.append_column("kind", pa.array(["p", "q"]).dictionary_encode())
    table = table.append_column("large", pa.array(["l1", "l2"], pa.large_string()))
    for row, kind, large in zip(typed, "pq", ["l1", "l2"]):
        row.update(kind=kind, large=large)
    pq.write_table(table, HERE / "typed.parquet", compression="zstd")

    chats = [
        {
            "messages": [
                {"role": "user", "content": f"question {i}"},
                {"role": "assistant", "content": f"answer {i}"},
            ]
        }
        for i in range(3000)
    ]
    pq.write_table(
        pa.Table.from_pylist(chats), HERE / "chats.parquet", compression="zstd", row_group_size=700
    )
    (HERE / "rows.json").write_text(
        json.dumps({"rows": ROWS, "typed": typed, "nested": write_nested()}, indent=1)
    )


if __name__ == "__main__":
    main()
