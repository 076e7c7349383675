# SPDX-License-Identifier: Apache-2.0
"""docs/README.md is the index: it links to each page below docs/ exactly once. No link of a page leads nowhere. Some block of
a page uses each command, with flags as its help spells them. docs/reference/errors.md has the errors of the sources. In a page
nothing "wants", "knows" or "speaks", and no sentence begins with What, Who, Whose or Of. tests/README.md and
examples/README.md name every folder beside them.

  index_test.py SOURCE_FOLDER
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

GENERATED = [
    "reference/commands.md",
    "reference/config.md",
    "reference/errors.md",
    "reference/library.md",
]
RIDDLE = re.compile(
    r"\b(?:wants|knows|speaks)\b|(?:^(?:[-|>] |\d+\. )?(?:\*\*)?|[.:] |\| )(?:What|Who|Whose|Of) [a-z]",
    re.M,
)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def without_code(text):
    return re.sub(r"(`+)(?!`).*?\1", "", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def headings_of(page):
    """The headings of a page in the form in which links name them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    return {
        re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.M)
    }


def targets_of(page):
    """Yields (link, file, heading) for each link to a file."""
    for link in LINK.findall(without_code(page.read_text())):
        if "://" not in link and not link.startswith("mailto:"):
            place, _, heading = link.partition("#")
            yield link, (page.parent / place).resolve() if place else page, heading


def commands_without_use(source, pages):
    """Commands of the reference that no shell block of a page uses."""
    names = re.findall(
        r"^##+ convoy (.+)$", (source / "docs/reference/commands.md").read_text(), re.M
    )
    blocks = "\n".join(
        "\n".join(re.findall(r"^```(?:sh|bash)\n(.*?)^```$", page.read_text(), re.M | re.S))
        for page in pages
    )
    return [name for name in names if not re.search(rf"\bconvoy {re.escape(name)}\b", blocks)]


def older_flags(source, page):
    """(command, flag, the flag in the help) for each command of a page whose flag has another spelling than in the help. Pages for
    users of other programs are left out, because they show the flags of those programs."""
    if re.match("coming-from-|guide-", page.name):
        return
    spellings = (source / "convoy/apps/front/accepted_spellings.txt").read_text()
    rows = re.findall(r"^([a-z ]+?)((?: --?[\w-]+)+) = (--[\w-]+)$", spellings, re.M)
    others = [
        (command, flag, name)
        for command, flags, name in rows
        for flag in flags.split()
        if flag.startswith("--")
    ]
    for typed in re.findall(r"convoy [^`|\n]*", page.read_text().replace("\\\n", " ")):
        for command, flag, name in others:
            if flag != name and re.match(
                rf"convoy {command} (?:.* )?{flag}(?![\w-])", typed.split(" -- ")[0]
            ):
                yield command, flag, name


def strange_layers(source):
    """Names in the layer column of the glossary that are neither a layer nor a folder."""
    layers = set(re.findall(r"^\[(\w+)\]", (source / "layers.toml").read_text(), re.M))
    columns = re.findall(
        r"^\|.*\| ([^|]*`) \|$", (source / "docs/reference/glossary.md").read_text(), re.M
    )
    names = {name for column in columns for name in re.findall(r"`([^`]+)`", column)}
    return sorted(
        name for name in names - layers if "/" not in name or not (source / name).is_dir()
    )


def unnamed_folders(source):
    """Folders that the README.md beside them does not name."""
    for place in ("tests", "examples"):
        text = (source / place / "README.md").read_text()
        for folder in sorted((source / place).iterdir()):
            if (
                folder.is_dir()
                and not folder.name.startswith(("_", "."))
                and f"`{folder.name}" not in text
            ):
                yield f"{place}/README.md does not name {folder.name}"


def faults_of(source):
    """The faults in the pages of a copy of the repository."""
    docs = source / "docs"
    index = docs / "README.md"
    pages = sorted(page for page in docs.rglob("*.md") if page != index)
    named = [target for _, target, _ in targets_of(index)]
    faults = []
    for page in pages:
        times = named.count(page)
        if times != 1:
            faults.append(f"docs/README.md links {page.relative_to(docs)} {times} times, not once")
    maps = [source / place / "README.md" for place in ("tests", "examples", "bench")]
    for page in [
        *pages,
        index,
        *maps,
        source / "README.md",
        source / "CONTRIBUTING.md",
        source / "CHANGELOG.md",
    ]:
        for link, target, heading in targets_of(page):
            if not target.exists():
                faults.append(f"{page.relative_to(source)} links {link}, which is not there")
            elif heading and target.suffix == ".md" and heading not in headings_of(target):
                faults.append(f"{page.relative_to(source)} links {link}, which has no such heading")
    for page in [*pages, index, *maps, source / "README.md", source / "CONTRIBUTING.md"]:
        if page not in [docs / name for name in GENERATED]:
            faults += [
                f"{page.relative_to(source)} riddles: {found.group(0)!r}"
                for found in RIDDLE.finditer(without_code(page.read_text()))
            ]
            faults += [
                f"{page.relative_to(source)} types {flag} of `convoy {command}`, whose help says {name}"
                for command, flag, name in older_flags(source, page)
            ]
    errors = (docs / "reference/errors.md").read_text()
    faults += [
        f"a message of the sources riddles: {found.group(0)!r}"
        for found in re.finditer(r".*\b(?:wants|knows|speaks)\b.*", errors)
    ]
    faults += [
        f"the glossary names the layer {name}, which layers.toml lacks"
        for name in strange_layers(source)
    ]
    faults += unnamed_folders(source)
    faults += [
        f"no block of a page uses `convoy {name}`" for name in commands_without_use(source, pages)
    ]
    return faults


