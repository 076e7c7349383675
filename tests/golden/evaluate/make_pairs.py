#!/usr/bin/env python3
"""Writes pairs.jsonl, stems.json and text.json: the results of rouge_score, NLTK, sacrebleu and the metrics of Hugging
Face's evaluate for 2,000 rows of hostile text.

usage: make_pairs.py FOLDER EVALUATE        (rouge_score 0.1.2, nltk 3.10.4, sacrebleu 2.6, sacremoses, Python 3.11;
EVALUATE: a checkout of github.com/huggingface/evaluate, whose metrics/sari and metrics/squad are loaded as they are)
"""

import importlib.util
import json
import pathlib
import random
import sys
import unicodedata

from nltk.stem import porter
from rouge_score import rouge_scorer

NAMES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
ENGLISH = """the a an The An it is was are be by of in on to and or not no quick brown fox jumps jumped jumping over lazy dog
dogs cat cats happily happy enjoy enjoys general generally generation generations skies sky dying dies died lying ties tied flies
flying news innings inning outing cannings proceed exceeding succeed succeeded howe agreed feed relational conditional valenci
hesitancy digitizer conformably radically differently vilely analogously vietnamization predication operator feudalism
decisiveness hopefulness callousness formality sensitivity sensibility geology theology archaeology logic triplicate formative
formalize electricity electrical hopeful goodness revival allowance inference airliner gyroscopic adjustable defensible irritant
replacement adjustment dependent adoption communism activate homologous effective bowdlerize probate rate cease control roll
controlling rolled hopping hoped falling hissing fizzed failing filing motoring sing plastered bled says say spied cried cries
syzygy yyyy yes by yyes toy ally finally really fully usefully useful ability abilities oat oats owed ape apes ing ed ings eed
3 14 3.14 1,000 10-20 x2 2x a1b2 foo_bar _x_ 3D R2-D2 it's don't o'clock e.g. U.S.A. Mr. etc... well-known state-of-the-art""".split()
HOSTILE = [
    "İstanbul",
    "K",
    "KELVIN",
    "ſ",
    "ß",
    "ẞ",
    "ﬁne",
    "Straße",
    "STRASSE",
    "ΟΔΟΣ",
    "Σ",
    "ΣΑΣ",
    "ΑΣ.",
    "ς",
    "Ὀδυσσεύς",
    "É",
    "é",
    "E\u0301",
    "e\u0301",
    "\u0301",
    "a\u0301n",
    "ñ",
    "n\u0303",
    "Ǆ",
    "ǅ",
    "ᾳ",
    "ᾼ",
    "ŉ",
    "ΐ",
    "և",
    "Ա",
    "привет",
    "Привет",
    "мир",
    "МИР",
    "שלום",
    "עולם",
    "مرحبا",
    "بالعالم",
    "سلام",
    "नमस्ते",
    "दुनिया",
    "หวัดดี",
    "ကမ္ဘာ",
    "你好",
    "世界",
    "你好世界",
    "日本語",
    "にほんご",
    "ニッポン",
    "ﾆﾎﾝ",
    "한국어",
    "안녕하세요",
    "ㄅㄆㄇ",
    "々",
    "〇",
    "〆",
    "한",
    "漢字かな交じり文",
    "𠀀",
    "𝔘𝔫𝔦",
    "𝟙𝟚",
    "①②",
    "Ⅷ",
    "½",
    "²",
    "٣",
    "३",
    "๓",
    "😀",
    "👩‍👩‍👧",
    "🇩🇪",
    "☃️",
    "™",
    "©",
    "°C",
    "Å",
    "Å",
    "Ω",
    "Ω",
    "…",
    "—",
    "–",
    "‑",
    "“quoted”",
    "«x»",
    "‹y›",
    "„z“",
    "¿qué?",
    "¡ay!",
    "\u00ad",
    "co\u00adop",
    "\u200b",
    "a\u200bb",
    "\u200e",
    "\u202eabc\u202c",
    "\ufeff",
    "\ufffd",
    "\u2028",
    "\u2029",
    "\u0085",
    "\u00a0",
    "\u3000",
    "\u1680",
    "\u180e",
    "\u2060",
    "\x01",
    "\x1c",
    "\x1f",
    "\x7f",
    "\x0b",
    "\x0c",
    "\r",
    "\r\n",
    "\t",
    "\n",
    "\n\n",
    "\\n",
    "a\nb",
    "-\n",
    "x-\ny",
    "<skipped>",
    "&quot;",
    "&amp;",
    "&lt;b&gt;",
    "&amp;lt;",
    "&#39;",
    "{",
    "}",
    "[x]",
    "(y)",
    "~",
    "`",
    "^",
    "|",
    "\\",
    "/",
    "a/b",
    "@user",
    "#tag",
    "$5",
    "100%",
    "a+b=c",
    "1.",
    ".5",
    "1.5",
    "1..5",
    "1,5",
    ",",
    "..",
    "....",
    ".,.",
    "5-",
    "-5",
    "5-6",
    "a-5",
    "5-a",
    "'",
    "''",
    '"',
    "_",
    "__",
    "a_b",
    "!",
    "?!",
    ";",
    ":",
    "*",
    "<",
    ">",
    "=",
    "+",
]
SEPARATORS = [" "] * 14 + [
    "  ",
    "\n",
    "\n\n",
    "\t",
    " \n ",
    "\r\n",
    "",
    "-",
    ". ",
    ", ",
    "\u00a0",
    "\u2028",
    "\u3000",
    "\x1c",
    "\x0b",
]


