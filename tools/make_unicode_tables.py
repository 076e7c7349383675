#!/usr/bin/env python3
"""Writes convoy/data/evaluate/unicode_tables.h: letters, marks and case of every character, as in Python's str.

usage: make_unicode_tables.py > convoy/data/evaluate/unicode_tables.h        (Python 3.11: Unicode 14)
"""
import sys
import unicodedata

EVERY = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
CHARACTERS = EVERY[0x80:]


def ranges_of(is_in, characters=CHARACTERS):
    ranges = []
    for character in characters:
        if not is_in(character):
            continue
        code = ord(character)
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return ranges


def shifts_of(pairs):
    """(first, last, stride, shift): runs of characters that move by the same shift."""
    runs = []
    for code, image in pairs:
        shift = image - code
        if runs and runs[-1][3] == shift:
            first, last, stride, _ = runs[-1]
            if first == last and code - last <= 2:
                runs[-1][1:3] = [code, code - last]
                continue
            if first != last and code - last == stride:
                runs[-1][1] = code
                continue
        runs.append([code, code, 1, shift])
    return runs


def print_table(kind, name, rows, note):
    print(f"// {note}")
    print(f"inline constexpr {kind} {name}[] = {{")
    line = "  "
    for row in rows:
        cell = "{" + ",".join(hex(one) if place < 2 else str(one) for place, one in enumerate(row)) + "},"
        if len(line) + len(cell) > 118:
            print(line)
            line = "  "
        line += cell
    print(line)
    print("};\n")


def ends_word_sigma(text):
    return (text + "\u03a3").lower().endswith("\u03c2")


def main():
    lower = [(ord(c), ord(c.lower())) for c in CHARACTERS if len(c.lower()) == 1 and c.lower() != c]
    lowered = dict(lower)
    folded = [(c, c.casefold()) for c in CHARACTERS if c.casefold() != chr(lowered.get(ord(c), ord(c)))]
    folds = [(ord(c), [ord(one) for one in image]) for c, image in folded]
    print("// SPDX-License-Identifier: Apache-2.0")
    print("//")
    print(f"// Written by tools/make_unicode_tables.py from Unicode {unicodedata.unidata_version}; without ASCII.")
    print("#pragma once\n")
    print("#include <cstdint>\n")
    print("// clang-format off")
    print("namespace convoy::evaluate {\n")
    print("struct CharacterRange {\n  char32_t first;\n  char32_t last;\n};\n")
    print("// Every `stride`-th character from `first` to `last` becomes the one `shift` further.")
    print("struct CaseRun {\n  char32_t first;\n  char32_t last;\n  char32_t stride;\n  int32_t shift;\n};\n")
    print("// What a character becomes; zeros follow where it is fewer than three.")
    print("struct CaseFold {\n  char32_t from;\n  char32_t to[3];\n};\n")
    print_table("CharacterRange", "kLettersAndNumbers", ranges_of(str.isalnum), "str.isalnum()")
    print_table("CharacterRange", "kMarks", ranges_of(lambda c: unicodedata.category(c)[0] == "M"), "Categories Mn, Mc, Me.")
    print_table("CharacterRange", "kCased", ranges_of(ends_word_sigma, EVERY), "With ASCII. A capital sigma right after one ends a word.")
    print_table("CharacterRange", "kCaseIgnorable",
                ranges_of(lambda c: ends_word_sigma("A" + c) and not ends_word_sigma(c), EVERY),
                "With ASCII. Looked through on both sides of a capital sigma.")
    print_table("CaseRun", "kLower", shifts_of(lower), "str.lower(), but for U+0130 and the capital sigma at the end of a word.")
    print("// str.casefold() where it is not str.lower().")
    print("inline constexpr CaseFold kFolds[] = {")
    line = "  "
    for row in folds:
        cell = f"{{{hex(row[0])},{{{','.join(hex(one) for one in row[1])}}}}},"
        if len(line) + len(cell) > 118:
            print(line)
            line = "  "
        line += cell
    print(line)
    print("};\n")
    print("}  // namespace convoy::evaluate")
    print("// clang-format on")


main()
