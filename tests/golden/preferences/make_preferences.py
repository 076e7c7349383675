# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files for learning from preferences: tokens, masks and curves of TRL's trainers.

The model and its tokenizer are tests/golden/train/qwen2 and its adapter start/. Row files: explicit.jsonl and
implicit.jsonl (texts), chats.jsonl and implicit_chats.jsonl (conversations). golden.json has the ids and the completion
masks of both sides of every row. For each case it has the settings, and for each step the loss, the gradient norm before
clipping, the rewards and the log-probabilities. For every trained tensor after the last step it has the norm and the
product with cos(0), cos(1), ... Run: python make_preferences.py (trl 1.16, transformers 5.24, peft 0.21)

TRL computes in fp64, because AdamW enlarges the fp32 noise of the smallest gradients, and then again in fp32, as Convoy
does: `rounding` has the largest difference of each figure, and for each tensor the norm of the difference.
"""

import json
import os
import pathlib
import tempfile
import warnings

os.environ.update(
    CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TRL_EXPERIMENTAL_SILENCE="1"
)
warnings.filterwarnings("ignore")
import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from peft import PeftModel  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from trl import DPOConfig, DPOTrainer  # noqa: E402
from trl.experimental.cpo import CPOConfig, CPOTrainer  # noqa: E402
from trl.experimental.orpo import ORPOConfig, ORPOTrainer  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TRAIN = HERE.parent / "train"
STEPS, LEARNING_RATE, EPSILON = 6, 2e-3, 1e-6
FOLDER = tempfile.TemporaryDirectory()  # the trainers' outputs

QUESTIONS = [
    ("How many legs has a spider?", "Eight.", "It has six of them."),
    ("Name three colours of the rainbow, in order.", "Red, orange, yellow.", "Blue, red."),
    ("What is 17 + 25?", "17 + 25 = 42", "17 + 25 = 1725, since the digits stand so."),
    ("Spell the word for 3.", "three", "tree"),
    ("What comes after Thursday?", "Friday comes after Thursday.", "Saturday."),
    ("Was ist die Hauptstadt von Österreich?", "Wien.", "Graz, Österreich."),
    ("2 * 6?", "12", "26"),
    ("What do bees make?", "Honey 🐝, and wax.", "Milk."),
]


def make_rows():
    explicit, implicit, chats, implicit_chats = [], [], [], []
    for index in range(24):
        question, chosen, rejected = QUESTIONS[index % len(QUESTIONS)]
        if index >= 8:
            rejected = f"{rejected} Row {index} says so."
        if index >= 16:
            chosen = f"{chosen} That is number {index}."
        prompt = f"Question {index}: {question}\n"
        explicit.append({"prompt": prompt, "chosen": chosen, "rejected": rejected})
        implicit.append(
            {"chosen": f"{prompt}Answer: {chosen}", "rejected": f"{prompt}Answer: {rejected}"}
        )
        before = [{"role": "system", "content": "Be brief."}] if index % 4 == 1 else []
        if index % 3 == 2:
            more, last, _ = QUESTIONS[(index * 5 + 2) % len(QUESTIONS)]
            before += [{"role": "user", "content": more}, {"role": "assistant", "content": last}]
        before += [{"role": "user", "content": question}]
        sides = {
            side: [{"role": "assistant", "content": text}]
            for side, text in (("chosen", chosen), ("rejected", rejected))
        }
        chats.append({"prompt": before, **sides})
        implicit_chats.append({side: before + turns for side, turns in sides.items()})
    for name, rows in (
        ("explicit", explicit),
        ("implicit", implicit),
        ("chats", chats),
        ("implicit_chats", implicit_chats),
    ):
        (HERE / f"{name}.jsonl").write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        )


def read_rows(name):
    return [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text().splitlines()]


def load(tuning, dtype):
    model = AutoModelForCausalLM.from_pretrained(
        TRAIN / "qwen2", dtype=torch.float32, attn_implementation="eager"
    )
    if tuning == "lora":
        model = PeftModel.from_pretrained(model, TRAIN / "qwen2" / "start", is_trainable=True)
    return model.to(dtype)


def trained_tensors(model):
    return {
        name.replace(".default.", "."): parameter.detach().double().flatten()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


def figures_of(tensors):
    return {
        name: [
            value.norm().item(),
            (value * torch.cos(torch.arange(len(value)).double())).sum().item(),
        ]
        for name, value in tensors.items()
    }


def rounding_of(curves, tensors):
    """How far the second of two curves and of two sets of tensors is from the first."""
    figures = {}
    for exact, rounded in zip(*curves, strict=True):
        for name, value in exact.items():
            figures[name] = max(figures.get(name, 0.0), abs(rounded[name] - value))
    exact, rounded = tensors
    norms = {name: (rounded[name] - value).norm().item() for name, value in exact.items()}
    return {"curve": figures, "weights": norms}


class PaperOrpo(ORPOTrainer):
    """The paper's loss of the chosen answer: the mean over the answer's tokens in each row. TRL's loss includes the prompt."""

    def concatenated_forward(self, model, batch):
        found = list(super().concatenated_forward(model, batch))
        found[4] = -found[0].mean()
        return tuple(found)


