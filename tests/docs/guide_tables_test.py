# SPDX-License-Identifier: Apache-2.0
"""Tests the table of each page docs/reference/guide-*.md: what a guide says, and what to type for it in Convoy.

A row is `| the guide | type here | state |`. Each code span of the middle column is a shell command. The commands of a row run one
after the other, in a folder that has examples/ and in which the `sh` blocks of the page ran first. States:

  works              the commands of the row end with 0
  works; CAPABILITY  the commands end with 0; the page quotes the row of docs/reference/capabilities.md that says how far it is measured
  refused            each `convoy` or `make` command in the first column ends with a code other than 0, and one of them prints TEXT
  not served         the row gives the reason, and what to do instead; commands are optional

`says "TEXT"` after a state: the output contains TEXT. `(on 8 H200)` after a command: the command runs on that machine of
tests/machines. examples/tally-3m and its sums replace the models and data sets that the guides name.

  guide_tables_test.py SOURCE_FOLDER PROGRAM_FOLDER [PAGE.md ...]
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HEADING = "## What the guide says, and what to type"
HEAD = ["the guide", "type here", "state"]
STATE = re.compile(r"(works|refused|not served)(?:; ([^:]+))?(?:: (.+))?$", re.S)
MACHINES = {"8 H200": "h200x8", "4 A100": "a100x4", "8 MI300": "mi300x8"}
MODELS = ["deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "Qwen/Qwen2.5-1.5B-Instruct"]
DATA_SETS = ["AI-MO/NuminaMath-1.5"]
PAGES = [
    "torchrun",
    "sft-play",
    "activity-recognition",
    "data-processing",
    "seed-sweeps",
]  # the pages that take longest come first
PATIENCE_SECONDS = 600  # limit for a command that hangs


class Wrong(Exception):
    pass


def cells_of(line):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def code_of(cell):
    return [span.strip() for _, span in re.findall(r"(`+)(.+?)\1", cell)]


def rows_of(text):
    """The rows of the page's table. Throws Wrong."""
    section = text.partition(f"\n{HEADING}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    if len(lines) < 3 or cells_of(lines[0]) != HEAD:
        raise Wrong(f"no table `| {' | '.join(HEAD)} |` under `{HEADING}`")
    rows = [cells_of(line) for line in lines[2:]]
    for row in rows:
        if len(row) != 3:
            raise Wrong(f"a row of {len(row)} cells: {row}")
    return rows


def prepared(text):
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S))


class Page:
    """Runs one page in a folder of its own."""

    def __init__(self, source, programs, text, folder):
        self.source, self.text, self.folder = source, text, folder
        shutil.copytree(source / "examples", folder / "examples")
        held_out = folder / "examples/sums/test.jsonl"  # cut to fewer rows for short evaluations
        held_out.write_text("".join(held_out.read_text().splitlines(keepends=True)[:40]))
        self.environment = machines.plain_environment(programs) | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HF_HOME": str(folder / "hub"),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
            "TRAIN_STEPS": "4",
            "TRAIN_EVAL_STEPS": "4",
            "TRAIN_SAVE_STEPS": "2",
        }
        for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "LOCAL_RANK"):
            self.environment.pop(name, None)
        self.stand_in(
            "models", MODELS, {file.name: file for file in (source / "examples/tally-3m").iterdir()}
        )
        self.stand_in("datasets", DATA_SETS, {"train.jsonl": source / "examples/sums/test.jsonl"})

    def stand_in(self, kind, names, files):
        for name in names:
            entry = self.folder / "hub/hub" / f"{kind}--{name.replace('/', '--')}"
            snapshot = entry / "snapshots" / ("0" * 40)
            snapshot.mkdir(parents=True)
            (entry / "refs").mkdir()
            (entry / "refs/main").write_text("0" * 40)
            for file_name, file in files.items():
                shutil.copy(file, snapshot / file_name)

    def machine(self, cell):
        named = re.search(r"\(on ([^)]+)\)", cell)
        if not named:
            return {}
        if named[1] not in MACHINES:
            raise Wrong(f"no machine `{named[1]}`; known: {', '.join(MACHINES)}")
        root = self.folder / "machines" / MACHINES[named[1]]
        if root.exists():
            shutil.rmtree(root)
        return machines.lay_out(self.source, MACHINES[named[1]], root)

    def run(self, script, more=None):
        end = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment | (more or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PATIENCE_SECONDS,
        )
        return end.returncode, end.stdout

    def check(self, row):
        guide, here, told = row
        state = STATE.match(told)
        if not state:
            raise Wrong(f"unknown state `{told}`")
        kind, capability, words = state[1], state[2], state[3] or ""
        if capability and (kind != "works" or f"<!-- is: {capability} -->" not in self.text):
            raise Wrong(f"the page does not quote the capability `{capability}`")
        commands = code_of(here)
        refused = (
            [code for code in code_of(guide) if code.startswith(("convoy ", "make "))]
            if kind == "refused"
            else []
        )
        wanted = re.findall(r'says "([^"]+)"', words)
        if kind == "works" and not commands:
            raise Wrong("`works` without a command")
        if kind == "refused" and not (refused and wanted):
            raise Wrong('`refused` wants a command in the first column and says "..."')
        if kind == "not served" and not words:
            raise Wrong("`not served` wants a reason")
        output = ""
        if commands:
            code, output = self.run("\n".join(commands), self.machine(here))
            if code != 0:
                raise Wrong(f"exit code {code} of {commands}\n{output}")
        for command in refused:
            code, said = self.run(command, self.machine(here))
            output += said
            if code == 0:
                raise Wrong(f"`{command}` is not refused\n{said}")
        for text in wanted:
            if " ".join(text.split()) not in " ".join(output.split()):
                raise Wrong(f'the output does not say "{text}"\n{output}')


