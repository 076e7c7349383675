"""Labelled pairs for the answer checker, with Math-Verify's verdicts frozen beside them.

    python tests/golden/answers/make_pairs.py    # needs math-verify 0.9 with antlr4_13_2

The labels are ours (hand_pairs.py). If the verdict of Math-Verify differs, `why` explains its limitation.
"""

import json
import logging
import pathlib
import sys

import hand_pairs
from math_verify import parse, verify

logging.disable(logging.CRITICAL)
FOLDER = pathlib.Path(__file__).parent

# For each kind of pair: the spellings that Math-Verify cannot read, or reads with another meaning.
WHY = {
    "integer": "reads neither number words nor huge powers, and rounds tiny fractions to six decimals",
    "thousands": "a thin or plain space between groups of digits is no separator in its LaTeX",
    "decimal": "has no repeating decimals and no decimal comma in LaTeX; rounds tiny numbers to zero",
    "fraction": "has no Unicode fractions",
    "mixed": "plain mixed numbers are products or errors in its LaTeX",
    "percent": "equates 28 % and 28 for integers only",
    "units": "drops units from a list of its own and never converts or compares them",
    "money": "an escaped dollar ends its formula; currency signs are units only in plain text",
    "set": "has no words for sets, and \\varnothing is unknown to it",
    "tuple": "has no angle brackets",
    "interval": "joins no inequalities to a union, has no set builder, takes no inequality for an interval",
    "matrix": "a column vector is no tuple",
    "plus-minus": "expands no sign inside of a fraction",
    "equation": "sorts the values of x=1, y=2 and compares them with a point in any order",
    "inequality": "compares links of a chain in order, and scales no inequality",
    "choice": "reads options only when told to, and not with a text behind the letter",
    "degrees": "drops the degree sign",
    "scientific": "computes with decimals in binary floating point, and reads no 1.5e3 in LaTeX",
    "roots": "has no plain sign of a root, and takes the complex cube root",
    "pi": "pi without a backslash is p times i",
    "exponential": "an upright e is a symbol",
    "log": "has no \\lg, and log_e is of a symbol e",
    "trig": "drops the degree sign before it takes the sine",
    "algebra": "divides by the whole product in 1/2x, and has no ** in LaTeX",
    "complex": "i is a real symbol to it",
    "base": "drops the base",
    "ratio": "divides a:b:c from left to right",
    "time": "reads a time of day as a ratio",
    "words": "reads words as products of letters, without synonyms",
    "infinity": "has no Unicode infinity",
    "latex": "keeps Markdown around a formula",
    "modular": "does not end an answer before (mod 7)",
    "extraction": "takes any box, those of thoughts too, and joins boxes that stand close together",
    "further": "does not read one of the two spellings, or compares them by their form",
    "notation": "has no units, words, series or options in this spelling, or drops what differs",
    "more": "does not read one of the two spellings, or compares them by their form",
}


def wrapped(answer):
    """Puts a bare answer between dollar signs, as the README of Math-Verify asks."""
    marks = ("$", "\\boxed", "\\(", "\\[", "####", "<think")
    if any(mark in answer for mark in marks) or "answer" in answer.lower():
        return answer
    return f"${answer}$"


def math_verify(gold, prediction):
    try:
        golds, predictions = parse(wrapped(gold)), parse(wrapped(prediction))
    except BaseException:  # the class of its timeout does not derive from Exception
        return "unknown"
    if not golds:
        return "unknown"
    return "yes" if verify(golds, predictions) else "no"


def main():
    lines = []
    for kind, gold, prediction, label in hand_pairs.pairs():
        row = {
            "kind": kind,
            "gold": gold,
            "prediction": prediction,
            "label": label,
            "math_verify": math_verify(gold, prediction),
        }
        if row["math_verify"] != label:
            row["why"] = WHY[kind]
        lines.append(json.dumps(row, ensure_ascii=False))
    (FOLDER / "pairs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} pairs", file=sys.stderr)


if __name__ == "__main__":
    main()
