#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of workload `mf`, computed with NumPy and PyTorch: python make_mf.py > mf.json

data: matrices to learn and measurements, by rows.
forward: Y and losses of the guesses' model for the weights 1.5 sin(1 + 1.7 k + 0.31 l). Weight k of layer l is counted by
output unit, then by input. The test loss uses a basis of the complement from a complete QR decomposition.
guesses: acceptance and mean losses over NumPy's own random weights, with their standard errors.
descent: losses by torch autograd in float64 and the GroupRMSprop of this file, from the initial weights scale / sqrt(inputs)
sin(2 + 1.3 k + 0.7 l), after the update of the last epoch that is divisible by the period.
"""

import json

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
rng = np.random.default_rng(11)


def make_data(n_rows, n_cols, rank, count, completion=False):
    truth = rng.standard_normal((n_rows, rank)) @ rng.standard_normal((rank, n_cols))
    truth = np.round(truth / np.linalg.norm(truth), 7)
    if completion:
        a = np.eye(n_rows * n_cols)[rng.permutation(n_rows * n_cols)[:count]]
    else:
        a = rng.standard_normal((count, n_rows * n_cols))
        a = np.round(a / np.linalg.norm(a, axis=1, keepdims=True), 7)
    return dict(
        n_rows=n_rows,
        n_cols=n_cols,
        num_measurements=count,
        truth=truth.ravel().tolist(),
        measurements=a.tolist(),
    )


DATA = [
    make_data(5, 5, 1, 15),
    make_data(5, 5, 2, 22),
    make_data(3, 4, 1, 5),
    make_data(5, 5, 1, 15, completion=True),
    make_data(9, 2, 1, 6),
]


def losses(data, y):
    """The training loss and the test loss of y [..., entries]."""
    a, truth = np.array(data["measurements"]), np.array(data["truth"])
    q, _ = np.linalg.qr(a.T, mode="complete")
    basis = q[:, np.linalg.matrix_rank(a) :].T
    train = ((y @ a.T - a @ truth) ** 2).mean(-1)
    return train, ((y @ basis.T - basis @ truth) ** 2).mean(-1)


def phi(x, p):
    kind = p.get("activation", "Linear")
    if kind == "Tanh":
        return np.tanh(x)
    return np.where(x > 0, x, p.get("negative_slope", 0.2) * x) if kind == "LeakyReLU" else x


def fans(p, data):
    units = [data["n_rows"]] + [p["width"]] * (p["depth"] - 1) + [data["n_cols"]]
    return list(zip(units[:-1], units[1:]))


def guess(p, data, weights):
    """Y of the guesses. `weights`: for each layer [guess, input, unit]."""
    y = np.broadcast_to(
        np.eye(data["n_rows"], dtype=weights[0].dtype),
        (len(weights[0]), data["n_rows"], data["n_rows"]),
    )
    for at, w in enumerate(weights):
        y = y @ w / np.sqrt(np.array(w.shape[-1], dtype=w.dtype))
        if at + 1 < len(weights):
            y = phi(y, p)
    y = y.reshape(len(y), -1)
    if p.get("gnc_normalize"):
        y = y / (np.linalg.norm(y, axis=1, keepdims=True) + p.get("gnc_softening", 1e-6))
    return y


def forward(p, at):
    data = DATA[at]
    weights = []
    for layer, (inputs, units) in enumerate(fans(p, data)):
        flat = 1.5 * np.sin(1 + 1.7 * np.arange(units * inputs) + 0.31 * layer)
        weights.append(flat.reshape(units, inputs).T[None])
    y = guess(p, data, weights)
    train, test = losses(data, y)
    return dict(
        parameters=p, data=at, y=y[0].tolist(), train_loss=float(train[0]), loss=float(test[0])
    )


def simulate(p, at, total=1_000_000):
    data = DATA[at]
    weights = sum(i * u for i, u in fans(p, data))
    batch = min(50_000, 10_000_000 // weights)
    kept, prior, done = [], [], 0
    while done < total:
        drawn = []
        for inputs, units in fans(p, data):
            shape = (batch, inputs, units)
            drawn.append(
                rng.standard_normal(shape, dtype=np.float32)
                if p.get("gnc_init", "gauss") == "gauss"
                else 2 * rng.random(shape, dtype=np.float32) - 1
            )
        train, test = losses(data, guess(p, data, drawn).astype(np.float64))
        kept.append(test[train < p["gnc_eps_train"]])
        prior.append(test)
        done += batch
    kept, prior = np.concatenate(kept), np.concatenate(prior)
    return dict(
        parameters=p,
        data=at,
        guesses=done,
        accepted=len(kept),
        loss=kept.mean(),
        loss_error=kept.std() / np.sqrt(len(kept)),
        prior_mean=prior.mean(),
        prior_error=prior.std() / np.sqrt(len(prior)),
    )


def descend(p, at):
    data = DATA[at]
    a, truth = torch.tensor(data["measurements"]), torch.tensor(data["truth"])
    b = a @ truth
    weights = []
    for layer, (inputs, units) in enumerate(fans(p, data)):
        flat = np.sin(2 + 1.3 * np.arange(units * inputs) + 0.7 * layer)
        flat = p["gd_init_scale"] / np.sqrt(inputs) * flat
        weights.append(torch.tensor(flat.reshape(units, inputs).T.copy(), requires_grad=True))

    def output():
        y = torch.eye(data["n_rows"])
        for layer, w in enumerate(weights):
            y = y @ w
            if layer + 1 < len(weights):
                if p.get("activation") == "Tanh":
                    y = torch.tanh(y)
                if p.get("activation") == "LeakyReLU":
                    y = torch.nn.functional.leaky_relu(y, p.get("negative_slope", 0.2))
        return y.ravel()

    average, value = 0.0, None
    velocity = [torch.zeros_like(w) for w in weights]
    momentum = p.get("gd_momentum", 0) if p.get("gd_apply_momentum", True) else 0
    for epoch in range(p["gd_epochs"]):
        gradients = torch.autograd.grad(((a @ output() - b) ** 2).mean(), weights)
        average = 0.99 * average + 0.01 * sum(float((g**2).sum()) for g in gradients)
        step = p["gd_lr"] / (np.sqrt(average / (1 - 0.99 ** (epoch + 1))) + 1e-6)
        with torch.no_grad():
            for w, g, v in zip(weights, gradients, velocity):
                v.mul_(momentum).add_(g)
                w -= step * v
            if epoch % p["gd_log_period"] == 0:
                train, test = losses(data, output().numpy())
                value = dict(loss=float(test), train_loss=float(train), steps=epoch + 1)
    return dict(parameters=p, data=at, **value)


base = dict(width=5, depth=2)
tanh, leaky = dict(activation="Tanh"), dict(activation="LeakyReLU")
shapes = [
    (base, 0),
    (base | tanh | dict(width=11), 0),
    (base | leaky | dict(width=8, negative_slope=0.1), 1),
    (dict(width=4, depth=1), 0),
    (base | dict(depth=5, gnc_normalize=True), 0),
    (base | tanh | dict(depth=4, width=7), 2),
    (base | leaky | dict(depth=3, gnc_normalize=True), 2),
    (base | dict(width=1), 2),
    (base | tanh | dict(width=300), 2),
    (base | leaky | dict(width=21), 4),
    (base | tanh | dict(depth=3, width=3, gnc_normalize=True, gnc_softening=0.1), 4),
]
guesses = [
    (base | dict(gnc_eps_train=0.05), 0),
    (base | dict(width=20, gnc_eps_train=0.05), 0),
    (base | tanh | dict(gnc_eps_train=0.05), 0),
    (base | leaky | dict(width=12, gnc_eps_train=0.03), 0),
    (base | dict(depth=4, gnc_normalize=True, gnc_eps_train=0.01), 0),
    (base | tanh | dict(depth=3, width=8, gnc_normalize=True, gnc_eps_train=0.02), 0),
    (base | leaky | dict(depth=3, width=9, gnc_eps_train=0.02), 0),
    (base | dict(gnc_eps_train=0.06), 1),
    (base | dict(width=10, gnc_init="unif", gnc_eps_train=0.02), 0),
    (base | tanh | dict(gnc_init="unif", gnc_eps_train=0.02), 0),
    (base | leaky | dict(gnc_init="unif", width=6, gnc_eps_train=0.02), 0),
    (base | dict(width=3, gnc_eps_train=0.01), 2),
    (base | tanh | dict(width=14, depth=3, gnc_eps_train=0.02), 2),
    (base | dict(gnc_eps_train=0.05), 3),
    (base | leaky | dict(width=13, gnc_eps_train=0.05), 4),
]
gd = dict(gd_lr=1e-3, gd_init_scale=0.1, gd_epochs=801, gd_log_period=100)
descents = [
    (base | gd, 0),
    (base | gd | tanh | dict(width=12), 0),
    (base | gd | leaky | dict(negative_slope=0.3), 0),
    (base | gd | dict(gd_momentum=0.9), 0),
    (base | gd | dict(gd_momentum=0.9, gd_apply_momentum=False), 0),
    (base | gd | dict(depth=4, gd_init_scale=0.5, gd_epochs=777, gd_log_period=50), 1),
    (base | gd | tanh | dict(depth=3, gd_init_scale=2.0, gd_momentum=0.5), 2),
    (dict(width=4, depth=1) | gd, 2),
    (base | gd | leaky | dict(width=7, depth=3, gd_init_scale=1.0), 4),
    (base | gd | dict(gd_epochs=1), 3),
    (base | gd | tanh | dict(gd_init_scale=1e-6, gd_epochs=150, gd_log_period=7), 3),
]
print(
    json.dumps(
        dict(
            data=DATA,
            forward=[forward(*one) for one in shapes],
            guesses=[simulate(*one) for one in guesses],
            descent=[descend(*one) for one in descents],
        )
    ).replace('{"parameters"', '\n{"parameters"')
)
