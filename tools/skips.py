#!/usr/bin/env python3
"""Prints every test that the last ctest run skipped, with its reason: GoogleTest counts a skip as passed, and so does ctest.

  tools/skips.py BUILD_FOLDER KNOWN_FILE [--strict]

KNOWN_FILE names the skips that are expected: one a line, `ENTRY TEST`, both shell patterns; # begins a comment.
With --strict it ends with 1 if a test was skipped that KNOWN_FILE does not name."""

import fnmatch
import pathlib
import re
import sys


def entries(log):
    """Yields (ctest entry, its output) for each test in LastTest.log."""
    for part in re.split(r"^\d+/\d+ Testing: ", log, flags=re.M)[1:]:
        name, _, rest = part.partition("\n")
        yield name.strip(), rest


def skips_of(entry, output):
    """Yields (test, reason) for each skip by GoogleTest, and by a script that prints `skipped: REASON`."""
    lines = output.splitlines()
    reason = ""
    for index, line in enumerate(lines):
        if line.endswith(": Skipped"):
            reason = lines[index + 1].strip()
        elif found := re.match(r"\[  SKIPPED \] (\S+) \(", line):
            yield found[1], reason
        elif line.startswith("skipped: "):
            yield entry, line.removeprefix("skipped: ")


def known_patterns(text):
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return [line for line in lines if line]


def main():
    build, known_file = sys.argv[1:3]
    log = pathlib.Path(build, "Testing/Temporary/LastTest.log").read_text(errors="replace")
    known = known_patterns(pathlib.Path(known_file).read_text())
    found = [(entry, *skip) for entry, output in entries(log) for skip in skips_of(entry, output)]
    if not found:
        return 0
    surprises = 0
    print(f"{len(found)} skipped:")
    for entry, test, reason in found:
        expected = any(fnmatch.fnmatch(entry, e) and fnmatch.fnmatch(test, t) for e, t in known)
        surprises += not expected
        print(f"  {entry} {test}: {reason}{'' if expected else f'  (not in {known_file})'}")
    if surprises and "--strict" in sys.argv:
        print(
            f"{surprises} skips are not in {known_file}: install what they lack, or list them there with the reason"
        )
        return 1
    return 0


sys.exit(main())
