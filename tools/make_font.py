#!/usr/bin/env python3
"""Makes rust/text/fonts/ConvoySans-*.ttf, the fonts of pictures: the glyphs of Liberation Sans that figures need, without hints. The
fonts have another name, because the licence of Liberation Sans forbids its name for a part of the font.

    tools/make_font.py FOLDER

FOLDER has LiberationSans-Regular.ttf and -Bold.ttf 2.1.5 (Debian: fonts-liberation2). Needs the Python package fonttools."""

import pathlib
import sys

from fontTools import subset
from fontTools.ttLib import TTFont

# Latin, Greek, Cyrillic, punctuation, raised and lowered digits, arrows, signs of mathematics, a dot, the unknown letter.
LETTERS = [
    (0x20, 0x7E),
    (0xA0, 0x17F),
    (0x370, 0x3FF),
    (0x400, 0x45F),
    (0x2010, 0x2027),
    (0x2030, 0x203A),
    (0x2070, 0x2089),
    (0x20AC, 0x20AC),
    (0x2122, 0x2122),
    (0x2190, 0x2195),
    (0x2202, 0x2265),
    (0x25CF, 0x25CF),
    (0xFFFD, 0xFFFD),
]
FAMILY, FULL_NAME, POSTSCRIPT_NAME, UNIQUE_NAME = 1, 4, 6, 3
FONTS = pathlib.Path(__file__).resolve().parent.parent / "rust/text/fonts"

for style in "Regular", "Bold":
    font = TTFont(pathlib.Path(sys.argv[1]) / f"LiberationSans-{style}.ttf", recalcTimestamp=False)
    options = subset.Options(
        layout_features=["kern"],
        hinting=False,
        notdef_outline=True,
        drop_tables=["GDEF", "FFTM", "gasp"],
        name_IDs=[0, 1, 2, 3, 4, 5, 6, 13, 14],
    )
    part = subset.Subsetter(options)
    part.populate(unicodes=[code for first, last in LETTERS for code in range(first, last + 1)])
    part.subset(font)
    for name in FAMILY, FULL_NAME, POSTSCRIPT_NAME, UNIQUE_NAME:
        text = {FAMILY: "Convoy Sans", POSTSCRIPT_NAME: f"ConvoySans-{style}"}.get(
            name, f"Convoy Sans {style}"
        )
        for record in [each for each in font["name"].names if each.nameID == name]:
            record.string = text
    font.save(FONTS / f"ConvoySans-{style}.ttf")
