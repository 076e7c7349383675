# SPDX-License-Identifier: Apache-2.0
"""A small random model of Qwen3.5's form with transformers, for bench/hybrid.py.

hf_hybrid.py make TOKENIZER_FOLDER MODEL_FOLDER
hf_hybrid.py train MODEL_FOLDER ROWS BATCH STEPS THREADS
    prints {"seconds", of each step after the first two, "losses", of all steps}
hf_hybrid.py generate MODEL_FOLDER PROMPTS TOKENS... THREADS
    prints {"seconds", by number of new tokens, "token_ids", of the longest answers}
"""

import json
import shutil
import sys
import time

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
)

# A quarter of the width and a third of the depth of Qwen3.5 0.8B.
SIZES = dict(
    hidden_size=256,
    intermediate_size=896,
    num_hidden_layers=8,
    num_attention_heads=4,
    num_key_value_heads=1,
    head_dim=128,
    linear_num_key_heads=4,
    linear_num_value_heads=4,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    linear_conv_kernel_dim=4,
    max_position_embeddings=4096,
    tie_word_embeddings=True,
)


def make(tokenizer, folder):
    torch.manual_seed(0)
    with open(tokenizer + "/config.json") as file:
        vocabulary = json.load(file)["vocab_size"]
    model = Qwen3_5ForCausalLM(Qwen3_5TextConfig(vocab_size=vocabulary, **SIZES))
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"{tokenizer}/{name}", folder)


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def encode(tokenizer, row):
    prompt = tokenizer(row["prompt"])["input_ids"]
    ids = tokenizer(row["prompt"] + row["completion"])["input_ids"] + [tokenizer.eos_token_id]
    return ids, [-100] * len(prompt) + ids[len(prompt) :]


def padded(rows):
    width = max(len(ids) for ids, _ in rows)
    return dict(
        input_ids=torch.tensor([ids + [0] * (width - len(ids)) for ids, _ in rows]),
        attention_mask=torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows]),
        labels=torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in rows]),
    )


def train(folder, path, batch, steps):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = [encode(tokenizer, row) for row in lines(path)]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0)
    seconds, losses = [], []
    for step in range(steps):
        inputs = padded(rows[step * batch : (step + 1) * batch])
        begin = time.perf_counter()
        loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": seconds[2:], "losses": losses}))


def generate(folder, path, lengths):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    prompts = torch.tensor([tokenizer(row["prompt"])["input_ids"] for row in lines(path)])
    seconds = {}
    with torch.inference_mode():
        for tokens in lengths:
            begin = time.perf_counter()
            found = model.generate(
                input_ids=prompts,
                attention_mask=torch.ones_like(prompts),
                do_sample=False,
                min_new_tokens=tokens,
                max_new_tokens=tokens,
            )
            seconds[tokens] = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "token_ids": found[:, prompts.shape[1] :].tolist()}))


def main():
    action, folder, *others = sys.argv[1:]
    if action == "make":
        return make(folder, *others)
    torch.set_num_threads(int(others[-1]))
    if action == "train":
        path, batch, steps = others[:-1]
        return train(folder, path, int(batch), int(steps))
    path, *lengths = others[:-1]
    return generate(folder, path, [int(tokens) for tokens in lengths])


if __name__ == "__main__":
    main()
