#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/errors.md: every error sentence in the sources, by exit code, with its hint.

  tools/errors_page.py > docs/reference/errors.md

It reads `throw KindError(MESSAGE, {.hint = ...})` and `CONVOY_CHECK(CONDITION, KindError, MESSAGE, ...)` where MESSAGE is a text or
a format; what a format puts in is an ellipsis. Kinds and exit codes are those of convoy/core/base/error_types.h. Bugs of Convoy (70) and requests
to stop (75) are left out. A message that is put together elsewhere and handed over in a variable is not found.
"""
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parent.parent
LEFT_OUT = {"StateError", "StopRequest"}
TOKEN = re.compile(r'R"(\w*)\((.*?)\)\1"|"((?:[^"\\]|\\.)*)"|//[^\n]*|\'(?:[^\'\\]|\\.)+\'|.', re.S)
ESCAPES = {"n": " ", "t": " ", '"': '"', "\\": "\\", "'": "'"}


def kinds():
    """Kind of error to (exit code, word), in the order of the header."""
    text = (SOURCE / "convoy/core/base/error_types.h").read_text()
    codes = dict(re.findall(r"^  (\w+) = (\d+),", text, re.M))
    rows = re.findall(r'^CONVOY_ERROR_KIND\((\w+), ExitCode::(\w+), "(\w+)"\)', text, re.M)
    return {name: (int(codes[code]), word) for name, code, word in rows if name not in LEFT_OUT}


def tokens_of(text):
    """(is a text?, text) for each token; comments are gone."""
    for match in TOKEN.finditer(text):
        whole = match.group(0)
        if match.group(2) is not None:
            yield True, match.group(2)
        elif match.group(3) is not None:
            yield True, re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[0]), match.group(3))
        elif not whole.startswith("//"):
            yield False, whole


def arguments_of(text):
    """The arguments of a call, each a list of tokens; `text` begins behind its opening parenthesis."""
    arguments, depth = [[]], 0
    for is_text, token in tokens_of(text):
        if not is_text:
            if token in "([{":
                depth += 1
            elif token in ")]}":
                depth -= 1
                if depth < 0:
                    return arguments
            elif token == "," and depth == 0:
                arguments.append([])
                continue
        arguments[-1].append((is_text, token))
    return arguments


def sentence_of(argument):
    """The text of an argument that is a text, or a format whose first argument is one; else nothing."""
    code = "".join("\0" if is_text else token for is_text, token in argument)
    shape = re.sub(r"\s+", "", code)
    if not re.fullmatch(r"\0+", shape) and not re.match(r"(::)?fmt::format\(\0+[,)]", shape):
        return ""
    texts, begun = [], False
    for is_text, token in argument:
        if is_text:
            begun = True
            texts.append(token)
        elif begun and not token.isspace():
            break
    return "".join(texts)


def readable(text):
    text = text.replace("{{", "\1").replace("}}", "\2")
    text = re.sub(r"\{[^{}]*\}", "…", text).replace("\1", "{").replace("\2", "}")
    text = re.sub(r"…( ?…)+", "…", re.sub(r"\s+", " ", text)).strip()
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def hint_of(argument):
    code = "".join('"' + token.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"' if is_text else token
                   for is_text, token in argument)
    found = re.search(r"\.hint\s*=\s*", code)
    if not found:
        return ""
    return sentence_of(arguments_of(code[found.end():] + ")")[0])


def errors_of(text, known):
    names = "|".join(known)
    for match in re.finditer(rf"throw (?:[\w:]*::)?({names})\(", text):
        arguments = arguments_of(text[match.end():match.end() + 4000])
        yield match.group(1), sentence_of(arguments[0]), hint_of(arguments[1]) if len(arguments) > 1 else ""
    for match in re.finditer(r"CONVOY_CHECK\(", text):
        arguments = arguments_of(text[match.end():match.end() + 4000])
        kind = "".join(token for _, token in arguments[1]).strip() if len(arguments) > 2 else ""
        if kind in known:
            yield kind, sentence_of(arguments[2]), ""


def page():
    known = kinds()
    found = {kind: {} for kind in known}
    for path in sorted((SOURCE / "convoy").rglob("*")):
        if path.suffix not in (".cpp", ".h") or path.stem.endswith("_test"):
            continue
        for kind, message, hint in errors_of(path.read_text(), known):
            message = readable(message)
            if len(re.findall(r"\w\w", message)) >= 3:
                found[kind].setdefault(message, set()).add(readable(hint))
    count = sum(len(messages) for messages in found.values())
    lines = ["# Errors by text", "",
             f"{count} messages, by exit code. Search this page for a part of the message without names and numbers, which are … here. The ten most common",
             "ones are in [troubleshooting](../how-to/troubleshoot.md); [exit codes](exit-codes.md) tells what a code means. Made by `tools/errors_page.py` from the",
             "sources; messages that are put together from parts are not all here."]
    for kind, (code, word) in known.items():
        if not found[kind]:
            continue
        lines += ["", f"## Exit code {code}: `{word}`", "", "| message | what to do |", "|---|---|"]
        for message in sorted(found[kind], key=lambda text: (text.lstrip("`…-. ").lower(), text)):
            hints = sorted(found[kind][message] - {""})
            lines.append(f"| {message} | {'; or '.join(hints)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
