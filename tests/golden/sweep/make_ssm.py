#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of workload `ssm`, computed with NumPy and PyTorch: python make_ssm.py > ssm.json

theory: prior mean, curve and asymptote of alpha and w, by whole-matrix conditioning (pinv).
descent: losses after gradient descent in float64 by torch autograd, torch.optim and its schedulers,
from the initial weights 0.3 * init * sin(1 + 1.7 j) + centre, j = 0 .. d - 1.
"""

import json

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def odd_factorial(m):
    return 0.0 if m % 2 else float(np.prod(np.arange(1, m, 2))) if m else 1.0


def rows_of(w, last_only):
    k = len(w[0]) + 1
    if last_only:
        return np.array(w, dtype=float), len(w)
    rows = [np.concatenate([np.array(v)[j:], np.zeros(j)]) for v in w for j in range(k - 1)]
    return np.array(rows), len(w) * k


def theory(p):
    d, alpha, w = p["student_dim"], p["alpha"], p["w"]
    m = np.arange(1, len(w[0]) + 1)
    moment = np.array([odd_factorial(x) for x in range(2 * len(m) + 1)])
    mean = d ** (1 - m / 2) * moment[m] - alpha**m
    pair = m[:, None] + m[None, :]
    cov = d ** (1 - pair / 2) * (moment[pair] - np.outer(moment[m], moment[m]))
    rows, _ = rows_of(w, p.get("calc_loss_only_on_last_output", True))
    gain = cov @ rows.T @ np.linalg.pinv(rows @ cov @ rows.T, rcond=1e-10)
    mean_c, cov_c = mean - gain @ rows @ mean, cov - gain @ rows @ cov
    mu0 = np.where(m == 2, 1.0, 0.0) - alpha**m
    first = np.array(w)[:, 0]
    asymptote = None
    if np.any(first != 0):
        r = np.sum(first * (np.array(w) @ mu0)) / np.sum(first**2)
        asymptote = mu0 @ mu0 - alpha**2 + (r + alpha) ** 2
    return dict(
        prior_mean=mean @ mean + np.trace(cov),
        curve=mean_c @ mean_c + np.trace(cov_c),
        asymptote=asymptote,
    )


def descend(p, centre):
    d, alpha, w = p["student_dim"], p["alpha"], p["w"]
    m = torch.arange(1, len(w[0]) + 1)
    target = alpha**m
    rows, divisor = rows_of(w, p.get("calc_loss_only_on_last_output", True))
    rows = torch.tensor(rows)
    start = 0.3 * p.get("gd_init_scale", 0.01) * np.sin(1 + 1.7 * np.arange(d)) + centre
    a = torch.tensor(start, requires_grad=True)
    lr, epochs = p.get("gd_lr", 1e-3), p["gd_epochs"]
    kind = torch.optim.SGD if p.get("gd_optimizer") == "gd" else torch.optim.Adam
    optimizer = kind([a], lr=lr)
    schedule = {
        "step": lambda: torch.optim.lr_scheduler.StepLR(optimizer, p["step_size"], p["step_gamma"]),
        "exponential": lambda: torch.optim.lr_scheduler.ExponentialLR(optimizer, p["exp_gamma"]),
        "cosine": lambda: torch.optim.lr_scheduler.CosineAnnealingLR(
            optimizer, epochs, eta_min=p["cosine_eta_min"]
        ),
    }.get(p.get("gd_scheduler"), lambda: None)()
    norm = 0.0
    value = None
    for epoch in range(epochs):
        optimizer.zero_grad()
        s = (a[:, None] ** m[None, :]).sum(0) - target
        loss = ((rows @ s) ** 2).sum() / divisor
        loss.backward()
        if epoch % 10 == 0:
            value = dict(loss=float((s**2).sum()), train_loss=float(loss), steps=epoch)
        if p.get("gd_scheduler") == "adaptive":
            norm = 0.8 * norm + 0.2 * float(a.grad.norm())
            optimizer.param_groups[0]["lr"] = lr / (np.sqrt(norm / (1 - 0.8 ** (epoch + 1))) + 1e-6)
        optimizer.step()
        if schedule:
            schedule.step()
    return value


e1, ones, fourth = [[1, 0, 0, 0]], [[1, 1, 1, 1]], [[0, 0, 0, 1]]
two = [[0.3, -1.2, 0.5, 2.0], [1.5, 0.2, -0.7, 0.1]]
long = [[0.5, -1, 2, 0.25, 0, 1, -0.5, 3]]
theories = [
    dict(student_dim=d, alpha=alpha, w=w)
    for d in (1, 7, 150, 301)
    for alpha, w in (
        (0.5, e1),
        (0.5, ones),
        (0.4, fourth),
        (0.6, two),
        (0.5, [[0.01, 0.01, 0.01, 1]]),
    )
]
theories += [
    dict(student_dim=40, alpha=0.7, w=long, sequence_length=9),
    dict(student_dim=40, alpha=0.7, w=[[2.0]], sequence_length=2),
    dict(student_dim=25, alpha=0.5, w=ones, calc_loss_only_on_last_output=False),
    dict(student_dim=25, alpha=0.3, w=two, calc_loss_only_on_last_output=False),
    dict(student_dim=17, alpha=-0.6, w=two),
    dict(student_dim=9, alpha=-0.2, w=[[0, 0, 0, 0]]),
    dict(student_dim=1, alpha=-0.5, w=[[1, 1]], sequence_length=3),
]
base = dict(student_dim=30, alpha=0.5, w=ones, gd_epochs=401)
descents = [
    base,
    base | dict(w=e1, student_dim=150),
    base | dict(w=two, student_dim=7, gd_epochs=995),
    base | dict(w=fourth, gd_init_scale=1.0),
    base | dict(gd_optimizer="gd", gd_lr=1e-2, student_dim=3),
    base | dict(w=long, sequence_length=9, gd_init_scale=0.5),
    base | dict(w=[[2.0]], sequence_length=2),
    base | dict(gd_scheduler="step", step_size=70, step_gamma=0.5),
    base | dict(gd_scheduler="exponential", exp_gamma=0.99),
    base | dict(gd_scheduler="cosine", cosine_eta_min=1e-5),
    base | dict(gd_scheduler="adaptive", gd_optimizer="gd", gd_lr=1e-3, gd_epochs=50),
    base | dict(calc_loss_only_on_last_output=False, student_dim=12),
    base | dict(student_dim=1, alpha=-0.4),
    base | dict(w=[[0, 0, 0, 0]], student_dim=9),
    base
    | dict(
        w=two, student_dim=301, alpha=-0.7, calc_loss_only_on_last_output=False, gd_init_scale=0.3
    ),
    base
    | dict(
        w=[[0, 2, 0, 1]],
        student_dim=17,
        gd_optimizer="gd",
        gd_lr=5e-3,
        gd_scheduler="cosine",
        cosine_eta_min=0,
    ),
    base
    | dict(student_dim=150, gd_scheduler="adaptive", gd_optimizer="adam", gd_lr=1e-4, gd_epochs=61),
]
near_one = [
    base | dict(w=two, student_dim=6, gd_init_scale=0.1),
    base | dict(student_dim=5, gd_init_scale=0.01, gd_epochs=1001),
]


def filled(p):
    return p if len(p["w"]) == 1 else p | dict(num_sequences=len(p["w"]))


print(
    json.dumps(
        dict(
            theory=[dict(parameters=filled(p), **theory(p)) for p in theories],
            descent=[
                dict(parameters=filled(p), centre=c, **descend(p, c))
                for c, group in ((0, descents), (1, near_one))
                for p in group
            ],
        ),
        indent=1,
    )
)
