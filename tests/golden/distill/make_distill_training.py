# SPDX-License-Identifier: Apache-2.0
"""Makes distill_training.json: what TRL's DistillationTrainer learns from a teacher over given texts.

The model is tests/golden/train/qwen2 and its adapter start/, the teacher teacher/, which this script makes: of the same
vocabulary and another architecture and width. The texts of each step take the place of those that the trainer would
draw; they are in the file. Each case holds TRL's options, Convoy's settings, per step the loss, the gradient norm before clipping and the
entropy, and of every trained tensor after the last step its norm and its product with cos(0), cos(1), ...
For top_k the trainer's divergence is that of TRL's ServerDistillationTrainer, over the teacher's likeliest tokens and
one bucket for all others. Run: python make_distill_training.py (trl 1.16, transformers 5.24, peft 0.21)
"""

import json
import os
import pathlib
import random
import tempfile
import warnings

os.environ.update(
    CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TRL_EXPERIMENTAL_SILENCE="1"
)
warnings.filterwarnings("ignore")
import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from peft import PeftModel  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from trl import DistillationConfig, DistillationTrainer  # noqa: E402
from trl.experimental.server_distillation import server_distillation_trainer as sparse  # noqa: E402
from trl.trainer import distillation_trainer  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TRAIN = HERE.parent / "train"
STEPS, LEARNING_RATE, EPSILON = 4, 2e-3, 1e-6
PROBLEMS, SAMPLES, LONGEST, VOCABULARY = 4, 2, 9, 200
DENSE = distillation_trainer._chunked_divergence_loss


def make_teacher():
    """tests/golden/train/llama's form with the student's vocabulary, and weights that make it sure of some tokens."""
    torch.manual_seed(3)
    config = AutoConfig.from_pretrained(TRAIN / "llama")
    config.vocab_size = AutoConfig.from_pretrained(TRAIN / "qwen2").vocab_size
    config.initializer_range = 0.3
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(HERE / "teacher")
    (HERE / "teacher" / "generation_config.json").unlink(missing_ok=True)


def make_texts():
    """Of each step: PROBLEMS groups of SAMPLES texts."""
    source = random.Random(11)
    steps = []
    for _ in range(STEPS):
        texts = []
        for _ in range(PROBLEMS):
            prompt = [source.randrange(3, VOCABULARY) for _ in range(source.randrange(2, 7))]
            for _ in range(SAMPLES):
                length = source.randrange(1, LONGEST + 1)
                text = [source.randrange(3, VOCABULARY) for _ in range(length)]
                texts.append({"prompt": prompt, "text": text})
        steps.append(texts)
    return steps


def sparse_loss(top_k):
    """TRL's divergence over the teacher's top_k tokens and their tail, in place of its dense one."""

    def loss(
        student, teacher, student_head, teacher_head, mask, beta, num_items_in_batch, **options
    ):
        temperature = options["temperature"]
        valid = mask.reshape(-1) != 0
        student = student.reshape(-1, student.size(-1))[valid] @ student_head.T / temperature
        teacher = teacher.reshape(-1, teacher.size(-1))[valid] @ teacher_head.T / temperature
        of_student, of_teacher = student.log_softmax(-1), teacher.log_softmax(-1)
        top, ids = of_teacher.topk(top_k, -1)
        every = torch.ones_like(ids, dtype=torch.bool)
        theirs, _ = sparse._add_tail_bucket(top, every)
        ours, support = sparse._add_tail_bucket(of_student.gather(-1, ids), every)
        divergence = sparse._jsd_divergence(ours, theirs, beta, support).sum()
        entropy = -(of_student.exp() * of_student).sum()
        return divergence / num_items_in_batch, entropy, valid.sum()

    return loss


def train(case, steps, folder):
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(TRAIN / "tokenizer")
    options = {"dtype": torch.float32, "attn_implementation": "eager"}
    model = AutoModelForCausalLM.from_pretrained(TRAIN / "qwen2", **options)
    teacher = AutoModelForCausalLM.from_pretrained(HERE / "teacher", **options)
    if case["tuning"] == "lora":
        model = PeftModel.from_pretrained(model, TRAIN / "qwen2" / "start", is_trainable=True)
    top_k = case["distill"].get("top_k", 0)
    distillation_trainer._chunked_divergence_loss = sparse_loss(top_k) if top_k else DENSE
    config = DistillationConfig(
        output_dir=folder,
        max_steps=STEPS,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        per_device_train_batch_size=PROBLEMS * SAMPLES // case["grad_accum"],
        gradient_accumulation_steps=case["grad_accum"],
        max_completion_length=LONGEST,
        weight_decay=0.0,
        adam_epsilon=EPSILON,
        max_grad_norm=1.0,
        logging_steps=1,
        report_to="none",
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        gradient_checkpointing=False,
        shuffle_dataset=False,
        disable_tqdm=True,
        **case["trl"],
    )
    trainer = DistillationTrainer(
        model=model,
        teacher_model=teacher,
        args=config,
        train_dataset=Dataset.from_list([{"prompt": f"problem {index}"} for index in range(64)]),
        processing_class=tokenizer,
    )
    calls = []

    def generate(prompts):
        texts = steps[len(calls)]
        assert len(prompts) == len(texts), (len(prompts), len(texts))
        calls.append(len(prompts))
        return [one["prompt"] for one in texts], [one["text"] for one in texts], None, None, []

    trainer._generate = generate
    trainer.train()
    curve = [
        {name: float(entry[name]) for name in ("loss", "grad_norm", "entropy")}
        for entry in trainer.state.log_history
        if "loss" in entry
    ]
    weights = {}
    for name, parameter in trainer.model.named_parameters():
        if parameter.requires_grad:
            value = parameter.detach().double().flatten()
            weights[name.replace(".default.", ".")] = [
                value.norm().item(),
                (value * torch.cos(torch.arange(len(value)).double())).sum().item(),
            ]
    return curve, weights


def cases():
    divergences = {
        "forward": ({"beta": 0.0}, {"divergence": "forward_kl"}),
        "reverse": ({"beta": 1.0}, {"divergence": "reverse_kl"}),
        "js": ({"beta": 0.5}, {"divergence": "js"}),
        "js-uneven": (
            {"beta": 0.2, "temperature": 1.7},
            {"divergence": "js", "beta": 0.2, "temperature": 1.7},
        ),
    }
    for name, (trl, ours) in divergences.items():
        for tuning in ("full", "lora"):
            for grad_accum in (1, 2):
                yield {
                    "name": f"{name}-{tuning}-{grad_accum}",
                    "tuning": tuning,
                    "grad_accum": grad_accum,
                    "trl": trl,
                    "distill": ours,
                }
    for name in ("forward", "reverse", "js-uneven"):
        trl, ours = divergences[name]
        yield {
            "name": f"{name}-top",
            "tuning": "full",
            "grad_accum": 2,
            "trl": trl,
            "distill": {**ours, "top_k": 8},
        }


def main():
    make_teacher()
    steps = make_texts()
    made = []
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            curve, weights = train(case, steps, folder)
        made.append({**case, "curve": curve, "weights": weights})
        print(case["name"], [f"{step['loss']:.6f}" for step in curve])
    figures = {
        "steps": STEPS,
        "learning_rate": LEARNING_RATE,
        "adam_epsilon": EPSILON,
        "samples": SAMPLES,
        "longest": LONGEST,
        "turns": steps,
        "cases": made,
    }
    (HERE / "distill_training.json").write_text(json.dumps(figures, indent=0) + "\n")


main()
