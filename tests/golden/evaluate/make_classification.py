#!/usr/bin/env python3
"""Writes classification.json: the metrics that scikit-learn computes from true and predicted classes.

usage: make_classification.py FOLDER        (scikit-learn 1.9)
"""

import json
import pathlib
import random
import sys

from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)


def case(classes, rows, skill, seed, missing=(), unused=()):
    """`missing`: classes that are never true. `unused`: classes that are neither true nor predicted."""
    draw = random.Random(seed)
    there = [one for one in range(classes) if one not in missing and one not in unused]
    answers = [one for one in range(classes) if one not in unused]
    truth = [draw.choice(there) for _ in range(rows)]
    predicted = [one if draw.random() < skill else draw.choice(answers) for one in truth]
    labels = list(range(classes))
    figures = precision_recall_fscore_support(truth, predicted, labels=labels, zero_division=0)
    return {
        "classes": classes,
        "truth": truth,
        "predicted": predicted,
        "matrix": confusion_matrix(truth, predicted, labels=labels).tolist(),
        "accuracy": accuracy_score(truth, predicted),
        "precision": figures[0].tolist(),
        "recall": figures[1].tolist(),
        "f1": figures[2].tolist(),
        "support": figures[3].tolist(),
        # The call that scripts make: a mean over the classes that occur as true or as predicted ones.
        "macro_f1": f1_score(truth, predicted, average="macro", zero_division=0),
        "weighted_f1": f1_score(truth, predicted, average="weighted", zero_division=0),
    }


def main():
    cases = [
        case(6, 200, 0.8, 1),
        case(2, 30, 0.6, 2),
        case(4, 50, 0.0, 3),
        case(5, 40, 0.9, 4, missing=(2,)),
        case(3, 1, 1.0, 5),
        case(6, 25, 0.2, 6, missing=(0, 5)),
        case(7, 30, 0.4, 7, unused=(2, 3, 4, 5)),
        case(30, 40, 0.5, 8, unused=tuple(range(5, 30))),
    ]
    (pathlib.Path(sys.argv[1]) / "classification.json").write_text(json.dumps(cases) + "\n")


main()