class UnicodeTokenizer:
    """Splits a text into the words of rougeL_unicode. It is an independent version, from unicodedata alone."""

    UNSPACED = (
        "CJK UNIFIED",
        "CJK COMPATIBILITY",
        "CJK RADICAL",
        "KANGXI",
        "HIRAGANA",
        "KATAKANA",
        "BOPOMOFO",
        "HALFWIDTH KATAKANA",
        "HENTAIGANA",
        "HANGZHOU",
        "IDEOGRAPHIC",
        "VERTICAL KANA",
        "VERTICAL IDEOGRAPHIC",
        "MASU",
    )

    def tokenize(self, text):
        tokens, word = [], ""
        for character in text.casefold():
            is_mark = unicodedata.category(character).startswith("M")
            if not is_mark and not character.isalnum():
                tokens.append(word)
                word = ""
            elif not is_mark and unicodedata.name(character, "").startswith(self.UNSPACED):
                tokens += [word, character]
                word = ""
            else:
                word += character
        return [token for token in tokens + [word] if token]


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def text(draw, words):
    parts = []
    for _ in range(words):
        kind = draw.random()
        if kind < 0.55:
            word = draw.choice(ENGLISH)
            word = draw.choice([word, word, word.upper(), word.capitalize()])
        elif kind < 0.95:
            word = draw.choice(HOSTILE)
        else:
            word = "".join(
                chr(
                    draw.choice(
                        [
                            draw.randrange(0x21, 0x7F),
                            draw.randrange(0xA1, 0x2FFF),
                            draw.randrange(0x3040, 0xD7FF),
                            draw.randrange(0x1F300, 0x1FAFF),
                        ]
                    )
                )
                for _ in range(draw.randrange(1, 4))
            )
            word = "".join(one for one in word if unicodedata.category(one) != "Cn")
        parts += [word, draw.choice(SEPARATORS)]
    return "".join(parts[:-1])


def like(draw, other):
    """A text like `other`: it has some of its words, some inserted words, and sometimes moved words."""
    words = other.split(" ")
    kept = [word for word in words if draw.random() < 0.7]
    for _ in range(draw.randrange(3)):
        kept.insert(draw.randrange(len(kept) + 1), draw.choice(ENGLISH + HOSTILE))
    if len(kept) > 2 and draw.random() < 0.3:
        at = draw.randrange(len(kept) - 1)
        kept[at], kept[at + 1] = kept[at + 1], kept[at]
    return " ".join(kept)


