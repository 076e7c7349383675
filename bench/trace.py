#!/usr/bin/env python3
"""Reads from a trace how much of the time of a step's reductions overlaps with backward.

    bench/trace.py runs/NAME/traces/rank-0.json [--svg docs/images/overlap.svg]

Prints a row per reduction of the last traced step, and draws the step.
"""

import argparse
import json

ROW, WIDTH, LEFT = 18, 640, 90
COLOURS = {"forward": "#4477aa", "backward": "#66ccee", "reduce": "#ccbb44", "optimize": "#228833"}


def read_step(path):
    events = json.load(open(path))["traceEvents"]
    step = [e for e in events if e.get("cat") == "step"][-1]
    begin, end = step["ts"], step["ts"] + step["dur"]
    inside = [e for e in events if e.get("ts", -1) >= begin and e["ts"] <= end]
    phases = [(e["name"], e["ts"], e["ts"] + e["dur"]) for e in inside if e.get("cat") == "phase"]
    edges = {}
    for event in (e for e in inside if e.get("cat") == "collective"):
        edges.setdefault(event["id"], {"bytes": event["args"]["bytes"]})[event["ph"]] = event["ts"]
    reductions = [
        (e["b"], e["e"], e["bytes"]) for e in edges.values() if e["bytes"] >= 65536 and "e" in e
    ]
    return begin, end, phases, sorted(reductions)


def svg(path, begin, end, phases, reductions):
    scale = WIDTH / (end - begin)
    height = ROW * (len(reductions) + 3)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 10} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{LEFT + WIDTH + 10}" height="{height}" fill="white"/>',
        f'<text x="4" y="{ROW - 4}">rank 0</text>',
    ]

    def bar(row, left, right, colour, label=""):
        x, width = LEFT + (left - begin) * scale, max(1, (right - left) * scale)
        parts.append(
            f'<rect x="{x:.1f}" y="{row * ROW + 3}" width="{width:.1f}" height="{ROW - 4}" fill="{colour}"/>'
        )
        if label and width > 7 * len(label):
            parts.append(f'<text x="{x + 3:.1f}" y="{row * ROW + 14}">{label}</text>')

    for name, left, right in phases:
        bar(0, left, right, COLOURS.get(name, "#bbbbbb"), name)
    for index, (left, right, size) in enumerate(reductions):
        parts.append(f'<text x="4" y="{(index + 1) * ROW + 14}">{size / 2**20:.1f} MiB</text>')
        bar(index + 1, left, right, "#ee6677")
    parts.append(
        f'<text x="{LEFT}" y="{height - 8}">0</text>'
        f'<text x="{LEFT + WIDTH}" y="{height - 8}" text-anchor="end">{(end - begin) / 1e3:.0f} ms</text></svg>'
    )
    open(path, "w").write("\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--svg")
    arguments = parser.parse_args()
    begin, end, phases, reductions = read_step(arguments.trace)
    backward = [(left, right) for name, left, right in phases if name == "backward"]
    total = hidden = 0
    for left, right, size in reductions:
        within = sum(max(0, min(right, b) - max(left, a)) for a, b in backward)
        total, hidden = total + right - left, hidden + within
        print(
            f"{size / 2**20:7.2f} MiB  from {(left - begin) / 1e3:8.2f} to {(right - begin) / 1e3:8.2f} ms, "
            f"{within / 1e3:6.2f} ms of it within backward"
        )
    for name, left, right in phases:
        print(f"{name:9} from {(left - begin) / 1e3:8.2f} to {(right - begin) / 1e3:8.2f} ms")
    print(
        f"{len(reductions)} reductions, {total / 1e3:.2f} ms, {100 * hidden / max(total, 1e-9):.0f} % within backward"
    )
    if arguments.svg:
        svg(arguments.svg, begin, end, phases, reductions)


if __name__ == "__main__":
    main()
