# SPDX-License-Identifier: Apache-2.0
"""The outputs that the documentation shows for commands on the machines of tests/machines equal their real outputs.

    python3 pages_test.py SOURCE_FOLDER PROGRAM_FOLDER [--fix]

A block of a page after `<!-- machine: NAME -->` has command lines, which begin with "$ ", each followed by its output. --fix rewrites the outputs.
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import machines

BLOCK = re.compile(r"(<!-- machine: (\w+) -->\n```text\n)(.*?)(```\n)", re.S)
# Lines with times, which differ between runs.
TIMES = re.compile(r"^(watched|watching took|gpu\d+: no answer for) .*$", re.M)


def printed(programs, environment, text):
    out = ""
    for line in text.splitlines():
        if not line.startswith("$ "):
            continue
        out += line + "\n"
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(
                ["bash", "-c", line[2:]],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=folder,
                timeout=1200,
                check=False,
                env={**environment, "PATH": f"{programs}:{os.environ['PATH']}"},
            )
        out += run.stdout
    return out


def without_times(text):
    return TIMES.sub(lambda line: re.sub(r"\b[0-9.]+", "#", line.group(0)), text)


def main():
    source, programs = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    fix = "--fix" in sys.argv
    failed = blocks = 0
    with tempfile.TemporaryDirectory() as scratch:
        known = {}

        def environment_of(name):
            if name not in known:
                known[name] = {
                    **machines.plain_environment(programs),
                    **machines.lay_out(source, name, pathlib.Path(scratch) / name),
                }
            return known[name]

        for page in sorted((source / "docs").rglob("*.md")):
            text = page.read_text()

            def check(block):
                nonlocal failed, blocks
                blocks += 1
                now = printed(programs, environment_of(block.group(2)), block.group(3))
                if without_times(now) != without_times(block.group(3)):
                    failed += 1
                    sys.stdout.writelines(
                        difflib.unified_diff(
                            block.group(3).splitlines(True),
                            now.splitlines(True),
                            str(page),
                            "printed",
                        )
                    )
                    return block.group(1) + now + block.group(4)
                return block.group(0)

            fixed = BLOCK.sub(check, text)
            if fix and fixed != text:
                page.write_text(fixed)
    print(f"{blocks} blocks, {failed} differ")
    sys.exit(0 if blocks >= 8 and (fix or failed == 0) else 1)


if __name__ == "__main__":
    main()
