#!/usr/bin/env python3
"""Writes network.safetensors and cosine_by_epoch.json: the results of torch for the classifier of sensor windows.

The network is that of the example, narrower: 9 channels together, three stages, a head of one hidden layer, no dropout.
Steps: AdamW with decay of weights only, clipped gradients, labels smoothed by 0.1. A norm follows the biases of
convolutions, so their gradient is zero except for rounding. AdamW would follow that rounding, so these biases are not
trained.

usage: make_signals.py FOLDER        (torch 2.11, safetensors 0.8)
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn

WIDTHS, KERNELS, HIDDEN, CLASSES, CHANNELS, ROWS, WINDOWS = (8, 16, 24), (5, 5, 3), 20, 6, 9, 40, 12
STEPS, LR, DECAY, CLIP, SMOOTHING = 4, 1e-2, 1e-2, 0.5, 0.1


def make_network():
    layers, channels = [], CHANNELS
    for stage, (width, kernel) in enumerate(zip(WIDTHS, KERNELS)):
        layers += [
            nn.Conv1d(channels, width, kernel, padding=kernel // 2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        ]
        layers += [nn.AdaptiveAvgPool1d(1) if stage + 1 == len(WIDTHS) else nn.MaxPool1d(2)]
        channels = width
    layers += [nn.Flatten(), nn.Linear(channels, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)]
    return nn.Sequential(*layers)


def convoy_names(net):
    names = {}
    for stage in range(len(WIDTHS)):
        names[f"{4 * stage}"] = f"encoder.{stage}.conv"
        names[f"{4 * stage + 1}"] = f"encoder.{stage}.norm"
    names["13"], names["15"] = "classifier.0", "classifier.1"
    found = {}
    for name, _value in net.state_dict().items():
        module, leaf = name.split(".")
        if leaf != "num_batches_tracked":
            found[name] = f"{names[module]}.{leaf}"
    return found


def snapshot(out, prefix, net, names):
    for name, value in net.state_dict().items():
        if name in names:
            out[f"{prefix}.{names[name]}"] = value.detach().clone()


def network(folder):
    torch.set_num_threads(1)
    torch.manual_seed(42)
    net = make_network()
    names = convoy_names(net)
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(WINDOWS, CHANNELS, ROWS, generator=draw)
    y = torch.randint(0, CLASSES, (WINDOWS,), generator=draw)
    out = {"x": x.transpose(1, 2).contiguous(), "y": y}
    snapshot(out, "start", net, names)
    net.eval()
    out["scores.eval"] = net(x).detach()
    net.train()
    loss_of = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    decays = [p for n, p in net.named_parameters() if n.endswith("weight") and p.dim() > 1]
    others = [p for n, p in net.named_parameters() if not (n.endswith("weight") and p.dim() > 1)]
    conv_biases = [net[4 * stage].bias for stage in range(len(WIDTHS))]
    optimizer = torch.optim.AdamW(
        [{"params": decays, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}], LR
    )
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        scores = net(x)
        loss = loss_of(scores, y)
        loss.backward()
        for bias in conv_biases:
            bias.grad.zero_()
        if step == 0:
            out["scores.train"] = scores.detach()
            for name, parameter in net.named_parameters():
                out[f"gradient.{names[name]}"] = parameter.grad.clone()
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), CLIP).item())
        losses.append(loss.item())
        optimizer.step()
    out["losses"] = torch.tensor(losses, dtype=torch.float64)
    out["norms"] = torch.tensor(norms, dtype=torch.float64)
    snapshot(out, "end", net, names)
    net.eval()
    out["scores.end"] = net(x).detach()
    save_file(out, folder / "network.safetensors")


def schedules(folder):
    cases = []
    for lr, epochs, warmup, floor in [
        (1e-3, 20, 2, 1e-6),
        (4e-3, 20, 3, 1e-6),
        (1e-3, 5, 0, 1e-6),
        (8e-3, 30, 5, 1e-4),
        (1e-3, 2, 2, 1e-6),
    ]:
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(
            optimizer, T_max=max(1, epochs - warmup), eta_min=floor
        )
        rates = [lr * (epoch + 1) / warmup for epoch in range(min(warmup, epochs))]
        for _ in range(epochs - warmup):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            cosine.step()
        cases.append(
            {
                "learning_rate": lr,
                "epochs": epochs,
                "warmup_epochs": warmup,
                "min_lr": floor,
                "rates": rates,
            }
        )
    (folder / "cosine_by_epoch.json").write_text(json.dumps(cases, indent=1) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    network(folder)
    schedules(folder)


main()
