#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the sixty cases of tests/figures again, as sheets for people to inspect: tools/figure_sheets.py [FOLDER]

Writes screen.png, paper.png and print.png into tests/golden/figures or FOLDER, in 216 colours, which is a tenth of the size.
"""

import itertools
import operator
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

HOME = pathlib.Path(__file__).resolve().parent.parent


def chunks(png):
    at = 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        yield kind, png[at + 8 : at + 8 + size]
        at += size + 12


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def rows_of(png):
    """The width of an RGBA picture, and the red, green and blue values of each of its rows."""
    parts = list(chunks(png))
    width, height, depth, kind = struct.unpack(">IIBB", parts[0][1][:10])
    assert (depth, kind) == (8, 6), "wanted RGBA of 8 bits"
    data = zlib.decompress(b"".join(data for name, data in parts if name == b"IDAT"))
    rows, above = [], [bytes(width)] * 4
    for row in range(height):
        line = data[row * (4 * width + 1) : (row + 1) * (4 * width + 1)]
        above = [
            unfiltered(line[0], line[1 + place :: 4], before) for place, before in enumerate(above)
        ]
        rows.append(above[:3])
    return width, rows


def unfiltered(kind, values, above):
    def wrapped(left, right):
        return (left + right) & 255

    if kind == 0:
        return values
    if kind == 1:
        return bytes(itertools.accumulate(values, wrapped))
    assert kind == 2, f"a filter that resvg does not take: {kind}"
    return bytes(map(wrapped, values, above))


def in_few_colours(png):
    width, rows = rows_of(png)
    steps = [bytes(round(value / 51) * factor for value in range(256)) for factor in (36, 6, 1)]
    lines = []
    for colours in rows:
        red, green, blue = (values.translate(step) for values, step in zip(colours, steps))
        lines.append(b"\0" + bytes(map(operator.add, map(operator.add, red, green), blue)))
    palette = b"".join(
        bytes((51 * (index // 36), 51 * (index // 6 % 6), 51 * (index % 6))) for index in range(216)
    )
    head = struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0)
    return (
        png[:8]
        + chunk(b"IHDR", head)
        + chunk(b"PLTE", palette)
        + chunk(b"IDAT", zlib.compress(b"".join(lines), 9))
        + chunk(b"IEND", b"")
    )


def main():
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HOME / "tests/golden/figures")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [HOME / "build/bin/figures_tests", "--gtest_brief=1"],
            env=dict(os.environ, CONVOY_FIGURES=folder),
            check=True,
        )
        for name in ("screen.png", "paper.png", "print.png"):
            (target / name).write_bytes(in_few_colours((pathlib.Path(folder) / name).read_bytes()))


if __name__ == "__main__":
    main()
