# SPDX-License-Identifier: Apache-2.0
"""Writes files in the format of MNIST with made-up digits: digit d is a bright bar in row 2 d + 4, with noise.

make_digits.py FOLDER
"""

import pathlib
import random
import struct
import sys


def write(folder, name, count, seed):
    noise = random.Random(seed)
    backgrounds = [bytes(noise.randrange(60) for _ in range(784)) for _ in range(64)]
    images, labels = (
        bytearray(struct.pack(">4i", 2051, count, 28, 28)),
        bytearray(struct.pack(">2i", 2049, count)),
    )
    for _ in range(count):
        digit = noise.randrange(10)
        image = bytearray(noise.choice(backgrounds))
        begin = 28 * (2 * digit + 4) + noise.randrange(10)
        image[begin : begin + 18] = bytes([noise.randrange(120, 256)]) * 18
        images += image
        labels.append(digit)
    (folder / f"{name}-images-idx3-ubyte").write_bytes(images)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(labels)


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
write(folder, "train", 60000, 1)
write(folder, "t10k", 10000, 2)
