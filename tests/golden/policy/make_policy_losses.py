# SPDX-License-Identifier: Apache-2.0
"""Makes policy_losses.json: losses, gradients and advantages of TRL's GRPOTrainer and RLOOTrainer on given numbers.

The trainers are TRL's own. Texts, rewards and log-probabilities are put in their place: of the model that trains, of
the model that drew the texts and of the reference, three numbers per token. Each case holds TRL's options, Convoy's
settings, the advantages that TRL computes of the rewards, its loss, and the loss's gradient in the log-probabilities
of the model that trains. Run: python make_policy_losses.py (trl 1.16, transformers 5.24)
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
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TRAIN = HERE.parent / "train"
GROUP, LENGTHS, LONGEST = 3, [4, 1, 3, 2, 5, 3, 1, 2, 2], 7
REWARDS = [1.0, 0.0, 0.25, 0.1, 0.1, 0.1, -0.5, 2.0, 1.0]


def numbers():
    generator = torch.Generator().manual_seed(7)
    shape = (len(LENGTHS), max(LENGTHS))
    drawn = -3 * torch.rand(shape, generator=generator, dtype=torch.float64)
    trained = drawn + 0.5 * torch.randn(shape, generator=generator, dtype=torch.float64)
    reference = drawn + 0.7 * torch.randn(shape, generator=generator, dtype=torch.float64)
    return trained, drawn, reference


def on_numbers(trainer_class):
    class OnNumbers(trainer_class):
        def _generate(self, prompts):
            prompt_ids = [[5, 6]] * len(prompts)
            texts = [[7] * length for length in LENGTHS]
            found = (prompt_ids, texts, ["text"] * len(prompts))
            if trainer_class is RLOOTrainer:
                return found
            return prompt_ids, texts, None, found[2], None, {}, None, []

        def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
            return torch.tensor(REWARDS, dtype=torch.float64)[:, None]

        def _get_per_token_logps_and_entropies(self, model, *args, **kwargs):
            trained, drawn, reference = self.numbers
            if model is self.ref_model:
                values = reference
            else:
                values = trained if torch.is_grad_enabled() else drawn
            return values, torch.zeros_like(values), None

    return OnNumbers


def run(case, folder):
    is_rloo = case["settings"]["loss"] == "rloo"
    trainer_class, config_class = (
        (RLOOTrainer, RLOOConfig) if is_rloo else (GRPOTrainer, GRPOConfig)
    )
    options = dict(case["trl"])
    if not is_rloo:
        options.update(use_bias_correction_kl=False)
    config = config_class(
        output_dir=folder,
        per_device_train_batch_size=len(LENGTHS),
        num_generations=GROUP,
        max_completion_length=LONGEST,
        num_iterations=2,
        report_to="none",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
        **options,
    )
    model = AutoModelForCausalLM.from_pretrained(TRAIN / "qwen2", dtype=torch.float32)
    trainer = on_numbers(trainer_class)(
        model=model,
        args=config,
        reward_funcs=lambda **_: 0.0,
        train_dataset=Dataset.from_list([{"prompt": "a"}] * 3),
        processing_class=AutoTokenizer.from_pretrained(TRAIN / "tokenizer"),
    )
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    trained, drawn, reference = numbers()
    trained.requires_grad_(True)
    trainer.numbers = trained, drawn, reference
    inputs = trainer._generate_and_score_completions([{"prompt": "a"}] * len(LENGTHS))
    loss = trainer._compute_loss(trainer.model, inputs)
    loss.backward()
    return {
        "advantages": inputs["advantages"].tolist(),
        "loss": loss.item(),
        "gradient": flat(trained.grad),
    }


def flat(values):
    return [value for row, length in zip(values, LENGTHS) for value in row[:length].tolist()]


def cases():
    clip = {"epsilon": 0.2, "epsilon_high": 0.3}
    ours = {"clip_low": 0.2, "clip_high": 0.3}
    for loss in ("grpo", "dapo", "dr_grpo", "bnpo"):
        for beta, scale in ((0.0, "group"), (0.3, "none"), (0.04, "batch")):
            yield {
                "trl": {"loss_type": loss, "beta": beta, "scale_rewards": scale, **clip},
                "settings": {"loss": loss, "kl_beta": beta, "scale_rewards": scale, **ours},
            }
    for beta in (0.0, 0.3):
        yield {
            "trl": {
                "loss_type": "grpo",
                "importance_sampling_level": "sequence",
                "beta": beta,
                **clip,
            },
            "settings": {"loss": "gspo", "kl_beta": beta, **ours},
        }
        # TRL's epsilon_high is the largest weight itself; the paper's is added to 1.
        yield {
            "trl": {"loss_type": "cispo", "beta": beta, "epsilon_high": 1.3},
            "settings": {"loss": "cispo", "kl_beta": beta, **ours},
        }
        yield {
            "trl": {"beta": beta, **clip},
            "settings": {"loss": "rloo", "kl_beta": beta, **ours},
        }


def main():
    trained, drawn, reference = numbers()
    found = {
        "group": GROUP,
        "longest_tokens": LONGEST,
        "lengths": LENGTHS,
        "rewards": REWARDS,
        "trained": flat(trained),
        "drawn": flat(drawn),
        "reference": flat(reference),
        "cases": [],
    }
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            found["cases"].append({**case, **run(case, folder)})
        print(case["settings"], found["cases"][-1]["loss"])
    (HERE / "policy_losses.json").write_text(json.dumps(found, indent=1) + "\n")


main()