def finds_planted_faults(source):
    """True if each planted fault is found, and nothing else."""

    def plant(name, change):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder).resolve() / "copy"
            copy.mkdir()
            shutil.copytree(source / "docs", copy / "docs")
            for page in source.glob("*.md"):
                shutil.copy(page, copy)
            for other in [
                "LICENSE",
                "bench",
                "examples",
                "tests",
                "convoy",
                "presets",
                "layers.toml",
            ]:
                (copy / other).symlink_to(source / other)
            change(copy / "docs")
            found = faults_of(copy)
            if len(found) != 1:
                sys.exit(f"planted {name}, and found {found}")

    def add(page, text):
        page.write_text(page.read_text() + text)

    plant("a page without a link", lambda docs: (docs / "how-to/lost.md").write_text("# Lost\n"))
    plant("a second link", lambda docs: add(docs / "README.md", "\n[again](tutorial.md)\n"))
    plant("a link to no page", lambda docs: add(docs / "tutorial.md", "\n[gone](gone.md)\n"))
    plant("a riddle", lambda docs: add(docs / "tutorial.md", "\nA tutorial wants a reader.\n"))
    plant("a fragment", lambda docs: add(docs / "tutorial.md", "\n- Who reads it is pleased.\n"))
    plant(
        "a command that no page uses",
        lambda docs: add(docs / "reference/commands.md", "\n## convoy sing\n"),
    )
    plant(
        "an older flag",
        lambda docs: add(docs / "tutorial.md", "\n`convoy train run.yaml --output-dir a`\n"),
    )
    plant(
        "a layer that is none",
        lambda docs: add(docs / "reference/glossary.md", "| ship | It sails. | `sea` |\n"),
    )

    def add_folder(docs):
        examples = docs.parent / "examples"
        real = examples.resolve()
        examples.unlink()
        examples.mkdir()
        for child in real.iterdir():
            (examples / child.name).symlink_to(child)
        (examples / "unheard").mkdir()

    plant("a folder that the map of examples lacks", add_folder)
    plant(
        "a link to no heading",
        lambda docs: add(docs / "tutorial.md", "\n[gone](how-to/models.md#gone)\n"),
    )


def faults_of_hints(source):
    """Errors that lack a hint, and a fault if a planted error without a hint is not found."""
    sys.path.insert(0, str(source / "tools"))
    import errors_page

    listed = errors_page.exceptions(errors_page.WITHOUT_HINT.read_text())
    faults = list(errors_page.faults(errors_page.all_errors(), listed))
    said = [
        'throw DataError("it is red", {.file = path, .hint = "paint it"});',
        'errors.add(ConfigError(fmt::format("{} is red", key), at("x", "paint it")));',
        'location.hint = "paint it"; throw IoError(said, location);',
        'throw node.error("it is red", key, "paint it");',
        "throw DataError(error);",
        "const ConfigError twice = f(); throw ConfigError(twice);",
        'throw DataError("it is red", {.hint = dry ? "paint it" : hint_of(path)});',
    ]
    unsaid = [
        'throw DataError("it is red", {.file = path});',
        'throw convoy::ConfigError(said + "red");',
        'CONVOY_CHECK(!red, IoError, "it is red");',
        'errors.add(ConfigError("it is red", resolved.location("x")));',
        'throw node.error("it is red", key);',
        'throw DataError("it is red", {.hint = ""});',
        "throw DataError(text, {.file = path});",
        "throw ConfigError(words);",
        'throw IoError("it is red", location);',
    ]
    for text, wanted in [(text, 0) for text in said] + [(text, 1) for text in unsaid]:
        found = list(
            errors_page.faults(errors_page.errors_of(text, errors_page.kinds(), "planted.cpp"), [])
        )
        if len(found) != wanted:
            faults.append(
                f"tools/errors_page.py: {len(found)} errors without a hint in the planted `{text}`"
            )
    found = list(errors_page.faults([], [("data", "it is blue", "nobody looks")]))
    if len(found) != 1:
        faults.append("tools/errors_page.py: a line of the list that no error needs is not refused")
    return faults


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    faults = faults_of(source)
    errors = subprocess.run(
        [sys.executable, source / "tools/errors_page.py"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    if errors != (source / "docs/reference/errors.md").read_text():
        faults.append(
            "docs/reference/errors.md is not what the sources say: tools/errors_page.py > docs/reference/errors.md"
        )
    faults += [line for line in errors.splitlines() if line.endswith(("| |", "| … |"))]
    faults += faults_of_hints(source)
    if faults:
        sys.exit("\n".join(faults))
    finds_planted_faults(source)
    print(f"{len(list((source / 'docs').rglob('*.md')))} pages")


main()
