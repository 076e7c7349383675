# SPDX-License-Identifier: Apache-2.0
"""Golden file of 8-bit AdamW: the two dynamic maps of bitsandbytes, and the result of its step on a CPU.

usage: make_adamw_8bit.py, from this folder, with torch 2.11 and bitsandbytes 0.50.2 installed
bitsandbytes has no 8-bit optimizer among its operators for CPUs. The reference in its Triton backend
(optimizer_update_8bit_blockwise_pytorch) is plain torch and runs on a CPU.
Gradients and initial values are words of convoy/model/kernels/counter_draws/counter_hash.h, so the file need
not contain them.
"""

import json
import os

os.environ["TORCHDYNAMO_DISABLE"] = "1"

import torch
from bitsandbytes.backends.triton.kernels_optim import optimizer_update_8bit_blockwise_pytorch
from bitsandbytes.functional import create_dynamic_map

STEPS = 30
KEPT = (1, 2, 10, 30)
SETTINGS = {
    "beta1": 0.9,
    "beta2": 0.98,
    "epsilon": 1e-7,
    "weight_decay": 0.05,
    "learning_rate": 1e-2,
}
LOW = 0xFFFFFFFF


def mix(word):
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & LOW
    word = ((word ^ (word >> 15)) * 0xD35A2D97) & LOW
    return word ^ (word >> 15)


def words(key, count):
    index = torch.arange(count, dtype=torch.int64)
    return mix(mix(index ^ (key & LOW)) ^ (key >> 32))


def numbers(key, count):
    """Numbers of 24 bits in [-1, 1)."""
    return ((words(key, count) >> 8).float() - 2.0**23) / 2.0**23


def gradient(step, count):
    scale = 1e-3 * (3.0 if step % 3 == 0 else 1.0)
    found = numbers((step << 32) + 7, count) * scale
    found[256:512] = 0  # a block whose gradients are 0
    found[600:610] *= 1e-4
    return found


def coded_case(count):
    value = numbers(3, count)
    state1, state2 = (torch.zeros(count, dtype=torch.uint8) for _ in range(2))
    blocks = (count + 255) // 256
    absmax1, absmax2 = torch.zeros(blocks), torch.zeros(blocks)
    qmap1, qmap2 = create_dynamic_map(signed=True), create_dynamic_map(signed=False)
    case = {"count": count, "kept": []}
    for step in range(1, STEPS + 1):
        optimizer_update_8bit_blockwise_pytorch(
            value,
            gradient(step, count),
            state1,
            state2,
            SETTINGS["beta1"],
            SETTINGS["beta2"],
            0.0,
            0.0,
            SETTINGS["epsilon"],
            step,
            SETTINGS["learning_rate"],
            qmap1,
            qmap2,
            absmax1,
            absmax2,
            SETTINGS["weight_decay"],
            1.0,
            False,
            optimizer_name="adam",
        )
        if step in KEPT:
            case["kept"].append(
                {
                    "step": step,
                    "exp_avg": bytes(state1.tolist()).hex(),
                    "exp_avg_sq": bytes(state2.tolist()).hex(),
                    "exp_avg_scale": absmax1.tolist(),
                    "exp_avg_sq_scale": absmax2.tolist(),
                }
            )
    case["value"] = value.tolist()
    return case


if __name__ == "__main__":
    torch.set_num_threads(1)
    with open("adamw_8bit.json", "w") as file:
        json.dump(
            {
                "settings": SETTINGS,
                "steps": STEPS,
                "signed": create_dynamic_map(signed=True).tolist(),
                "unsigned": create_dynamic_map(signed=False).tolist(),
                "coded": coded_case(4396),
            },
            file,
        )
        file.write("\n")
