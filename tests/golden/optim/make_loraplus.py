# SPDX-License-Identifier: Apache-2.0
"""Golden file of LoRA+: the learning rate and the decay that PEFT gives to each parameter of an adapter.

usage: make_loraplus.py, from this folder, with torch 2.11, transformers 5 and peft 0.20 installed
"""

import json

import torch
from peft import LoraConfig, get_peft_model
from peft.optimizers import create_loraplus_optimizer
from transformers import LlamaConfig, LlamaForCausalLM

RATIO = 16.0
DECAY = 0.05


def groups(**lora):
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=False,
    )
    model = get_peft_model(LlamaForCausalLM(config), LoraConfig(r=4, task_type="CAUSAL_LM", **lora))
    optimizer = create_loraplus_optimizer(
        model, torch.optim.AdamW, lr=1.0, loraplus_lr_ratio=RATIO, loraplus_weight_decay=DECAY
    )
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [
        {
            "name": names[id(parameter)].replace(".default", ""),
            "dims": parameter.ndim,
            "rate": group["lr"],
            "decay": group["weight_decay"],
        }
        for group in optimizer.param_groups
        for parameter in group["params"]
    ]


if __name__ == "__main__":
    cases = [
        groups(target_modules="all-linear"),
        groups(target_modules="all-linear", use_dora=True),
        groups(target_modules=["q_proj", "down_proj"], modules_to_save=["lm_head"]),
    ]
    with open("loraplus.json", "w") as file:
        json.dump({"ratio": RATIO, "decay": DECAY, "cases": cases}, file, indent=1)
        file.write("\n")
