#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guess-and-check loop of matrix factorisation in batched PyTorch on 2 threads: one JSON line.

usage: mf_guess_and_check.py WIDTH DEPTH ACTIVATION GUESSES   (5 x 5, 15 Gaussian measurements, eps 0.02)
"""

import json
import sys
import time

import torch

width, depth, activation, guesses = (
    int(sys.argv[1]),
    int(sys.argv[2]),
    sys.argv[3],
    int(float(sys.argv[4])),
)
torch.set_num_threads(2)
torch.manual_seed(0)
truth = torch.randn(5, 1) @ torch.randn(1, 5)
truth = (truth / truth.norm()).ravel()
a = torch.randn(15, 25)
a = a / a.norm(dim=1, keepdim=True)
test = torch.linalg.qr(a.T, mode="complete")[0][:, 15:].T
phi = {
    "Linear": lambda x: x,
    "Tanh": torch.tanh,
    "LeakyReLU": lambda x: torch.nn.functional.leaky_relu(x, 0.2),
}[activation]
weights = 10 * width + (depth - 2) * width * width
batch = max(500, 2_000_000 // weights)
accepted, loss = 0, 0.0
start = time.time()
for _ in range(0, guesses, batch):
    y = phi(torch.randn(batch, 5, width) / width**0.5)
    for _ in range(depth - 2):
        y = phi(torch.bmm(y, torch.randn(batch, width, width)) / width**0.5)
    y = (torch.bmm(y, torch.randn(batch, width, 5)) / 5**0.5).reshape(batch, 25)
    kept = ((y @ a.T - a @ truth) ** 2).mean(1) < 0.02
    accepted += int(kept.sum())
    loss += float(((y[kept] @ test.T - test @ truth) ** 2).mean(1).sum())
seconds = time.time() - start
print(
    json.dumps(
        dict(
            guesses_per_s=round(guesses / seconds), accepted=accepted, loss=loss / max(accepted, 1)
        )
    )
)
