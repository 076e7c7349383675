#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the words of the sources: comments and texts are plain sentences. Prints FILE:LINE: FAULT and exits with 1 on a fault.

  tools/words_lint.py [SOURCE_FOLDER]      the sources below convoy/, rust/, tests/, bench/ and examples/, pages, scripts, CMake files
  tools/words_lint.py --self-test          the rules on lines that break them, and on lines that do not

Faults below convoy/: a comment line wider than 100 columns; a comment that opens with What, Who, Whose or Of; a text with "wants",
"knows" or "speaks"; a comment behind a declaration that goes on in the next line, or that breaks the declaration in two.
Faults of comments in all sources: a pronoun in the place of a noun ("those of", "those that"), "by then", "anew", "what it has"; a
comment behind code that opens with "of", "that is" or "whose", or that names nothing ("of it", "the same"); a name in backticks that
a genitive explains ("`rows`: of the plan").
In scripts, CMake files and pages: a comment line wider than 100 columns, and "cannot" in two words.
"""

import pathlib
import re
import subprocess
import sys

COLUMNS = 100
SUFFIXES = {".h", ".cpp", ".rs", ".cu", ".cuh"}
# A text literal, a character literal or a comment, whichever comes first.
TOKEN = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*', re.S)
FRAGMENT = re.compile(r"^(?:What|Who|Whose|Of)\b(?!.*\?$)")
SENTENCE_END = re.compile(r"(?<=[a-z)`\"'])[.:;] (?=(?:What|Who|Whose|Of) [a-z])")
MACHINE_WORD = re.compile(r"\b(?:wants|knows|speaks)\b")
TWO_WORDS = re.compile(r"\bcan(?:\s+|\n\s*(?://|#)\s*)not\b", re.I)
PLAIN_TEXTS = ("*.md", "*.sh", "*.py", "*.cmake", "CMakeLists.txt", "run", "*.toml", "Makefile")
SCRIPTS = {".sh", ".cmake", ".txt", ""}
# A type with its name on the next line. The formatter writes this only if a comment follows the name.
BROKEN_TYPE = re.compile(
    r"^\s*(?:(?:static|const|mutable|inline) )*[A-Za-z_](?:[\w:]*\w)?(?:<.*>)?[&*]?$"
)
NAME_AND_COMMENT = re.compile(r"^\s+\w+(?:\s*=.*|\{.*\})?[;,]\s+//")
# Phrases whose noun a reader has to look for.
RIDDLE = re.compile(r"\b(?:those (?:of|that|which)|by then|anew|what it has)\b", re.I)
# A comment after code that is a genitive or a clause without its noun.
NO_NOUN = re.compile(
    r"^(?:of|which|whose|that (?:is|are|was|were|has|have|had|can|may|it|they|this|any))\b", re.I
)
# A parameter that is explained by a genitive, as in "`rows`: of the plan".
GENITIVE = re.compile(r"(?<=`): of\b")
FUNCTION_WORDS = set(
    "a above again all alone also an and another are as at be before behind below beside between both but by either each every few "
    "first for from here if in into is it its last many neither next no none not off on only or other others out own rest same so some "
    "such than that the their them then there these they this those to too under up well when where while who with within "
    "without".split()
)
NAMED = re.compile(r"[0-9`\"'(){}<>\[\]=+*/_%$#:-]")
ALL_SOURCES = ("*.h", "*.cpp", "*.rs", "*.cu", "*.cuh", "*.inl")
NOT_A_TYPE = {"return", "else", "do", "try", "public", "private", "protected", "default"}


def words_of(comment):
    return re.sub(r"^//[/!<]*\s*", "", comment).strip()


def comments_of(text):
    """Maps the line of each comment, counted from 1, to (column, comment). Also returns the texts as (line, text)."""
    comments, texts = {}, []
    for match in TOKEN.finditer(text):
        token = match.group(0)
        line = text.count("\n", 0, match.start()) + 1
        if token.startswith("//"):
            comments[line] = (match.start() - text.rfind("\n", 0, match.start()) - 1, token)
        elif token[0] != "'":
            texts.append((line, token))
    return comments, texts


def blocks_of(lines, comments):
    """Groups comments on successive lines into blocks. Yields [(line, words), ...] and whether the block is after code."""
    done = set()
    for line in sorted(comments):
        if line in done:
            continue
        column = comments[line][0]
        is_own_line = not lines[line - 1][:column].strip()
        last = line
        while (
            is_own_line
            and last + 1 in comments
            and comments[last + 1][0] == column
            and not lines[last][:column].strip()
        ):
            last += 1
        done.update(range(line, last + 1))
        yield [(at, words_of(comments[at][1])) for at in range(line, last + 1)], not is_own_line


def names_nothing(words):
    return (
        words != ""
        and not NAMED.search(words)
        and all(word.lower().strip(".,;") in FUNCTION_WORDS for word in words.split())
    )


def riddles_of(text):
    """Faults (line number, text) for comments in which a reader has to look for a noun."""
    lines = text.split("\n")
    faults = []
    for block, is_behind in blocks_of(lines, comments_of(text)[0]):
        words = " ".join(line for _, line in block)
        for match in sorted(
            [*RIDDLE.finditer(words), *GENITIVE.finditer(words)], key=lambda found: found.start()
        ):
            end, line = 0, block[0][0]
            for at, part in block:
                if match.start() < end + len(part) + 1:
                    line = at
                    break
                end += len(part) + 1
            faults.append((line, f'a comment says "{match.group(0)}": name the noun, or say when'))
        opener = NO_NOUN.match(words) if is_behind else None
        if opener:
            faults.append(
                (
                    block[0][0],
                    f'a comment behind code opens with "{opener.group(0)}": begin with the noun',
                )
            )
        elif is_behind and names_nothing(words):
            faults.append(
                (
                    block[0][0],
                    f'the comment "{words}" names nothing: say what it is, or leave it out',
                )
            )
    return faults


def faults_of(text):
    """Faults (line number, text) of one source text. Lines are counted from 1."""
    lines = text.split("\n")
    comments, texts = comments_of(text)
    faults = []
    for line, (column, comment) in comments.items():
        whole = lines[line - 1]
        is_own_line = not whole[:column].strip()
        if len(whole) > COLUMNS:
            faults.append((line, f"a comment line of {len(whole)} columns, more than {COLUMNS}"))
        above = comments.get(line - 1)
        goes_on = above is not None and (
            above[0] == column or not lines[line - 2][: above[0]].strip()
        )
        words = words_of(comment)
        if not goes_on or not is_own_line or words_of(above[1]) == "":
            if FRAGMENT.match(words):
                faults.append(
                    (
                        line,
                        f"a comment that opens with {words.split()[0]}: begin with a verb, a number or a condition",
                    )
                )
        if SENTENCE_END.search(words):
            faults.append((line, "a sentence of a comment that opens with What, Who, Whose or Of"))
        if not is_own_line:
            below = comments.get(line + 1)
            if below and below[0] == column and not lines[line][: below[0]].strip():
                faults.append(
                    (line, "a comment behind a declaration goes on in the next line: put it above")
                )
            if line > 1 and NAME_AND_COMMENT.match(whole):
                before = lines[line - 2]
                if (
                    BROKEN_TYPE.match(before)
                    and before.split()[0] not in NOT_A_TYPE
                    and "//" not in before
                ):
                    faults.append(
                        (line, "a comment behind a declaration breaks it in two: put it above")
                    )
    for line, token in texts:
        found = MACHINE_WORD.search(token)
        if found:
            faults.append(
                (line, f'a text says "{found.group(0)}": a program needs, has or expects')
            )
    return sorted(faults + spelling_faults(text))


def spelling_faults(text):
    return [
        (text.count("\n", 0, match.start()) + 1, 'the words "can not": write "cannot"')
        for match in TWO_WORDS.finditer(text)
    ]


def script_faults(text):
    """Faults (line number, text) of a shell script or a CMake file."""
    faults = [
        (number, f"a comment line of {len(line)} columns, more than {COLUMNS}")
        for number, line in enumerate(text.split("\n"), 1)
        if line.lstrip().startswith("#") and len(line) > COLUMNS
    ]
    faults += [
        (number, f'a comment says "{found.group(0)}": name the noun, or say when')
        for number, line in enumerate(text.split("\n"), 1)
        if line.lstrip().startswith("#") and (found := RIDDLE.search(line))
    ]
    return faults + spelling_faults(text)


def tracked(source, *patterns):
    found = subprocess.run(
        ["git", "ls-files", *patterns], cwd=source, capture_output=True, text=True
    )
    return [source / name for name in found.stdout.split("\n") if name]


def self_test():
    breaks = [
        ("// " + "x" * 100, "columns"),
        ("// What a rank holds.\nint64_t held();", "opens with What"),
        ("int64_t n = 0;  // Of this rank", "opens with Of"),
        ("// Returns bytes. Of this rank only.\nint64_t n();", "a sentence"),
        ('throw ConfigError("split wants a file");', '"wants"'),
        ("int a = 0;  // begins here\n            // and goes on", "goes on"),
        ("  std::vector<int64_t>\n      rows_;  // by rank", "breaks it in two"),
        ("// A rank can" + " not end.", "cannot"),
        ("// A rank can" + "\n// not end.", "cannot"),
    ]
    holds = [
        "// Returns the rows of a rank.\nint64_t rows();",
        "// Returns the bytes\n// Of a split line is fine.\nint n();",
        "// What is a shard?\nint n();",
        'const char* url = "https://example.org/what";',
        'log("wanted a file, found a folder");',
        "int a = 0;  // one\nint b = 0;  // two",
        "  return\n      rows_;  // by rank",
    ]
    riddles = [
        ("// The rows are those" + " of the plan.", 1, "those of"),
        ("// The rows that it takes are those\n" + "// that nobody has.", 1, "those that"),
        ("// A row.\n//\n// The others wait by\n// then.", 3, "by then"),
        ("int n = 0;  // counted an" + "ew", 1, "anew"),
        ("// `rows`: of the plan.", 1, ": of"),
        ("int n = 0;  // of the plan", 1, 'opens with "of"'),
        ("int n = 0;  // that are" + " open", 1, 'opens with "that are"'),
        ("int n = 0;  // whose rows it has", 1, 'opens with "whose"'),
        ("int n = 0;  // behind each other", 1, "names nothing"),
    ]
    plain = [
        "// Of all rows that those engines took.",
        "// The rest\n// of the plan.",
        "int n = 0;  // rows of the plan",
        "int n = 0;  // that schedule ends early",
        "int n = 0;  // in 1/s",
        "int n = 0;  // at most",
        "int n = 0;  // `other`",
        'log("those of the plan");',
    ]
    for text, line, wanted in riddles:
        found = riddles_of(text)
        assert len(found) == 1 and found[0][0] == line and wanted in found[0][1], (
            text,
            line,
            wanted,
            found,
        )
    for text in plain:
        assert not riddles_of(text), (text, riddles_of(text))
    for text, wanted in breaks:
        found = faults_of(text)
        assert any(wanted in fault for _, fault in found), (text, wanted, found)
    assert script_faults("# " + "x" * 100) and not script_faults("run_it " + "x" * 100)
    assert script_faults("# counts an" + "ew") and not script_faults("echo an" + "ew")
    for text in holds:
        assert not faults_of(text), (text, faults_of(text))


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    source = pathlib.Path(
        sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    )
    count = 0
    for path in sorted((source / "convoy").rglob("*")):
        name = path.relative_to(source).as_posix()
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        for line, fault in faults_of(path.read_text(encoding="utf-8")):
            print(f"{name}:{line}: {fault}")
            count += 1
    for path in tracked(source, *ALL_SOURCES):
        name = path.relative_to(source).as_posix()
        if name.startswith("tests/golden/") or not path.is_file():
            continue
        for line, fault in riddles_of(path.read_text(encoding="utf-8")):
            print(f"{name}:{line}: {fault}")
            count += 1
    for path in tracked(source, *PLAIN_TEXTS):
        name = path.relative_to(source).as_posix()
        if path.is_symlink() or not path.is_file() or path.name == "words_lint.py":
            continue
        text = path.read_text(encoding="utf-8")
        for line, fault in script_faults(text) if path.suffix in SCRIPTS else spelling_faults(text):
            print(f"{name}:{line}: {fault}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
