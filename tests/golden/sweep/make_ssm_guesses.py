#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates guess-and-check on `ssm` with NumPy, without Convoy: python make_ssm_guesses.py > ssm_guesses.json

For each case: the number of `guesses` that passed, the mean and variance of their losses, and the mean and variance of the losses of all guesses. Students
and teachers are run over their input sequences step by step; the closed form of the training loss is not used.
"""

import json
import sys

import numpy as np

rng = np.random.default_rng(20251109)


def teacher_states(p):
    """The states A, the weights B_j C_j, and the constant that is added to T_0."""
    rank, d = p.get("teacher_rank", 1), p["student_dim"]
    if rank == 1:
        return np.array([p["alpha"]]), np.array([1.0]), d - 1.0  # T_0 is d for every teacher
    states = np.full(rank, p["teacher_mean"])
    weights = np.full(rank, (d - 1) / (max(rank, 2) - 1))
    weights[0] = 1
    return states, weights, 0.0


def sequences_of(p):
    k = p.get("sequence_length", 5)
    w = [[1.0] + [0.0] * (k - 2)] if p.get("input_e1") else p["w"]
    if not isinstance(w[0], list):
        w = [w]
    # w is the reversed input without its last step, on which the loss does not depend.
    return [np.concatenate([np.array(row[::-1], dtype=float), [0.7]]) for row in w]


def responses(a, weights, constant, x):
    """Outputs at all times of y_T = sum_t sum_j weights_j a_j^(T - t) x_t + constant x_T, one row of `a` per system."""
    state, outputs = np.zeros_like(a), []
    for value in x:
        state = a * state + value
        outputs.append((state * weights).sum(-1) + constant * value)
    return np.stack(outputs, -1)


def simulate(p, guesses):
    d, k = p["student_dim"], p.get("sequence_length", 5)
    states, weights, constant = teacher_states(p)
    inputs = sequences_of(p)
    impulse = np.eye(k)[0]
    teacher = responses(states[None], weights, constant, impulse)[0]
    wanted = [responses(states[None], weights, constant, x)[0] for x in inputs]
    accepted, losses, everything = 0, [], []
    chunk = max(1, 3_000_000 // d)
    for done in range(0, guesses, chunk):
        a = rng.standard_normal((min(chunk, guesses - done), d)) * p.get("prior_sd", d**-0.5)
        train = 0
        for x, y in zip(inputs, wanted):
            square = (responses(a, 1.0, 0.0, x) - y) ** 2
            train = train + (
                square[:, -1] if p.get("calc_loss_only_on_last_output", True) else square.mean(-1)
            ) / len(inputs)
        loss = ((responses(a, 1.0, 0.0, impulse) - teacher) ** 2).sum(-1)
        passed = train < p["eps_train"]
        accepted += int(passed.sum())
        losses.append(loss[passed])
        everything.append([loss.sum(), (loss**2).sum()])
    losses = np.concatenate(losses)
    total, square = np.sum(everything, 0) / guesses
    return dict(
        parameters=p,
        guesses=guesses,
        accepted=accepted,
        loss=losses.mean(),
        loss_variance=losses.var(ddof=1),
        prior_mean=total,
        prior_variance=square - total**2,
    )


def case(d, eps, guesses=400_000, **more):
    return dict(student_dim=d, eps_train=eps, **more), guesses


TWO = [[0.3, -1.2, 0.5, 2.0], [1.5, 0.2, -0.7, 0.1]]
CASES = [
    case(1, 1e-2, alpha=0.5, w=[1, 1, 1, 1]),
    case(1, 1e-2, alpha=-0.4, w=[0.5, -1, 2, 1]),
    case(2, 1e-2, alpha=0.5, w=[1, 0, 0, 0]),
    case(3, 1e-2, alpha=-0.6, w=[1, 1, 1, 1]),
    case(4, 1e-2, alpha=0.5, w=[0.01, 0.01, 0.01, 1]),
    case(5, 1e-2, alpha=0.5, w=[0, 0, 0, 1]),
    case(6, 1e-2, alpha=0.5, w=[0, 1, 0, 0]),
    case(7, 1e-2, alpha=0.8, w=[0.3, 0, -2, 0]),
    case(7, 1e-2, alpha=0.5, input_e1=True),
    case(9, 1e-2, alpha=0.5, w=[0, 0, 0, 0]),
    case(17, 1e-2, alpha=0.3, w=[-1, 0.5, 0.25, 3]),
    case(17, 5e-2, alpha=0.5, w=TWO, num_sequences=2),
    case(3, 5e-2, alpha=-0.5, w=TWO, num_sequences=2),
    case(17, 1e-1, alpha=0.5, w=[[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]], num_sequences=3),
    case(11, 2e-2, alpha=0.5, w=[1, 1, 1, 1], calc_loss_only_on_last_output=False),
    case(8, 5e-2, alpha=0.4, w=TWO, num_sequences=2, calc_loss_only_on_last_output=False),
    case(13, 1e-2, alpha=0.5, w=[2.0], sequence_length=2),
    case(13, 1e-2, alpha=-0.5, w=[1, 0.5], sequence_length=3),
    case(13, 1e-2, alpha=0.7, w=[0.5, -1, 2, 0.25, 0, 1, -0.5, 3], sequence_length=9),
    case(
        6,
        5e-2,
        alpha=0.7,
        w=[0.5, -1, 2, 0.25, 0, 1, -0.5, 3],
        sequence_length=9,
        calc_loss_only_on_last_output=False,
    ),
    case(4, 1e-1, teacher_rank=2, teacher_mean=0.5, teacher_sd=0, w=[1, 0, 0, 0]),
    case(5, 1e-1, teacher_rank=3, teacher_mean=0.3, teacher_sd=0, w=[1, 1, 1, 1]),
    case(8, 1e-1, teacher_rank=4, teacher_mean=0.2, teacher_sd=0, w=[0.5, 1, 0, -1]),
    case(
        5,
        5e-2,
        teacher_rank=2,
        teacher_mean=-0.3,
        teacher_sd=0,
        w=TWO,
        num_sequences=2,
        prior_sd=0.6,
    ),
    case(3, 1e-2, alpha=0.5, w=[1, 0.5], sequence_length=3, prior_sd=1),
    case(150, 1e-3, alpha=0.5, w=[1, 1, 1, 1]),
    case(150, 1e-2, alpha=-0.5, w=[0.5, 1, -1, 0]),
    case(151, 1e-2, alpha=0.5, w=[[1, 0, 0, 0], [0.5, 0, 0.4, 0]], num_sequences=2),
    case(300, 1e-3, alpha=0.5, w=[0.01, 0.01, 0.01, 1], guesses=200_000),
]

results = []
for parameters, count in CASES:
    results.append(simulate(parameters, count))
    print(len(results), results[-1], file=sys.stderr)
print("[\n" + ",\n".join(json.dumps(each) for each in results) + "\n]")
