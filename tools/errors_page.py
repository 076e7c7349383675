#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/errors.md: every error sentence in the sources, by exit code, with its hint.

  tools/errors_page.py > docs/reference/errors.md
  tools/errors_page.py --check      prints the errors that have no hint and are not in the list of exceptions

It reads `KindError(MESSAGE, {.hint = ...})`, `node.error(MESSAGE, KEY, HINT)` and `CONVOY_CHECK(CONDITION, KindError, MESSAGE, ...)`, where
MESSAGE is a text or a format; an ellipsis stands for each value that a format inserts. Kinds and exit codes come from
convoy/core/base/error_types.h. Bugs of Convoy (70) and requests to stop (75) are left out. The text of a message that comes from a variable is not
found, but such an error needs a hint too. Errors that need no hint are in tests/docs/errors_without_hint.txt, with the reason.
"""

import dataclasses
import functools
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
WITHOUT_HINT = SOURCE / "tests/docs/errors_without_hint.txt"
NO_HINT_ASKED = {"convoy/core/base/error.h", "convoy/core/base/error_types.h"}  # they define errors
LEFT_OUT = {"StateError", "StopRequest"}
TOKEN = re.compile(r'R"(\w*)\((.*?)\)\1"|"((?:[^"\\]|\\.)*)"|//[^\n]*|\'(?:[^\'\\]|\\.)+\'|.', re.S)
ESCAPES = {"n": " ", "t": " ", '"': '"', "\\": "\\", "'": "'"}


def kinds():
    """Maps each kind of error to (exit code, word), in the order of the header."""
    text = (SOURCE / "convoy/core/base/error_types.h").read_text()
    codes = dict(re.findall(r"^  (\w+) = (\d+),", text, re.M))
    rows = re.findall(r'^CONVOY_ERROR_KIND\((\w+), ExitCode::(\w+), "(\w+)"\)', text, re.M)
    return {name: (int(codes[code]), word) for name, code, word in rows if name not in LEFT_OUT}


def tokens_of(text):
    """(True for a text literal, text) for each token, without comments."""
    for match in TOKEN.finditer(text):
        whole = match.group(0)
        if match.group(2) is not None:
            yield True, match.group(2)
        elif match.group(3) is not None:
            yield (
                True,
                re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[0]), match.group(3)),
            )
        elif not whole.startswith("//"):
            yield False, whole


def arguments_of(text):
    """The arguments of a call, each as a list of tokens. `text` begins after the opening parenthesis of the call."""
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
    """The text of an argument that is a text literal, or a format call whose first argument is a text literal; else nothing."""
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
    return plain(text).replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


@dataclasses.dataclass
class Found:
    """One place in the sources that makes an error. `hint`: "…" if the hint is composed at run time, empty if there is none."""

    kind: str
    message: str
    hint: str
    place: str


def code_of(argument):
    return "".join(
        '"' + token.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        if is_text
        else token
        for is_text, token in argument
    ).strip()


def members_of(code):
    """Maps the names of the designated members in {.a = x, .b = y} to their code."""
    inside = code.strip()[1:-1]
    found = {}
    for argument in arguments_of(inside + ")"):
        match = re.match(r"\.(\w+)\s*=\s*(.*)", code_of(argument), re.S)
        if match:
            found[match[1]] = match[2]
    return found


@functools.cache
def constants():
    """Maps the names of constant hints (constexpr const char* kHint = "...") to their code."""
    found = {}
    for path in sources():
        for name, value in re.findall(
            r'constexpr (?:const char\*(?: const)?|std::string_view) (k\w+) =\s*((?:"(?:[^"\\]|\\.)*"\s*)+);',
            path.read_text(),
        ):
            found[name] = value
    return found


def split_top(code, marks):
    """Splits `code` at the characters of `marks` that are outside of brackets and texts. `::` does not split."""
    parts, depth = [""], 0
    for is_text, token in tokens_of(code.replace("::", "\1")):
        if is_text:
            parts[-1] += code_of([(True, token)])
            continue
        depth += (token in "([{") - (token in ")]}")
        if depth == 0 and token in marks:
            parts.append("")
        else:
            parts[-1] += token
    return [part.replace("\1", "::").strip() for part in parts]


def text_of_hint(code, before):
    """The text of the hint `code`; empty for an empty text. `before`: the source text before the hint."""
    code = re.sub(r"^std::(?:move|string)\((.*)\)$", r"\1", code.strip(), flags=re.S)
    parts = split_top(code, "?:")
    if len(parts) > 1 and "?" in code:
        texts = [text for part in parts[1:] if (text := text_of_hint(part, before))]
        return "; or ".join(dict.fromkeys(text for text in texts if text != "…")) or "".join(
            texts[:1]
        )
    if re.fullmatch(r'(?:"(?:[^"\\]|\\.)*"\s*)+', code) or re.match(r"(?:::)?fmt::format\(", code):
        whole = list(tokens_of(code))
        inner = (
            arguments_of(code[code.index("(") + 1 :])[0]
            if code.endswith(")") and not code.startswith('"')
            else whole
        )
        return sentence_of(inner) or ("" if re.fullmatch(r'""', code) else "…")
    name = code.split("::")[-1]
    if name in constants():
        return text_of_hint(constants()[name], "")
    if re.fullmatch(r"\w+", code):  # a variable: takes its last value before this place
        given = list(re.finditer(rf"\b{code}\s*(?:=|\{{)\s*([^;]*);", before[-6000:]))
        if given and code not in given[-1][1]:
            return text_of_hint(given[-1][1], "") or "…"
    if len(pieces := split_top(code, "+")) > 1:
        return "".join(text_of_hint(piece, before) or "…" for piece in pieces)
    return "" if code in ('""', "{}", "") else "…"


def hint_of(arguments, before):
    """The hint of an error, from the arguments that follow its message."""
    if not arguments:
        return ""
    if len(arguments) > 1:  # node.error(): its arguments are key and hint
        return text_of_hint(code_of(arguments[1]), before)
    code = code_of(arguments[0])
    if code.startswith("{"):
        members = members_of(code)
        return text_of_hint(members["hint"], before) if "hint" in members else ""
    if re.fullmatch(r"\w+", code):  # an ErrorLocation variable: takes the hint that was set before
        given = list(
            re.finditer(rf"\b{code}(?:\.hint\s*=\s*([^;]*);|\{{([^;]*)\}};)", before[-3000:])
        )
        for match in reversed(given):
            hint = (
                match[1] if match[1] is not None else members_of("{" + match[2] + "}").get("hint")
            )
            if hint is not None:
                return text_of_hint(hint, before)
        return (
            "…"
            if re.search(rf"{code} = \w+\.location\(\)|{code} = \w*place_of\(", before[-3000:])
            else ""
        )
    if call := re.match(r"([\w.>-]*)\((.*)\)$", code, re.S):
        name, given = call[1], arguments_of(call[2] + ")")
        if name.endswith(
            "location"
        ):  # the location of a setting (key, hint), or of an error that is thrown again
            hint = (
                text_of_hint(code_of(given[-1]), before)
                if code_of(given[-1]) and ("resolved" not in name or len(given) > 1)
                else ""
            )
            return hint or (
                "…" if name.endswith((".location", "->location")) and not code_of(given[0]) else ""
            )
        last = code_of(given[-1])
        return last.startswith(('"', "fmt", "k")) and text_of_hint(last, before) or "…"
    return ""


def is_error(code, before):
    """True if `code` is an error that is thrown again, and not a message."""
    name = re.match(r"\*?(\w+)(?:[\w.>-]*\.error|_?\.front\(\))?$", code)
    return bool(name) and (
        "error" in code or re.search(rf"Error&? {name[1]}\b", before) is not None
    )


def errors_of(text, known, place):
    names = "|".join(known)

    def line_of(at):
        return f"{place}:{text.count(chr(10), 0, at) + 1}"

    for match in re.finditer(
        rf"(?<![\w~])(?:(throw) )?(?:\w+::)*({names})\(|[\w\])][.>]error\((?=\s*[\"f])", text
    ):
        kind = match.group(2) or "ConfigError"
        arguments = arguments_of(text[match.end() : match.end() + 4000])
        first = code_of(arguments[0])
        is_message = (
            '"' in first
            or re.match(r"(::)?fmt::format\(", first)
            or (match.group(1) and not is_error(first, text[: match.start()]))
        )
        # Copies of errors keep their hint and declarations need none, so neither counts.
        if is_message and not first.startswith("const "):
            yield Found(
                kind,
                sentence_of(arguments[0]),
                hint_of(arguments[1:], text[: match.start()]),
                line_of(match.start()),
            )
    for match in re.finditer(r"CONVOY_CHECK\(", text):
        arguments = arguments_of(text[match.end() : match.end() + 4000])
        kind = code_of(arguments[1]) if len(arguments) > 2 else ""
        if kind in known:
            yield Found(kind, sentence_of(arguments[2]), "", line_of(match.start()))


def sources():
    return [
        path
        for path in sorted((SOURCE / "convoy").rglob("*"))
        if path.suffix in (".cpp", ".h") and not path.stem.endswith("_test")
    ]


def all_errors():
    known = kinds()
    for path in sources():
        place = str(path.relative_to(SOURCE))
        if place not in NO_HINT_ASKED:
            yield from errors_of(path.read_text(), known, place)


def plain(text):
    """A format with ellipses in place of its values, for people."""
    text = text.replace("{{", "\1").replace("}}", "\2")
    text = re.sub(r"\{[^{}]*\}", "…", text).replace("\1", "{").replace("\2", "}")
    return re.sub(r"…( ?…)+", "…", re.sub(r"\s+", " ", text)).strip()


def exceptions(text):
    """The lines of the list of exceptions as [(word of the kind, pattern, reason)]."""
    found = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            rule, reason = line.rsplit(" | ", 1)
            word, pattern = rule.split(": ", 1)
            found.append((word.strip(), pattern.strip(), reason.strip()))
    return found


def rule_of(error, words, listed):
    """The line of the list that excuses an error, or nothing."""
    for rule in listed:
        word, pattern, _ = rule
        shape = ".*".join(re.escape(part) for part in pattern.removeprefix("@").split("*"))
        whole = (
            error.place.split(":")[0] if pattern.startswith("@") else plain(error.message) or "…"
        )
        if word == words[error.kind][1] and re.fullmatch(shape, whole):
            return rule
    return None


def faults(errors, listed):
    """Errors without a hint that are not listed, and lines of the list that no such error needs."""
    words = kinds()
    used = set()
    for error in errors:
        if plain(error.hint) not in ("", "…"):
            continue
        if rule := rule_of(error, words, listed):
            used.add(rule)
        elif not error.hint:
            yield f'{error.place}: a {error.kind} without a hint: "{plain(error.message) or "…"}": say what to do in .hint, or list it in tests/docs/{WITHOUT_HINT.name}'
    for rule in listed:
        if rule not in used:
            yield f"tests/docs/{WITHOUT_HINT.name}: no error without a hint fits `{rule[0]}: {rule[1]}`"


def page():
    known = kinds()
    found = {kind: {} for kind in known}
    listed = exceptions(WITHOUT_HINT.read_text())
    for error in all_errors():
        message = readable(error.message)
        if len(re.findall(r"\w\w", message)) < 3:
            continue
        hint = error.hint
        if plain(hint) in ("", "…") and (rule := rule_of(error, known, listed)):
            hint = rule[2]
        found[error.kind].setdefault(message, set()).add(readable(hint))
    count = sum(len(messages) for messages in found.values())
    lines = [
        "# Errors by text",
        "",
        f"{count} messages, by exit code. Search this page for a part of the message without names and numbers, which are … here. The ten most common",
        "ones are in [troubleshooting](../how-to/troubleshoot.md); [exit codes](exit-codes.md) tells what a code means. Made by `tools/errors_page.py` from the",
        "sources; messages that are put together from parts are not all here.",
    ]
    for kind, (code, word) in known.items():
        if not found[kind]:
            continue
        lines += ["", f"## Exit code {code}: `{word}`", "", "| message | what to do |", "|---|---|"]
        for message in sorted(found[kind], key=lambda text: (text.lstrip("`…-. ").lower(), text)):
            hints = sorted(found[kind][message] - {"", "…"}) or ["…"]
            lines.append(f"| {message} | {'; or '.join(hints)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] == ["--check"]:
        found = list(faults(all_errors(), exceptions(WITHOUT_HINT.read_text())))
        print("\n".join(found) or "each error says what to do")
        sys.exit(1 if found else 0)
    print(page(), end="")


if __name__ == "__main__":
    main()
