# SPDX-License-Identifier: Apache-2.0
"""Trains on preferences with TRL's DPOTrainer, for bench/preferences.py: trl_dpo.py MODEL ROWS full|lora PAIRS STEPS THREADS.

Takes the rows in order, writes no checkpoints, and logs one line. The log-probabilities of the reference are computed before the first step,
as in Convoy. Prints {"seconds", of each step after the first two, "losses", of all steps}.
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
from trl import DPOConfig, DPOTrainer  # noqa: E402


class Clock(TrainerCallback):
    def __init__(self):
        self.begin, self.seconds = 0.0, []

    def on_step_begin(self, *_, **__):
        self.begin = time.perf_counter()

    def on_step_end(self, *_, **__):
        self.seconds.append(time.perf_counter() - self.begin)


def main():
    folder, rows, tuning, pairs, steps, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if tuning == "lora":
        model = get_peft_model(
            model,
            LoraConfig(
                r=16,
                lora_alpha=32,
                lora_dropout=0.0,
                target_modules="all-linear",
                task_type="CAUSAL_LM",
            ),
        )
    clock = Clock()
    with tempfile.TemporaryDirectory() as output, open(rows) as lines:
        config = DPOConfig(
            output_dir=output,
            max_steps=int(steps),
            per_device_train_batch_size=int(pairs),
            learning_rate=1e-4,
            lr_scheduler_type="constant",
            weight_decay=0.0,
            max_length=256,
            logging_steps=1,
            report_to="none",
            use_cpu=True,
            bf16=False,
            save_strategy="no",
            gradient_checkpointing=False,
            train_sampling_strategy="sequential",
            disable_tqdm=True,
            precompute_ref_log_probs=True,
        )
        trainer = DPOTrainer(
            model=model,
            args=config,
            train_dataset=Dataset.from_list([json.loads(line) for line in lines]),
            processing_class=AutoTokenizer.from_pretrained(folder),
            callbacks=[clock],
        )
        trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    print(json.dumps({"seconds": clock.seconds[2:], "losses": losses}))


if __name__ == "__main__":
    main()
