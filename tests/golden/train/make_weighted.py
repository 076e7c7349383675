# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files for training on turns that have weights: a plain loop in PyTorch with the model folder qwen2/.

weighted/rows.jsonl has the conversations of chats.jsonl with `weight` in their turns. weighted/curve.json has for each step the
loss, the norm of the gradient before clipping, the learning rate and the number of learnt tokens. The loss of a step is
sum(weight * cross_entropy) / sum(weight) over all learnt tokens of its rows, written out in one backward pass.
Run after make_train.py: python make_weighted.py (needs torch, transformers 5)
"""

import json

import torch
from make_train import (
    ACCUMULATION,
    BATCH,
    CLIP,
    HERE,
    LEARNING_RATE,
    STEPS,
    WARMUP,
    load,
    parameter_groups,
)
from transformers import AutoTokenizer, get_linear_schedule_with_warmup

FOLDER = HERE / "weighted"
WEIGHTS = (
    0.25,
    2,
    0,
    1,
    0.5,
    3.5,
    True,
    0.125,
)  # weights of successive answers; every third answer gets no weight
OF_USERS = {4: 0.75, 9: 1}  # weights of the first questions that are learnt too, by row


def make_rows():
    rows, answers = [], 0
    for index, line in enumerate((HERE / "chats.jsonl").read_text().splitlines()):
        messages = json.loads(line)["messages"]
        for message in messages:
            if message["role"] == "assistant":
                if answers % 3 != 2:
                    message["weight"] = WEIGHTS[answers % len(WEIGHTS)]
                answers += 1
        if index in OF_USERS:
            # The key is `train`, because `weight` of a question counts only if questions are learnt anyway.
            next(message for message in messages if message["role"] == "user")["train"] = OF_USERS[
                index
            ]
        rows.append({"messages": messages})
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "rows.jsonl").write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    )
    return rows


def encode(tokenizer, messages):
    """The ids of a conversation, and the weight of each token in the loss. Writes the text of the template turn by turn."""
    ids, weights = [], []
    for message in messages:
        weight = float(message.get("train", message.get("weight", message["role"] == "assistant")))
        for text, own in (
            (f"<|start|>{message['role']}\n", 0.0),
            (f"{message['content']}<|end|>", weight),
            ("\n", 0.0),
        ):
            tokens = tokenizer(text)["input_ids"]
            ids += tokens
            weights += [own] * len(tokens)
    plain = [{key: message[key] for key in ("role", "content")} for message in messages]
    assert (
        ids == tokenizer.apply_chat_template(plain, tokenize=True, return_dict=True)["input_ids"]
    ), messages
    return ids, weights


def train(model, rows):
    model.train()
    groups = parameter_groups(model)
    parameters = [parameter for group in groups for parameter in group["params"]]
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE["full"], betas=(0.9, 0.999), eps=1e-8)
    schedule = get_linear_schedule_with_warmup(optimizer, WARMUP, STEPS)
    size = BATCH * ACCUMULATION
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    curve = []
    for step in range(STEPS):
        weighed, divisor, tokens = 0.0, 0.0, 0
        for ids, weights in batches[step % len(batches)]:
            logits = model(input_ids=torch.tensor([ids])).logits[0].float()
            losses = torch.nn.functional.cross_entropy(
                logits[:-1], torch.tensor(ids[1:]), reduction="none"
            )
            weighed = weighed + (losses * torch.tensor(weights[1:])).sum()
            divisor += sum(weights[1:])
            tokens += sum(weight > 0 for weight in weights[1:])
        loss = weighed / divisor
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, CLIP).item()
        curve.append(
            {
                "loss": loss.item(),
                "grad_norm": norm,
                "learning_rate": schedule.get_last_lr()[0],
                "tokens": tokens,
            }
        )
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return curve


if __name__ == "__main__":
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(HERE / "tokenizer")
    encoded = [encode(tokenizer, row["messages"]) for row in make_rows()]
    curve = train(load(HERE / "qwen2"), encoded)
    (FOLDER / "curve.json").write_text(json.dumps(curve, indent=1) + "\n")
