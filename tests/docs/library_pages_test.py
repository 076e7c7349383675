# SPDX-License-Identifier: Apache-2.0
"""The library's reference equals the text of its headers, the tutorial quotes programs that are compiled, and the comments of the
library are whole sentences of at most 100 columns.

  library_pages_test.py SOURCE_FOLDER
"""

import pathlib
import re
import subprocess
import sys

source = pathlib.Path(sys.argv[1])
written = subprocess.run(
    [sys.executable, source / "tools/library_reference.py"],
    check=True,
    capture_output=True,
    text=True,
).stdout
if written != (source / "docs/reference/library.md").read_text():
    sys.exit(
        "docs/reference/library.md is not what the headers say: tools/library_reference.py > docs/reference/library.md"
    )
public = {
    path.name
    for path in (source / "convoy/library").glob("*.h")
    if not path.name.endswith("_test.h")
}
described = set(re.findall(r"^## convoy/(\S+)$", written, re.M))
missing = (public | {"error.h", "sweep.h"}) - described
if missing:
    sys.exit(f"public headers that the reference leaves out: {missing}")

programs = [path.read_text() for path in sorted(source.glob("examples/cpp-*/main.cpp"))]
quotes = re.findall(
    r"^```cpp\n(.*?)^```$", (source / "docs/tutorial-library.md").read_text(), re.M | re.S
)
for quote in quotes:
    if not any(quote in program for program in programs):
        sys.exit(f"docs/tutorial-library.md quotes what no example has:\n{quote}")
if len(quotes) < 8:
    sys.exit(f"only {len(quotes)} quotes were found")
for path in sorted((source / "convoy/library").rglob("*.[ch]*")):
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if len(line) > 100 or re.search(r"// (?:What|Who|Whose|Of) ", line):
            sys.exit(
                f"{path}:{number}: a comment begins with a verb or a noun, a line has 100 columns: {line}"
            )
print(f"{len(described)} headers, {len(quotes)} quotes")
