#!/usr/bin/env python3
"""Writes the picture of the districts into docs/architecture.md, from layers.toml.

usage: draw_districts.py [--check]        (--check: writes nothing, fails if the page is not up to date)
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- districts: begin -->\n", "<!-- districts: end -->\n"


def read_layers(text):
    """Name -> (district, included layers), in the order of the table."""
    layers = {}
    for block in re.split(r"^(?=\[)", text, flags=re.M)[1:]:
        name = re.match(r"\[(\w+)\]", block)[1]
        district = re.search(r'^district = "(\w+)"', block, re.M)
        includes = re.search(r"^includes = \[(.*)\]", block, re.M)[1]
        layers[name] = (district[1] if district else name, re.findall(r'"(\w+)"', includes))
    return layers


def edges_of(layers):
    edges = {}
    for district, includes in layers.values():
        into = edges.setdefault(district, set())
        into |= {layers[name][0] for name in includes} - {district}
    return edges


def implied(edges, district, other):
    """True when `other` is reached from `district` through a third one."""
    open_ones = [each for each in edges[district] if each != other]
    seen = set()
    while open_ones:
        each = open_ones.pop()
        if other in edges[each]:
            return True
        if each not in seen:
            seen.add(each)
            open_ones += edges[each]
    return False


def picture(layers):
    edges = edges_of(layers)
    lines = ["```mermaid", "graph BT"]
    for district in edges:
        names = [name for name, (of, _) in layers.items() if of == district]
        inside = "" if names == [district] else f"<br/><small>{', '.join(names)}</small>"
        lines.append(f'  {district}["<b>{district}</b>{inside}"]')
    for district, into in edges.items():
        lines += [
            f"  {district} --> {other}"
            for other in edges
            if other in into and not implied(edges, district, other)
        ]
    lines += ["```", "", "| District | Includes |", "|---|---|"]
    for district, into in edges.items():
        lines.append(
            f"| [{district}](../convoy/{district}/README.md) | {', '.join(each for each in edges if each in into) or '-'} |"
        )
    return "\n".join(lines) + "\n"


def main():
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    wanted = before + BEGIN + picture(read_layers((ROOT / "layers.toml").read_text())) + END + after
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(wanted)
    elif wanted != page:
        sys.exit("docs/architecture.md does not show layers.toml: run tools/draw_districts.py")


if __name__ == "__main__":
    main()
