# SPDX-License-Identifier: Apache-2.0
"""Golden file of convoy/model/kernels/sampler: shares of ids after transformers' logits processors.

usage: make_sampling.py, from this folder, with torch 2.11 and transformers 5 installed
"""

import itertools
import json

import torch
from transformers.generation import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

WIDTH = 60
TEMPERATURES = (0.6, 1.0, 1.7)
TOP_K = (0, 1, 12)
TOP_P = (1.0, 0.95, 0.4)
MIN_P = (0.0, 0.08)
PENALTIES = (1.0, 1.3, 0.8)


def processors(rule):
    """The logits processors of a rule, in the order of transformers' generate()."""
    made = LogitsProcessorList()
    if rule["repetition_penalty"] != 1.0:
        made.append(RepetitionPenaltyLogitsProcessor(rule["repetition_penalty"]))
    if rule["temperature"] != 1.0:
        made.append(TemperatureLogitsWarper(rule["temperature"]))
    if rule["top_k"] > 0:
        made.append(TopKLogitsWarper(rule["top_k"]))
    if rule["top_p"] < 1.0:
        made.append(TopPLogitsWarper(rule["top_p"]))
    if rule["min_p"] > 0.0:
        made.append(MinPLogitsWarper(rule["min_p"]))
    return made


def main():
    torch.manual_seed(7)
    cases = []
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
    for values in itertools.product(TEMPERATURES, TOP_K, TOP_P, MIN_P, PENALTIES):
        rule = dict(zip(names, values))
        logits = (torch.randn(1, WIDTH) * 2.5).round(decimals=4)
        seen = torch.randint(0, WIDTH, (1, 15))
        scores = processors(rule)(seen, logits.clone())
        shares = scores.double().softmax(-1)[0]
        cases.append(
            {
                "rule": rule,
                "logits": [round(value, 4) for value in logits[0].tolist()],
                "seen": seen[0].tolist(),
                "shares": {str(i): float(f"{s:.7g}") for i, s in enumerate(shares.tolist()) if s},
            }
        )
    with open("sampling.json", "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


main()