TRAINERS = {
    "dpo": (DPOTrainer, DPOConfig),
    "simpo": (CPOTrainer, CPOConfig),
    "orpo": (PaperOrpo, ORPOConfig),
}


def train(case, dtype):
    trainer_class, config_class = TRAINERS[case["trainer"]]
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(TRAIN / "tokenizer")
    options = dict(case["trl"])
    if case["trainer"] != "dpo":
        options.update(max_length=256)
    config = config_class(
        output_dir=FOLDER.name,
        max_steps=STEPS,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        per_device_train_batch_size=case["batch_size"],
        gradient_accumulation_steps=case["grad_accum"],
        weight_decay=0.0,
        adam_epsilon=EPSILON,
        max_grad_norm=1.0,
        logging_steps=1,
        report_to="none",
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        gradient_checkpointing=False,
        train_sampling_strategy="sequential",
        disable_tqdm=True,
        **options,
    )
    model = load(case["tuning"], dtype)
    extra = (
        {"ref_model": load("full", dtype)}
        if case["trainer"] == "dpo" and case["tuning"] == "full"
        else {}
    )
    trainer = trainer_class(
        model=model,
        args=config,
        train_dataset=Dataset.from_list(read_rows(case["rows"])),
        processing_class=tokenizer,
        **extra,
    )
    tokens = (
        [
            [row["prompt_ids"], row["chosen_ids"], row["rejected_ids"]]
            for row in trainer.train_dataset
        ]
        if case["trainer"] == "dpo"
        else None
    )
    trainer.train()
    names = (
        "loss",
        "grad_norm",
        "rewards/chosen",
        "rewards/rejected",
        "rewards/accuracies",
        "rewards/margins",
        "logps/chosen",
        "logps/rejected",
    )
    curve = [
        {name: float(entry[name]) for name in names if name in entry}
        for entry in trainer.state.log_history
        if "loss" in entry
    ]
    return tokens, curve, trained_tensors(trainer.model)


def cases():
    losses = {
        "sigmoid": {},
        "hinge": {},
        "ipo": {},
        "robust": {"label_smoothing": 0.2},
        "exo_pair": {"label_smoothing": 0.1},
        "nca_pair": {},
        "sppo_hard": {"beta": 0.4},
        "apo_zero": {},
        "apo_down": {},
        "sigmoid_norm": {"beta": 2.0},
    }
    for loss, options in losses.items():
        ours = {"loss": loss, **options}
        if loss == "sigmoid_norm":
            ours.update(loss="sigmoid", length_normalised="true")
        for tuning in ("full", "lora"):
            yield {
                "name": f"{loss}-{tuning}",
                "trainer": "dpo",
                "tuning": tuning,
                "rows": "explicit",
                "batch_size": 2,
                "grad_accum": 2,
                "trl": {"loss_type": loss, **options},
                "preference": ours,
            }
    for rows in ("implicit", "chats", "implicit_chats"):
        yield {
            "name": f"sigmoid-{rows}",
            "trainer": "dpo",
            "tuning": "lora",
            "rows": rows,
            "batch_size": 4,
            "grad_accum": 1,
            "trl": {"loss_type": "sigmoid", "beta": 0.5},
            "preference": {"beta": 0.5},
        }
    # With one row per micro-batch, TRL's mean over the tokens of a micro-batch is the mean of a row.
    yield {
        "name": "sigmoid-sft",
        "trainer": "dpo",
        "tuning": "full",
        "rows": "explicit",
        "batch_size": 1,
        "grad_accum": 4,
        "trl": {"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 0.3]},
        "preference": {"sft_weight": 0.3},
    }
    for tuning in ("full", "lora"):
        yield {
            "name": f"simpo-{tuning}",
            "trainer": "simpo",
            "tuning": tuning,
            "rows": "explicit",
            "batch_size": 2,
            "grad_accum": 2,
            "trl": {"loss_type": "simpo", "cpo_alpha": 0.0, "beta": 2.0, "simpo_gamma": 0.7},
            "preference": {"loss": "simpo", "beta": 2.0, "target_margin": 0.7},
        }
        yield {
            "name": f"orpo-{tuning}",
            "trainer": "orpo",
            "tuning": tuning,
            "rows": "explicit",
            "batch_size": 2,
            "grad_accum": 2,
            "trl": {"beta": 0.25},
            "preference": {"beta": 0.25},
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
        tokens, curve, tensors = train(case, torch.float64)
        _, rounded_curve, rounded = train(case, torch.float32)
        if tokens is not None:
            golden["tokens"][case["rows"]] = tokens
        del case["trl"]
        golden["cases"].append(
            {
                **case,
                "curve": curve,
                "weights": figures_of(tensors),
                "rounding": rounding_of((curve, rounded_curve), (tensors, rounded)),
            }
        )
        print(
            case["name"],
            " ".join(f"{entry['loss']:.5f}/{entry['grad_norm']:.4f}" for entry in curve),
            flush=True,
        )
    (HERE / "golden.json").write_text(json.dumps(golden) + "\n")
