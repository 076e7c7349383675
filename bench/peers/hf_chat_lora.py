"""Peer of examples/sums/lora.yaml: LoRA on chat rows with transformers + PEFT, the same settings, no Convoy code.

usage: hf_chat_lora.py MODEL TRAIN.jsonl EVAL.jsonl [--rows N] [--eval-rows N] [--epochs 2] [--lr 1e-3] [--batch 16]
Rows are {"question", "answer"}. Prints one JSON line: seconds of training, evaluation loss before and after.
"""

import argparse
import json
import math
import random
import time

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, get_cosine_schedule_with_warmup

p = argparse.ArgumentParser()
p.add_argument("model")
p.add_argument("train")
p.add_argument("eval")
p.add_argument("--rows", type=int, default=0)
p.add_argument("--eval-rows", type=int, default=0)
p.add_argument("--epochs", type=int, default=2)
p.add_argument("--lr", type=float, default=1e-3)
p.add_argument("--batch", type=int, default=16)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--max-length", type=int, default=256)
a = p.parse_args()
torch.manual_seed(0)
torch.set_num_threads(a.threads)
random.seed(0)
tokenizer = AutoTokenizer.from_pretrained(a.model)
model = AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.float32)
model = get_peft_model(
    model,
    LoraConfig(
        r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
    ),
)
end = tokenizer.convert_tokens_to_ids("<|im_end|>")


def rows(path, limit):
    out = []
    for line in open(path):
        row = json.loads(line)
        user = [{"role": "user", "content": row["question"]}]
        prompt = tokenizer.apply_chat_template(user, add_generation_prompt=True, tokenize=False)
        ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        answer = tokenizer(row["answer"], add_special_tokens=False)["input_ids"] + [end]
        out.append(((ids + answer)[: a.max_length], ([-100] * len(ids) + answer)[: a.max_length]))
        if limit and len(out) == limit:
            break
    return [r for r in out if any(label != -100 for label in r[1])]


def batch_loss(batch):
    width = max(len(ids) for ids, _ in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    labels = torch.full((len(batch), width), -100)
    mask = torch.zeros_like(ids)
    for i, (x, y) in enumerate(batch):
        ids[i, : len(x)] = torch.tensor(x)
        labels[i, : len(y)] = torch.tensor(y)
        mask[i, : len(x)] = 1
    logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
    target = labels[:, 1:]
    loss = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.size(-1)).float(),
        target.reshape(-1),
        ignore_index=-100,
        reduction="sum",
    )
    return loss, int((target != -100).sum())


def evaluate(data):
    model.eval()
    total = count = 0
    with torch.no_grad():
        for i in range(0, len(data), a.batch):
            loss, n = batch_loss(data[i : i + a.batch])
            total += loss.item()
            count += n
    model.train()
    return total / count


train, held_out = rows(a.train, a.rows), rows(a.eval, a.eval_rows)
before = evaluate(held_out)
steps = math.ceil(len(train) / a.batch) * a.epochs
optimizer = torch.optim.AdamW(
    [q for q in model.parameters() if q.requires_grad], lr=a.lr, weight_decay=0.01
)
schedule = get_cosine_schedule_with_warmup(optimizer, math.ceil(0.06 * steps), steps)
start = time.time()
for _epoch in range(a.epochs):
    random.shuffle(train)
    for i in range(0, len(train), a.batch):
        loss, n = batch_loss(train[i : i + a.batch])
        (loss / n).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
seconds = time.time() - start
print(
    json.dumps(
        dict(
            peer="transformers+peft",
            rows=len(train),
            epochs=a.epochs,
            seconds=round(seconds, 1),
            eval_loss_before=round(before, 4),
            eval_loss_after=round(evaluate(held_out), 4),
        )
    )
)
