"""Writes deepspeed_schedules.json: DeepSpeed's learning rates, update by update.

Run with deepspeed 0.19.8 and torch 2.11 installed. The schedulers are called as DeepSpeed's engine calls them: made
before the first update, and stepped after each update.
"""

import json
from pathlib import Path

import torch
from deepspeed.runtime.lr_schedules import WarmupCosineLR, WarmupDecayLR, WarmupLR

PEAK = 3e-4
UPDATES = 24


def rates_of(make):
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    scheduler = make(optimizer)
    rates = []
    for _ in range(UPDATES):
        rates.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    return rates


def main():
    schedules = []
    for warmup in (1, 2, 5, 30):
        for kind in ("log", "linear"):
            for total in (20, 4):
                for low in (0.0, 1e-5):
                    common = {"warmup_steps": warmup, "warmup_type": kind, "warmup_min_lr": low}
                    named = {
                        "warmup_num_steps": warmup,
                        "warmup_type": kind,
                        "warmup_min_lr": low,
                        "warmup_max_lr": PEAK,
                    }
                    schedules.append(
                        {
                            "name": "warmup_lr",
                            "total": total,
                            "settings": common,
                            "rates": rates_of(lambda o: WarmupLR(o, **named)),
                        }
                    )
                    schedules.append(
                        {
                            "name": "warmup_decay_lr",
                            "total": total,
                            "settings": common,
                            "rates": rates_of(lambda o: WarmupDecayLR(o, total, **named)),
                        }
                    )
                for start, end in ((0.0, 1e-4), (0.1, 0.2)):
                    settings = {
                        "warmup_steps": warmup,
                        "warmup_type": kind,
                        "warmup_min_ratio": start,
                        "min_lr_ratio": end,
                    }
                    schedules.append(
                        {
                            "name": "warmup_cosine_lr",
                            "total": total,
                            "settings": settings,
                            "rates": rates_of(
                                lambda o: WarmupCosineLR(o, total, start, warmup, end, kind)
                            ),
                        }
                    )
    path = Path(__file__).with_name("deepspeed_schedules.json")
    path.write_text(json.dumps({"peak": PEAK, "schedules": schedules}) + "\n")


main()
