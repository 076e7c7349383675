# SPDX-License-Identifier: Apache-2.0
"""docs/reference/capabilities.md is the one table of capabilities and of the machines on which they ran. Pages repeat its sentences
between the marks `<!-- is: NAME -->` and `<!-- end -->`, and outside of the marks no page contradicts a row.

  capabilities_test.py SOURCE_FOLDER [--fix]     --fix writes the table's sentences between the marks
"""

import pathlib
import re
import sys

TABLE = "docs/reference/capabilities.md"
MARK = re.compile(r"<!-- is: ([^>]+?) -->(.*?)<!-- end -->", re.S)
# For each capability: words of its state, and patterns that are false while the state has these words.
# If the words are gone, the state has changed, and its patterns must be revised.
DENIALS = {
    "one GPU": (
        "measured on one H200",
        [
            r"no (?:live )?GPUs? (?:has|have) (?:ever )?(?:run|tried|computed)",
            r"no GPUs? (?:has|have) been (?:tried|used|measured)",
            r"(?<!several )\bGPUs? unmeasured",
            r"written, (?:but )?not yet run",
            r"(?:never|not yet) (?:been )?(?:run|tried) on (?:a |any )?GPUs?\b",
            r"untried on GPUs?\b",
            r"no (?:live )?GPU was available",
            r"speed is measured nowhere",
            r"kernels ran in an interpreter",
        ],
    ),
    "several GPUs": (
        "not measured",
        [r"(?:two|several|eight|8|4|2) (?:H100|H200|A100|GPU)s? have run"],
    ),
    "processing on GPUs": ("not measured", [r"convoy process` has run on (?:a|one) (?:GPU|H200)"]),
    "described GPUs": ("described machines", []),
    "AMD's GPUs": ("does not compute there", [r"computes on AMD"]),
    "CUDA half of LibTorch": (
        "fetches it on hosts with an NVIDIA driver",
        [
            r"(?:only|fetches) the CPU half",
            r"with the CPU half of LibTorch",
            r"CUDA half is that of an installed",
        ],
    ),
    "nodes of a processing": (
        "or no folder with `--texts-in-store`",
        [
            r"need one `--run-dir` that they share",
            r"(?:all|both) nodes (?:must )?share (?:one|a) folder",
            r"a folder that all nodes share",
        ],
    ),
    "descents": ("on GPUs", [r"descents (?:run|are computed) (?:only )?on CPUs[,.]"]),
    "server": ("convoy serve", [r"HTTP API \| no\b", r"(?:has|is) no server"]),
    "GGUF": (
        "read and written",
        [r"no GGUF", r"GGUF[^|.]{0,40}\| no\b", r"cannot (?:read|write) GGUF"],
    ),
    "search in sweeps": (
        "pruning",
        [
            r"search beyond grids[^|]*\| no\b",
            r"no (?:search|pruning) (?:or|and) (?:search|pruning)",
        ],
    ),
    "oldest kernel": ("Linux 5.3", []),
}


def states(source):
    rows = re.findall(r"^\| ([^|]+) \| (.+) \|$", (source / TABLE).read_text(), re.M)
    return {name: state for name, state in rows if name not in ("capability", "---")}


def pages(source):
    """All pages except the table itself and pages about the past."""
    found = [
        *source.glob("*.md"),
        *(source / "docs").rglob("*.md"),
        *(source / "examples").rglob("*.md"),
        *(source / "convoy").rglob("*.md"),
    ]
    past = {source / "CHANGELOG.md", source / TABLE}
    return sorted(page for page in found if page not in past and "decisions" not in page.parts)


def folded(text):
    return " ".join(text.split())


def faults_of(text, rows):
    """The faults in the text of a page."""
    for name, quoted in MARK.findall(text):
        if name not in rows:
            yield f"the mark `is: {name}` names no row of {TABLE}"
        elif folded(quoted) != folded(rows[name]):
            yield f'`is: {name}` holds "{folded(quoted)}", the table "{rows[name]}": capabilities_test.py --fix'
    if len(re.findall(r"<!-- is: ", text)) != len(MARK.findall(text)):
        yield "a mark `is:` without its `end`"
    own = MARK.sub("", text)
    for name, (_, denials) in DENIALS.items():
        for denial in denials:
            for match in re.finditer(denial, folded(own), re.I):
                yield f'"{match.group(0)}" denies `{name}`: {rows[name]}'


def fixed(text, rows):
    return MARK.sub(
        lambda match: f"<!-- is: {match[1]} -->{rows.get(match[1], match[2])}<!-- end -->", text
    )


def finds_what_is_wrong(rows):
    good = f"<!-- is: one GPU -->{rows['one GPU']}<!-- end --> Several GPUs unmeasured. No GPU is needed."
    wrong = [
        "No GPU has\nrun it yet.",
        "`GPUs unmeasured`",
        "NVIDIA GPUs | written, not yet run |",
        "(no GPU was available)",
        "`./run build` fetches only the CPU half",
        "both nodes need one `--run-dir` that they share",
        "- Descents run on CPUs, eight at once.",
        "| server with an HTTP API | no |",
        "<!-- is: one GPU -->none<!-- end -->",
        "<!-- is: no such -->x<!-- end -->",
        "<!-- is: one GPU -->",
    ]
    if found := list(faults_of(good, rows)):
        sys.exit(f"a true page is refused: {found}")
    for text in wrong:
        if not list(faults_of(text, rows)):
            sys.exit(f"a planted mistake was not found: {text}")
    if list(faults_of(fixed(wrong[8], rows), rows)):
        sys.exit("--fix does not mend")


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    rows = states(source)
    if sorted(rows) != sorted(DENIALS):
        sys.exit(f"the table has {sorted(rows)}, this test {sorted(DENIALS)}")
    for name, (words, _) in DENIALS.items():
        if words not in rows[name]:
            sys.exit(
                f'the state of `{name}` no longer says "{words}": look at its denials in this test'
            )
    finds_what_is_wrong(rows)
    if "--fix" in sys.argv[2:]:
        for page in pages(source):
            if (mended := fixed(page.read_text(), rows)) != page.read_text():
                page.write_text(mended)
    failed = [
        f"{page.relative_to(source)}: {fault}"
        for page in pages(source)
        for fault in faults_of(page.read_text(), rows)
    ]
    quoted = "\n".join(page.read_text() for page in pages(source))
    failed += [
        f"{TABLE}: no page quotes `{name}`" for name in rows if f"<!-- is: {name} -->" not in quoted
    ]
    print("\n".join(failed) or f"{len(rows)} capabilities, {len(pages(source))} pages")
    sys.exit(1 if failed else 0)


main()
