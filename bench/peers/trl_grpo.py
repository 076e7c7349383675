# SPDX-License-Identifier: Apache-2.0
"""Learns from rewards with TRL's GRPOTrainer, for bench/grpo.py: trl_grpo.py MODEL ROWS PROMPT full|lora PROBLEMS SAMPLES
NEW_TOKENS LOSS STEPS THREADS.

The problems in order, plain prompts, transformers' generation, no checkpoints. The reward is 1 for a text whose number behind
"####" is the reference's. Prints {"seconds": of each step after the first, "tokens": mean tokens of a text in those steps,
"rewards": of all steps}.
"""

import json
import os
import sys
import tempfile
import time
import warnings

os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", WANDB_DISABLED="true")
warnings.filterwarnings("ignore")
import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from peft import LoraConfig, get_peft_model  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

TEXT_END = "<|endoftext|>"  # of plain texts of tally-3m


class Clock(TrainerCallback):
    def __init__(self):
        self.begin, self.seconds = 0.0, []

    def on_step_begin(self, *_, **__):
        self.begin = time.perf_counter()

    def on_step_end(self, *_, **__):
        self.seconds.append(time.perf_counter() - self.begin)


def number_in(text):
    return text.rsplit("####", 1)[-1].strip() if "####" in text else None


def is_right(completions, answer, **_):
    return [float(number_in(text) == number_in(gold)) for text, gold in zip(completions, answer)]


def load(folder, tuning):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.eos_token = TEXT_END
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    if tuning == "lora":
        lora = LoraConfig(
            r=16,
            lora_alpha=32,
            lora_dropout=0.0,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )
        model = get_peft_model(model, lora)
    return model, tokenizer


def main():
    folder, rows, prompt, tuning, problems, samples, new_tokens, loss, steps, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    model, tokenizer = load(folder, tuning)
    with open(prompt) as file:
        form = file.read().removesuffix("\n")
    with open(rows) as lines:
        data = [json.loads(line) for line in lines]
    clock = Clock()
    with tempfile.TemporaryDirectory() as output:
        config = GRPOConfig(
            output_dir=output,
            max_steps=int(steps),
            per_device_train_batch_size=int(problems) * int(samples),
            num_generations=int(samples),
            max_completion_length=int(new_tokens),
            temperature=1.0,
            loss_type=loss,
            beta=0.0,
            learning_rate=1e-6,
            lr_scheduler_type="constant",
            weight_decay=0.0,
            logging_steps=1,
            report_to="none",
            use_cpu=True,
            bf16=False,
            save_strategy="no",
            gradient_checkpointing=False,
            shuffle_dataset=False,
            disable_tqdm=True,
        )
        trainer = GRPOTrainer(
            model=model,
            args=config,
            reward_funcs=is_right,
            train_dataset=Dataset.from_list(
                [
                    {
                        "prompt": form.replace("{{ problem }}", row["question"]),
                        "answer": row["answer"],
                    }
                    for row in data
                ]
            ),
            processing_class=tokenizer,
            callbacks=[clock],
        )
        trainer.train()
    logs = [entry for entry in trainer.state.log_history if "reward" in entry]
    lengths = [entry["completions/mean_length"] for entry in logs[1:]]
    print(
        json.dumps(
            {
                "seconds": clock.seconds[1:],
                "tokens": sum(lengths) / len(lengths),
                "rewards": [entry["reward"] for entry in logs],
            }
        )
    )


if __name__ == "__main__":
    main()
