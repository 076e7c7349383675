#!/usr/bin/env python3
"""Writes logprobs.json: greedy tokens of transformers in fp32 for one prompt of examples/tally-3m, each with the log-probabilities of the five
likeliest. Needs torch and transformers (made with 2.11.0 and 5.24)."""

import json
import pathlib

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE.parent.parent.parent / "examples/tally-3m"
PROMPT = "Question: Tom has 12 apples and buys 7 more. How many apples has he?\nAnswer:"
NEW_TOKENS = 24

tokenizer = AutoTokenizer.from_pretrained(MODEL)
model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
ids = tokenizer(PROMPT, return_tensors="pt").input_ids
made = model.generate(ids, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0)[
    0, ids.shape[1] :
]
with torch.no_grad():
    logits = model(torch.cat([ids[0], made])[None]).logits[0, ids.shape[1] - 1 : -1]
shares = torch.log_softmax(logits.double(), dim=-1)
places = []
for token, row in zip(made.tolist(), shares):
    values, tokens = row.topk(5)
    places.append(
        {
            "token": tokenizer.decode([token]),
            "logprob": round(row[token].item(), 6),
            "top": [
                [tokenizer.decode([one]), round(value, 6)]
                for one, value in zip(tokens.tolist(), values.tolist())
            ],
        }
    )
(HERE / "logprobs.json").write_text(json.dumps({"prompt": PROMPT, "places": places}) + "\n")