def row(draw, number):
    most = 60 if number % 50 == 0 else 8
    ref = text(draw, draw.randrange(1, most))
    refs = [ref] + [
        like(draw, ref) if draw.random() < 0.7 else text(draw, draw.randrange(1, most))
        for _ in range(draw.choice([0, 0, 0, 1, 2]))
    ]
    pred = draw.choice(
        [lambda: like(draw, ref)] * 5
        + [
            lambda: text(draw, draw.randrange(1, most)),
            lambda: ref,
            lambda: " " + ref + "\n",
            lambda: ref.upper(),
            lambda: draw.choice(["", " ", "\n", ".", "the", "\u3000"]),
        ]
    )()
    source = draw.choice(
        [
            lambda: like(draw, ref),
            lambda: text(draw, draw.randrange(1, most)),
            lambda: pred,
            lambda: "",
        ]
    )()
    if number % 97 == 0:
        refs[0] = ""
    return source, pred, refs


def main():
    folder, checkout = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    sari = module(checkout / "metrics/sari/sari.py")
    squad = module(checkout / "metrics/squad/compute_score.py")
    plain = rouge_scorer.RougeScorer(NAMES)
    stemmed = rouge_scorer.RougeScorer(NAMES, use_stemmer=True)
    scripts = rouge_scorer.RougeScorer(["rougeL"], tokenizer=UnicodeTokenizer())
    draw = random.Random(14)
    with (folder / "pairs.jsonl").open("w") as out:
        for number in range(2000):
            source, pred, refs = row(draw, number)
            found = {name: score.fmeasure for name, score in plain.score_multi(refs, pred).items()}
            found |= {
                name + "_stem": score.fmeasure
                for name, score in stemmed.score_multi(refs, pred).items()
            }
            found["rougeL_unicode"] = scripts.score_multi(refs, pred)["rougeL"].fmeasure
            found["sari"] = 100 * sari.SARIsent(
                sari.normalize(source), sari.normalize(pred), [sari.normalize(ref) for ref in refs]
            )
            found["exact_match"] = float(any(pred.strip() == ref.strip() for ref in refs))
            found["exact_match_squad"] = float(
                squad.metric_max_over_ground_truths(squad.exact_match_score, pred, refs)
            )
            found["token_f1"] = float(
                squad.metric_max_over_ground_truths(squad.f1_score, pred, refs)
            )
            out.write(
                json.dumps(
                    {
                        "input": source,
                        "pred": pred,
                        "ref": refs if len(refs) > 1 else refs[0],
                        "scores": found,
                    },
                    ensure_ascii=False,
                )
                + "\n"
            )
    stemmer = porter.PorterStemmer()
    words = {word.lower() for word in ENGLISH if word.isalnum()}
    endings = [
        "",
        "s",
        "es",
        "ies",
        "ied",
        "ed",
        "ing",
        "eed",
        "y",
        "ational",
        "alli",
        "bli",
        "fulli",
        "logi",
        "ement",
        "ment",
        "ion",
        "sion",
        "ll",
        "e",
        "ative",
        "biliti",
        "ousness",
        "izer",
        "enci",
        "able",
        "ance",
        "iz",
        "at",
        "bl",
    ]
    words |= {
        start + end
        for start in [
            "a",
            "be",
            "tr",
            "geo",
            "arch",
            "hopp",
            "fall",
            "fiz",
            "oat",
            "yy",
            "happ",
            "3d",
            "rel",
            "ab",
        ]
        for end in endings
    }
    (folder / "stems.json").write_text(
        json.dumps({word: stemmer.stem(word) for word in sorted(words) if word}) + "\n"
    )
    texts = sorted(
        {one for words in (HOSTILE, ENGLISH) for one in words}
        | {"".join(HOSTILE[:60]), "A'Σ", "ΑΣ'Α", "'Σ", "Α\u0301Σ\u0301 x"}
    )
    (folder / "text.json").write_text(
        json.dumps(
            [
                {
                    "text": one,
                    "lower": one.lower(),
                    "casefold": one.casefold(),
                    "strip": one.strip(),
                    "split": one.split(),
                    "words_13a": sari.normalize(one, lowercase=False),
                }
                for one in texts
            ],
            ensure_ascii=False,
        )
        + "\n"
    )


main()
