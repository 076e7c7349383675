# SPDX-License-Identifier: Apache-2.0
"""Golden files of convoy/train/optim: learning rates of transformers' schedules, AdamW of torch.

usage: make_optim.py, from this folder, with torch 2.11 and transformers 5 installed
"""

import json
import math

import torch
from transformers.optimization import get_scheduler

PEAK = 3e-4


def rates(name, total, warmup, kwargs):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=PEAK)
    scheduler = get_scheduler(name, optimizer, warmup, total, scheduler_specific_kwargs=kwargs)
    values = []
    for _ in range(total + 1):
        values.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return values


def schedule_cases():
    cases = []
    for total in (1, 7, 50):
        for ratio in (0.0, 0.06, 0.3):
            warmup = math.ceil(total * ratio)
            decay = math.ceil(total * 0.1)
            variants = [
                ("linear", {}, {}),
                ("cosine", {}, {}),
                ("cosine", {"num_cycles": 1.5}, {"num_cycles": 1.5}),
                ("cosine_with_restarts", {}, {}),
                ("cosine_with_restarts", {"num_cycles": 3}, {"num_cycles": 3}),
                ("constant", {}, {}),
                ("constant_with_warmup", {}, {}),
                ("inverse_sqrt", {}, {}),
                ("cosine_with_min_lr", {"min_lr_rate": 0.1}, {"min_lr_ratio": 0.1}),
                ("warmup_stable_decay", {"num_decay_steps": decay}, {}),
                (
                    "warmup_stable_decay",
                    {"num_decay_steps": decay, "min_lr_ratio": 0.2},
                    {"min_lr_ratio": 0.2},
                ),
            ]
            if warmup < total:
                variants.append(("polynomial", {}, {}))
                variants.append(
                    ("polynomial", {"lr_end": 1e-5, "power": 2.0}, {"lr_end": 1e-5, "power": 2.0})
                )
            for name, kwargs, settings in variants:
                cases.append(
                    {
                        "name": name,
                        "total": total,
                        "warmup_ratio": ratio,
                        "settings": settings,
                        "rates": rates(name, total, warmup, kwargs),
                    }
                )
    return cases


def adamw_case():
    torch.manual_seed(0)
    start = [torch.randn(3, 5), torch.randn(7)]
    parameters = [torch.nn.Parameter(value.clone()) for value in start]
    optimizer = torch.optim.AdamW(
        [
            {"params": parameters[:1], "weight_decay": 0.05},
            {"params": parameters[1:], "weight_decay": 0.0},
        ],
        lr=1e-2,
        betas=(0.9, 0.98),
        eps=1e-7,
        foreach=False,
        fused=False,
    )
    gradients, values = [], []
    for step in range(20):
        gradients.append([torch.randn_like(value) * (0.1 if step % 3 else 3.0) for value in start])
        for parameter, gradient in zip(parameters, gradients[-1]):
            parameter.grad = gradient.clone()
        optimizer.step()
        values.append([parameter.detach().flatten().tolist() for parameter in parameters])
    return {
        "start": [value.flatten().tolist() for value in start],
        "values": values,
        "gradients": [[gradient.flatten().tolist() for gradient in step] for step in gradients],
    }


def clip_cases():
    torch.manual_seed(1)
    cases = []
    for scale in (1e-4, 1.0, 50.0):
        parameters = [torch.nn.Parameter(torch.zeros(11)), torch.nn.Parameter(torch.zeros(4))]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter) * scale
        before = [parameter.grad.tolist() for parameter in parameters]
        norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        cases.append(
            {
                "gradients": before,
                "norm": float(norm),
                "clipped": [parameter.grad.tolist() for parameter in parameters],
            }
        )
    return cases


if __name__ == "__main__":
    with open("optim.json", "w") as file:
        json.dump(
            {
                "peak": PEAK,
                "schedules": schedule_cases(),
                "adamw": adamw_case(),
                "clip": clip_cases(),
            },
            file,
        )
        file.write("\n")
