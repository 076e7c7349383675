#!/usr/bin/env python3
"""Writes examples/har/sample: made-up windows in the layout of UCI HAR, small enough to be in a clone.

Three of the six activities move at a pace of their own, three rest at an angle of their own; subjects differ in pace,
strength and how they wear the phone. Nothing of it was measured.

usage: make_sample.py FOLDER        (numpy 2.x)
"""

import pathlib
import sys

import numpy as np

ROWS = 32
NAMES = ["WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING"]
CHANNELS = [
    "body_gyro_x",
    "body_gyro_y",
    "body_gyro_z",
    "total_acc_x",
    "total_acc_y",
    "total_acc_z",
]
PACE = [0.45, 0.33, 0.60, 0, 0, 0]  # radians a row
STRENGTH = [0.35, 0.28, 0.45, 0.01, 0.01, 0.01]
GRAVITY = np.array(
    [
        [0.95, -0.2, 0.1],
        [0.93, -0.3, 0.05],
        [0.97, -0.1, 0.15],
        [0.8, 0.35, 0.45],
        [0.96, -0.15, 0.0],
        [0.0, 0.7, 0.7],
    ]
)


def window(activity, subject, draw):
    wear = subject.normal(0, 0.05, 3)
    pace = PACE[activity] * (1 + subject.normal(0, 0.05) + draw.normal(0, 0.05))
    strength = STRENGTH[activity] * (1 + subject.normal(0, 0.15))
    phase = draw.uniform(0, 2 * np.pi) + pace * np.arange(ROWS)
    gyro = strength * np.stack([np.sin(phase), 0.7 * np.cos(phase), 0.5 * np.sin(2 * phase)])
    gravity = GRAVITY[activity] + wear
    acc = gravity[:, None] + strength * np.stack(
        [np.cos(2 * phase), 0.4 * np.sin(phase), 0.3 * np.cos(phase)]
    )
    return np.concatenate([gyro, acc]) + draw.normal(0, 0.05, (6, ROWS))


def write_split(folder, split, subjects, per_activity, draw):
    signals = folder / split / "Inertial Signals"
    signals.mkdir(parents=True, exist_ok=True)
    windows, classes, who = [], [], []
    for subject in subjects:
        for activity in range(len(NAMES)):
            for _ in range(per_activity):
                windows.append(window(activity, np.random.default_rng(1000 + subject), draw))
                classes.append(activity + 1)
                who.append(subject)
    for channel, name in enumerate(CHANNELS):
        lines = [" ".join(f"{value:.2f}" for value in one[channel]) for one in windows]
        (signals / f"{name}_{split}.txt").write_text("\n".join(lines) + "\n")
    (folder / split / f"y_{split}.txt").write_text("\n".join(map(str, classes)) + "\n")
    (folder / split / f"subject_{split}.txt").write_text("\n".join(map(str, who)) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    draw = np.random.default_rng(7)
    write_split(folder, "train", range(1, 9), 6, draw)
    write_split(folder, "test", range(9, 13), 5, draw)
    (folder / "activity_labels.txt").write_text(
        "".join(f"{n} {name}\n" for n, name in enumerate(NAMES, 1))
    )


main()
