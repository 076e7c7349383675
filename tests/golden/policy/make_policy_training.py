# SPDX-License-Identifier: Apache-2.0
"""Makes policy_training.json: what TRL's GRPOTrainer and RLOOTrainer learn from given rollouts and rewards.

The model is tests/golden/train/qwen2 and its adapter start/. The rollouts of each step are given to the trainer by its
`rollout_func`; they and their rewards are in the file. In the cases with an importance cap, the log-probabilities that
they were drawn with are the trainer's own plus the shifts of the file. Each case holds TRL's options, Convoy's settings, per step the
loss and the gradient norm before clipping, the advantages, and of every trained tensor after the last step its norm and
its product with cos(0), cos(1), ... Run: python make_policy_training.py (trl 1.16, transformers 5.24, peft 0.21)
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
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TRAIN = HERE.parent / "train"
STEPS, LEARNING_RATE, EPSILON = 4, 2e-3, 1e-6
PROBLEMS, SAMPLES, LONGEST, VOCABULARY = 4, 3, 9, 200


def make_rollouts():
    """Of each turn: PROBLEMS groups of SAMPLES texts. One group of the second turn has no spread."""
    source = random.Random(5)
    turns = []
    for turn in range(STEPS):
        rollouts = []
        for problem in range(PROBLEMS):
            prompt = [source.randrange(3, VOCABULARY) for _ in range(source.randrange(2, 7))]
            for _ in range(SAMPLES):
                text = [
                    source.randrange(3, VOCABULARY) for _ in range(source.randrange(1, LONGEST + 1))
                ]
                reward = source.choice([0.0, 0.25, 1.0, -0.5])
                if turn == 1 and problem == 2:
                    reward = 0.25
                rollouts.append({"prompt": prompt, "text": text, "reward": reward})
        turns.append(rollouts)
    shifts = random.Random(6)
    for rollouts in turns:
        for one in rollouts:
            one["shift"] = [round(shifts.uniform(-0.5, 0.5), 3) for _ in one["text"]]
    return turns


def own_log_probabilities(model, one, temperature):
    ids = torch.tensor([one["prompt"] + one["text"]])
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, len(one["prompt"]) - 1 : -1] / temperature
    found = torch.log_softmax(logits, dim=-1)
    return found[torch.arange(len(one["text"])), torch.tensor(one["text"])].tolist()


def train(case, turns, folder):
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(TRAIN / "tokenizer")
    model = AutoModelForCausalLM.from_pretrained(
        TRAIN / "qwen2", dtype=torch.float32, attn_implementation="eager"
    )
    if case["tuning"] == "lora":
        model = PeftModel.from_pretrained(model, TRAIN / "qwen2" / "start", is_trainable=True)
    config = GRPOConfig(
        output_dir=folder,
        max_steps=STEPS,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        per_device_train_batch_size=PROBLEMS * SAMPLES // case["grad_accum"],
        gradient_accumulation_steps=case["grad_accum"],
        num_generations=SAMPLES,
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
        use_bias_correction_kl=False,
        **case["trl"],
    )
    corrects = "vllm_importance_sampling_mode" in case["trl"]
    calls = []

    def rollout(prompts, trainer):
        rollouts = turns[len(calls)]
        assert len(prompts) == len(rollouts), (len(prompts), len(rollouts))
        calls.append(len(prompts))
        drawn = [[0.0] * len(one["text"]) for one in rollouts]
        if corrects:
            drawn = [
                [own + shift for own, shift in zip(found, one["shift"], strict=True)]
                for one in rollouts
                for found in [own_log_probabilities(trainer.model, one, config.temperature)]
            ]
        return {
            "prompt_ids": [one["prompt"] for one in rollouts],
            "completion_ids": [one["text"] for one in rollouts],
            "logprobs": drawn,
            "recorded": [one["reward"] for one in rollouts],
        }

    trainer = GRPOTrainer(
        model=model,
        reward_funcs=lambda recorded, **_: recorded,
        args=config,
        train_dataset=Dataset.from_list([{"prompt": f"problem {index}"} for index in range(64)]),
        processing_class=tokenizer,
        rollout_func=rollout,
    )
    advantages = []
    generate = trainer._generate_and_score_completions

    def recording(inputs):
        found = generate(inputs)
        advantages.append(found["advantages"].tolist())
        return found

    trainer._generate_and_score_completions = recording
    draw = trainer._generate

    # TRL corrects texts of vLLM alone: these pass for its own once they are drawn.
    def drawing(prompts):
        trainer.use_vllm = False
        found = draw(prompts)
        trainer.use_vllm = corrects
        return found

    trainer._generate = drawing
    trainer.train()
    curve = [
        {name: float(entry[name]) for name in ("loss", "grad_norm", "kl") if name in entry}
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
    return advantages, curve, weights


def cases():
    losses = {
        "grpo": ({"loss_type": "grpo"}, {"loss": "grpo"}),
        "dapo": ({"loss_type": "dapo", "epsilon_high": 0.28}, {"loss": "dapo", "clip_high": 0.28}),
        "dr_grpo": ({"loss_type": "dr_grpo", "scale_rewards": "none"}, {"loss": "dr_grpo"}),
        "gspo": (
            {"loss_type": "grpo", "importance_sampling_level": "sequence"},
            {"loss": "gspo"},
        ),
        "cispo": ({"loss_type": "cispo", "epsilon_high": 2.0}, {"loss": "cispo", "clip_high": 1.0}),
        "batch": (
            {"loss_type": "dapo", "scale_rewards": "batch"},
            {"loss": "dapo", "scale_rewards": "batch"},
        ),
    }
    for name, (trl, ours) in losses.items():
        for tuning in ("full", "lora"):
            for grad_accum in (1, 2):
                yield {
                    "name": f"{name}-{tuning}-{grad_accum}",
                    "tuning": tuning,
                    "grad_accum": grad_accum,
                    "trl": trl,
                    "policy": ours,
                }
    for name in ("grpo", "dapo"):
        trl, ours = losses[name]
        for grad_accum in (1, 2):
            yield {
                "name": f"{name}-divergence-{grad_accum}",
                "tuning": "lora",
                "grad_accum": grad_accum,
                "trl": {**trl, "beta": 0.3},
                "policy": {**ours, "kl_beta": 0.3},
            }
    for name in ("grpo", "dapo"):
        trl, ours = losses[name]
        yield {
            "name": f"{name}-full-divergence",
            "tuning": "full",
            "grad_accum": 1,
            "trl": {**trl, "beta": 0.3},
            "policy": {**ours, "kl_beta": 0.3},
        }
    for temperature in (0.7, 1.3):
        for name, more_trl, more in (
            ("grpo", {}, {}),
            ("dapo", {"beta": 0.3}, {"kl_beta": 0.3}),
            ("gspo", {"num_iterations": 2}, {"inner_steps": 2}),
        ):
            trl, ours = losses[name]
            for tuning in ("full", "lora"):
                yield {
                    "name": f"{name}-{tuning}-at-{temperature}",
                    "tuning": tuning,
                    "grad_accum": 1,
                    "trl": {**trl, **more_trl, "temperature": temperature},
                    "policy": {**ours, **more},
                    "temperature": temperature,
                }
    for name, more_trl, more in (
        ("grpo", {}, {}),
        ("dapo", {"num_iterations": 2}, {"inner_steps": 2}),
        ("gspo", {"temperature": 1.3}, {}),
        ("cispo", {}, {}),
    ):
        trl, ours = losses[name]
        yield {
            "name": f"{name}-importance",
            "tuning": "lora",
            "grad_accum": 1,
            "trl": {
                **trl,
                **more_trl,
                "vllm_importance_sampling_mode": "token_truncate",
                "vllm_importance_sampling_clip_max": 1.2,
            },
            "policy": {**ours, **more, "importance_cap": 1.2},
            "temperature": more_trl.get("temperature", 1.0),
        }
    for name in ("grpo", "gspo", "cispo"):
        trl, ours = losses[name]
        yield {
            "name": f"{name}-inner",
            "tuning": "lora",
            "grad_accum": 1,
            "trl": {**trl, "num_iterations": 2},
            "policy": {**ours, "inner_steps": 2},
        }


def main():
    turns = make_rollouts()
    made = []
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            advantages, curve, weights = train(case, turns, folder)
        made.append({**case, "advantages": advantages, "curve": curve, "weights": weights})
        print(case["name"], [f"{step['loss']:.6f}" for step in curve])
    figures = {
        "steps": STEPS,
        "learning_rate": LEARNING_RATE,
        "adam_epsilon": EPSILON,
        "samples": SAMPLES,
        "longest": LONGEST,
        "turns": turns,
        "cases": made,
    }
    (HERE / "policy_training.json").write_text(json.dumps(figures, indent=0) + "\n")


main()
