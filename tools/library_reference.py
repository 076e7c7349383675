#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/library.md from the public headers: their comments, and the declarations for programs.

tools/library_reference.py > docs/reference/library.md
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Each header, by the name under which it is installed.
HEADERS = {
    f"{name}.h": f"convoy/library/{name}.h"
    for name in [
        "convoy",
        "process_group",
        "work",
        "ddp",
        "fsdp",
        "no_sync",
        "zero",
        "dp",
        "sampler",
        "checkpoint",
        "profiler",
    ]
}
HEADERS["error.h"] = "convoy/core/base/error_types.h"
HEADERS["sweep.h"] = "convoy/farm/sweep/command/function_sweep.h"


def without_comment_marks(lines):
    return "\n".join(line[3:] if line.startswith("// ") else line[2:] for line in lines)


def opening(text):
    """The first comment of a header as Markdown. Its indented lines are code."""
    lines = text.split("\n")[2:]
    words = without_comment_marks(
        lines[: next(at for at, line in enumerate(lines) if not line.startswith("//"))]
    )
    blocks = []
    for block in re.sub("<convoy/.*?>", r"`\g<0>`", words).split("\n\n"):
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
    """Replaces function bodies and initialiser lists by semicolons."""
    head = re.compile(r"(\)(?: const)?(?: override)?(?: noexcept)?)\s*(\{|\n\s+: )")
    out, at = "", 0
    for found in iter(lambda: head.search(text, at), None):
        brace = found.start(2)
        if text[brace] != "{":  # skips the initialiser list to the braces of the body
            brace = re.compile(r"\)\s*(\{\}|\{\n)").search(text, found.end()).start(1)
        out += text[at : found.end(1)] + ";"
        at = end_of_braces(text, brace)
    return out + text[at:]


def error_kinds(text):
    """Replaces the macro calls that define the kinds of errors by a list of the kinds."""
    kinds = re.findall(r'CONVOY_ERROR_KIND\((\w+), ExitCode::(\w+), ("\w+")\);', text)
    codes = dict(re.findall(r"^  (\w+) = (\d+),", text, re.M))
    lines = "".join(
        f"class {name} : public Error;  // kind() {kind}, code() {codes[code]}\n"
        for name, code, kind in kinds
    )
    return re.sub(
        r"#define CONVOY_ERROR_KIND.*?#undef CONVOY_ERROR_KIND\n", lambda _: lines, text, flags=re.S
    )


def public_part(text):
    begin = text.index("namespace convoy {\n") + len("namespace convoy {\n")
    text = error_kinds(text)[begin:]
    text = text[: text.rindex("}  // namespace convoy")]
    text = re.sub(r"namespace detail \{.*?\n\}\n", "", text, flags=re.S)
    text = re.sub(r" : public detail::\S+ \{\n public:\n  using [^\n]*\n\};", ";", text)
    text = re.sub(r"\n private:.*?\n\};", "\n};", text, flags=re.S)
    return re.sub(r"\n+\};", "\n};", re.sub(r"\n{3,}", "\n\n", without_bodies(text))).strip()


def main():
    print(
        "# The library\n\nWritten by `tools/library_reference.py` from the headers. All for LibTorch programs: `#include <convoy/convoy.h>`, "
        "CMake target\n`Convoy::convoy`; `<convoy/sweep.h>` with the target `Convoy::sweep` needs no LibTorch. All names stand in namespace "
        "`convoy`; `convoy::detail`\nand `<convoy/detail/...>` are private. Convoy throws [`convoy::Error`](#convoyerrorh), a `std::runtime_error`: "
        "its kinds have the [exit codes](exit-codes.md)\nof the programs.\n[How to use it](../how-to/use-as-a-library.md), "
        "[tutorial](../tutorial-library.md)."
    )
    for name, source in HEADERS.items():
        text = (ROOT / source).read_text()
        print(f"\n## convoy/{name}\n\n{opening(text)}")
        if "namespace convoy {\n" in text:
            print(f"\n```cpp\n{public_part(text)}\n```")


if __name__ == "__main__":
    main()
