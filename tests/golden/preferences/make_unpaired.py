# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files for learning from single answers that are labelled good or bad (TRL's KTOTrainer).

Model, tokenizer, adapter and hyperparameters are those of make_preferences.py. Row files: unpaired.jsonl (texts),
unpaired_chats.jsonl (conversations), unpaired_test.jsonl (held out); explicit.jsonl has pairs, which TRL takes apart.
unpaired.json has prompt ids, completion ids and label of every row. For each case it has the settings, and for each step
the loss, the gradient norm before clipping, the rewards, the log-probabilities and the estimate of the divergence. It
also has the figures of an evaluation after the last step, if the case has one, and for every trained tensor the norm and
the product with cos(0), cos(1), ... Run: python make_unpaired.py (trl 1.16, transformers 5.24, peft 0.21)

A step is one micro-batch here, because TRL estimates the divergence for each micro-batch and Convoy for each step. TRL
computes in fp64 and then in fp32, as in make_preferences.py: `rounding` has the differences.
"""

import json

import torch
from datasets import Dataset
from make_preferences import (
    EPSILON,
    FOLDER,
    HERE,
    LEARNING_RATE,
    QUESTIONS,
    STEPS,
    TRAIN,
    figures_of,
    load,
    read_rows,
    rounding_of,
    trained_tensors,
)
from transformers import AutoTokenizer
from trl import KTOConfig, KTOTrainer

NAMES = (
    "loss",
    "rewards/chosen",
    "rewards/rejected",
    "rewards/margins",
    "logps/chosen",
    "logps/rejected",
    "kl",
)


def make_rows():
    texts, chats = [], []
    for index in range(24):
        question, chosen, rejected = QUESTIONS[index % len(QUESTIONS)]
        is_good = (
            index % 5 not in (1, 4)
            and index
            not in (
                16,
                17,
                18,
                19,
            )
        )  # one step with only good and one with only bad answers, and more good answers than bad ones
        is_good = is_good or index in (4, 6)
        answer = (chosen if is_good else rejected) + (f" Row {index} says so." if index % 2 else "")
        texts.append(
            {"prompt": f"Question {index}: {question}\n", "completion": answer, "label": is_good}
        )
        before = [{"role": "system", "content": "Be brief."}] if index % 4 == 1 else []
        if index % 3 == 2:
            more, last, _ = QUESTIONS[(index * 5 + 2) % len(QUESTIONS)]
            before += [{"role": "user", "content": more}, {"role": "assistant", "content": last}]
        chats.append(
            {
                "prompt": before + [{"role": "user", "content": question}],
                "completion": [{"role": "assistant", "content": answer}],
                "label": is_good,
            }
        )
    test = [
        {
            "prompt": f"Exam {index}: {question}\n",
            "completion": chosen if index % 3 else rejected,
            "label": bool(index % 3),
        }
        for index, (question, chosen, rejected) in enumerate(QUESTIONS)
    ]
    for name, rows in (("unpaired", texts), ("unpaired_chats", chats), ("unpaired_test", test)):
        (HERE / f"{name}.jsonl").write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        )


def figures(entry, prefix=""):
    return {
        name: float(entry[prefix + name])
        for name in (*NAMES, "grad_norm")
        if prefix + name in entry
    }


def train(case, dtype):
    torch.manual_seed(0)
    evaluates = case["test_rows"] is not None
    preference = dict(case["preference"])
    loss = preference.pop("loss", "kto")
    config = KTOConfig(
        output_dir=FOLDER.name,
        max_steps=STEPS,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        per_device_train_batch_size=case["batch_size"],
        per_device_eval_batch_size=case["batch_size"],
        weight_decay=0.0,
        adam_epsilon=EPSILON,
        max_grad_norm=1.0,
        logging_steps=1,
        report_to="none",
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        gradient_checkpointing=False,
        disable_tqdm=True,
        eval_strategy="steps" if evaluates else "no",
        eval_steps=STEPS,
        loss_type=loss,
        **preference,
    )
    trainer = KTOTrainer(
        model=load(case["tuning"], dtype),
        args=config,
        ref_model=load("full", dtype) if case["tuning"] == "full" else None,
        train_dataset=Dataset.from_list(read_rows(case["rows"])),
        eval_dataset=Dataset.from_list(read_rows(case["test_rows"])) if evaluates else None,
        processing_class=AutoTokenizer.from_pretrained(TRAIN / "tokenizer"),
    )
    tokens = [
        [row["prompt_ids"], row["completion_ids"], row["label"]] for row in trainer.train_dataset
    ]
    trainer.train()
    history = trainer.state.log_history
    if loss != "kto":  # the other losses estimate no divergence, and TRL logs 0 for it
        for entry in history:
            entry.pop("kl", None)
            entry.pop("eval_kl", None)
    found = {"curve": [figures(entry) for entry in history if "loss" in entry]}
    if evaluates:
        found["evaluation"] = figures(
            next(entry for entry in history if "eval_loss" in entry), "eval_"
        )
    return tokens, found, trained_tensors(trainer.model)


def cases():
    weights = {"desirable_weight": 0.75, "undesirable_weight": 1.25}
    for tuning in ("full", "lora"):
        yield {
            "name": f"kto-{tuning}",
            "tuning": tuning,
            "rows": "unpaired",
            "test_rows": None,
            "batch_size": 4,
            "preference": {"beta": 0.3},
        }
    yield {
        "name": "weights",
        "tuning": "lora",
        "rows": "unpaired",
        "test_rows": "unpaired_test",
        "batch_size": 8,
        "preference": {"beta": 0.5, **weights},
    }
    yield {
        "name": "chats",
        "tuning": "full",
        "rows": "unpaired_chats",
        "test_rows": None,
        "batch_size": 4,
        "preference": {"beta": 0.1, **weights},
    }
    yield {
        "name": "pairs",
        "tuning": "lora",
        "rows": "explicit",
        "test_rows": None,
        "batch_size": 8,
        "preference": {"beta": 0.5},
    }
    yield {
        "name": "apo-zero",
        "tuning": "lora",
        "rows": "unpaired",
        "test_rows": "unpaired_test",
        "batch_size": 8,
        "preference": {"beta": 0.5, "loss": "apo_zero_unpaired", **weights},
    }


if __name__ == "__main__":
    make_rows()
    golden = {
        "steps": STEPS,
        "learning_rate": LEARNING_RATE,
        "adam_epsilon": EPSILON,
        "tokens": {},
        "cases": [],
    }
    for case in cases():
        tokens, found, tensors = train(case, torch.float64)
        _, rounded_found, rounded = train(case, torch.float32)
        found["weights"] = figures_of(tensors)
        curves = [
            [*run["curve"], *([run["evaluation"]] if "evaluation" in run else [])]
            for run in (found, rounded_found)
        ]
        found["rounding"] = rounding_of(curves, (tensors, rounded))
        golden["tokens"][case["rows"]] = tokens
        golden["cases"].append({**case, **found})
        print(
            case["name"],
            " ".join(f"{entry['loss']:.5f}/{entry.get('kl', 0):.4f}" for entry in found["curve"]),
            flush=True,
        )
    (HERE / "unpaired.json").write_text(json.dumps(golden) + "\n")
