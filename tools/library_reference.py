#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/library.md from the public headers: their comments, and the declarations for programs.

  tools/library_reference.py > docs/reference/library.md
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ["process_group", "distributed_data_parallel", "sharing", "fully_sharded_data_parallel", "unit", "zero_optimizer",
           "data_parallel", "distributed_sampler", "checkpoint_folder", "performance_profiler"]


def without_comment_marks(lines):
    return "\n".join(line[3:] if line.startswith("// ") else line[2:] for line in lines)


def opening(text):
    """The comment that a header begins with, as Markdown: indented lines of it are code."""
    lines = text.split("\n")[2:]
    words = without_comment_marks(lines[:next(at for at, line in enumerate(lines) if not line.startswith("//"))])
    blocks = []
    for block in words.split("\n\n"):
        is_code = all(line.startswith("  ") for line in block.split("\n"))
        blocks.append("```cpp\n" + re.sub("(?m)^  ", "", block) + "\n```" if is_code else block)
    return re.sub("\n```\n\n```cpp\n", "\n\n", "\n\n".join(blocks))


def end_of_braces(text, begin):
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    raise ValueError("braces that do not close")


def without_bodies(text):
    """Function bodies and initialiser lists become semicolons."""
    head = re.compile(r"(\)(?: const)?(?: override)?)\s*(\{|\n\s+: )")
    out, at = "", 0
    for found in iter(lambda: head.search(text, at), None):
        brace = found.start(2)
        if text[brace] != "{":  # the braces behind an initialiser list
            brace = re.compile(r"\)\s*(\{\}|\{\n)").search(text, found.end()).start(1)
        out += text[at:found.end(1)] + ";"
        at = end_of_braces(text, brace)
    return out + text[at:]


def public_part(text):
    begin = text.index("namespace convoy {\n") + len("namespace convoy {\n")
    text = text[begin:text.rindex("}  // namespace convoy")]
    text = re.sub(r"namespace library \{.*?\}  // namespace library\n", "", text, flags=re.S)
    text = re.sub(r"namespace nn \{.*?\n\}\n", "", text, flags=re.S)
    text = re.sub(r"\n private:.*?\n\};", "\n};", text, flags=re.S)
    text = re.sub(r"\n  library::Sharing& sharing\(\).*?\n", "\n", text)
    text = re.sub(r"\n  struct Internal;.*?internal\(\)[^\n]*\n", "\n", text, flags=re.S)
    return re.sub(r"\n+\};", "\n};", re.sub(r"\n{3,}", "\n\n", without_bodies(text))).strip()


def main():
    print("# The library\n\nWritten by `tools/library_reference.py` from the headers. All of it: `#include <convoy/convoy.h>`, namespace "
          "`convoy`, CMake target\n`Convoy::library`. Errors are `std::runtime_error`s; `what()` says what was wanted, what was found and "
          "what to do.\n[How to use it](../how-to/use-as-a-library.md), [tutorial](../tutorial-library.md).")
    for name in HEADERS:
        text = (ROOT / f"convoy/library/{name}.h").read_text()
        print(f"\n## convoy/library/{name}.h\n\n{opening(text)}\n\n```cpp\n{public_part(text)}\n```")


if __name__ == "__main__":
    main()