def failures_of(source, programs, text):
    """The faults of a page, by row."""
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        page = Page(source, programs, text, pathlib.Path(folder))
        rows = rows_of(text)
        if script := prepared(text):
            code, output = page.run(script)
            if code != 0:
                raise Wrong(f"the page's blocks end with {code}\n{output}")
        for row in rows:
            started = time.monotonic()
            try:
                page.check(row)
            except (Wrong, subprocess.TimeoutExpired) as error:
                failed.append(f"| {row[0]} | ...: {error}")
            if time.monotonic() - started > 10:
                print(f"slow    {time.monotonic() - started:.0f} s: {row[1]}", flush=True)
    return failed


def check_page(source, programs, name):
    started = time.monotonic()
    path = source / "docs/reference" / f"guide-{name}.md"
    try:
        text = path.read_text()
        failed = failures_of(source, programs, text)
        rows = len(rows_of(text))
    except (OSError, Wrong) as error:
        failed, rows = [str(error)], 0
    for one in failed:
        print(f"FAILED  {path.name} {one}", flush=True)
    print(
        f"{'FAILED' if failed else 'ok    '}  {path.name}: {rows} rows, {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return not failed


def finds_what_is_wrong(source, programs):
    """True if the test accepts good rows, and refuses each of the planted wrong rows."""
    head = f"\n{HEADING}\n\n| {' | '.join(HEAD)} |\n|---|---|---|\n"
    good = '| a | `echo one \\| tr o O` | works: says "One" |\n| `make none` | | refused: says "none" |\n| b | | not served: no |\n'
    wrong = [
        "| a | `true` | serves |",
        "| a | `false` | works |",
        "| a | | works |",
        '| a | `echo one` | works: says "two" |',
        "| a | `true` | works; no capability |",
        "| a | | not served |",
        '| `convoy --version` | | refused: says "convoy" |',
        "| a | `true` (on 9 Cray) | works |",
    ]
    found = failures_of(source, programs, head + good + "\n".join(wrong) + "\n")
    if len(found) != len(wrong):
        sys.exit(f"of {len(wrong)} planted mistakes {len(found)} were found: {found}")
    for text in ("no table", head):
        try:
            rows_of(text)
            sys.exit("a page without a table is taken")
        except Wrong:
            pass


def main():
    source, programs = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    sys.path.insert(0, str(source / "tests/monitor"))
    global machines
    import machines

    finds_what_is_wrong(source, programs)
    there = sorted(
        path.stem.removeprefix("guide-") for path in (source / "docs/reference").glob("guide-*.md")
    )
    if there != sorted(PAGES):
        sys.exit(f"wanted a page for each guide, {sorted(PAGES)}, found {there}")
    names = [
        pathlib.Path(argument).stem.removeprefix("guide-") for argument in sys.argv[3:]
    ] or PAGES
    # Two pages run at the same time, because half of the time is spent waiting for programs to start.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        good = list(pool.map(lambda name: check_page(source, programs, name), names))
    sys.exit(0 if all(good) else 1)


main()
