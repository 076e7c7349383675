#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes train.jsonl (200 rows) and test.jsonl (24 rows): a sentence about an order, and the order as JSON.

  examples/orders/make_rows.py

Names, goods and frames are our own. The test holds sentences whose names and goods also occur in the training, in other
combinations.
"""

import json
import pathlib
import random

NAMES = [
    "Mara",
    "Tomas",
    "Ines",
    "Jonas",
    "Lea",
    "Omar",
    "Priya",
    "Felix",
    "Nora",
    "Ivan",
    "Sofia",
    "Hugo",
    "Anna",
    "Karim",
    "Elif",
    "Bruno",
]
GOODS = [
    "lamp",
    "chair",
    "kettle",
    "notebook",
    "bicycle",
    "blanket",
    "mirror",
    "basket",
    "clock",
    "ladder",
    "vase",
    "rug",
    "drill",
    "tent",
]
COLOURS = ["red", "blue", "green", "black", "white", "yellow", "grey"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
NUMBERS = {
    1: "one",
    2: "two",
    3: "three",
    4: "four",
    5: "five",
    6: "six",
    7: "seven",
    8: "eight",
    9: "nine",
    10: "ten",
    12: "twelve",
}
FRAMES = [
    "{name} ordered {count} {goods} for {day}.",
    "Please bring {name} {count} {goods} on {day}.",
    "On {day} {name} wants {count} {goods}.",
    "{count_first} {goods} for {name}, by {day}.",
    "{name} called: {count} {goods}, delivery on {day}.",
    "Could you send {count} {goods} to {name} this {day}?",
    "It is {day} that {name} needs {count} {goods}.",
    "{name} would like {count} {goods}; {day} is fine.",
    "We promised {name} {count} {goods} before {day}.",
    "Note for {day}: {count} {goods}, customer {name}.",
]


def row(draw):
    name, thing, colour, day = (draw.choice(words) for words in (NAMES, GOODS, COLOURS, DAYS))
    count = draw.choice(list(NUMBERS))
    words = draw.choice([NUMBERS[count], str(count)])
    goods = f"{colour} {thing}" + ("" if count == 1 else "s")
    sentence = draw.choice(FRAMES).format(
        name=name, count=words, count_first=words.capitalize(), goods=goods, day=day
    )
    order = {"customer": name, "item": thing, "colour": colour, "count": count, "day": day}
    return {
        "messages": [
            {"role": "user", "content": sentence},
            {"role": "assistant", "content": json.dumps(order)},
        ]
    }


def main():
    draw = random.Random(20261128)
    rows, seen = [], set()
    while len(rows) < 224:
        one = row(draw)
        if one["messages"][0]["content"] not in seen:
            seen.add(one["messages"][0]["content"])
            rows.append(one)
    folder = pathlib.Path(__file__).parent
    for name, part in (("train", rows[:200]), ("test", rows[200:])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in part))


if __name__ == "__main__":
    main()
