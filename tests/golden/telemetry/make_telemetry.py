# SPDX-License-Identifier: Apache-2.0
"""Writes trainer_state.json as transformers' TrainerState does: python make_telemetry.py (needs transformers)."""

import pathlib

from transformers.trainer_callback import TrainerState

state = TrainerState(
    epoch=1.3333333333333333,
    global_step=12,
    max_steps=27,
    logging_steps=1,
    eval_steps=4,
    save_steps=500,
    num_train_epochs=3,
    num_input_tokens_seen=123456,
    total_flos=1234567890123456.0,
    best_metric=0.1 + 0.2,
    best_global_step=8,
    best_model_checkpoint="läufe/checkpoint-8",
    log_history=[
        {"epoch": 0.1, "grad_norm": 1e-05, "learning_rate": 0.0001, "loss": 3.0, "step": 1},
        {
            "epoch": 0.2,
            "grad_norm": float("nan"),
            "learning_rate": 1.9999999999999998e-07,
            "loss": 1e16,
            "step": 2,
        },
        {
            "epoch": 0.3,
            "grad_norm": 123456789.125,
            "learning_rate": 5e-324,
            "loss": float("inf"),
            "step": 3,
        },
        {
            "epoch": 1.0,
            "eval_loss": 9007199254740993.0,
            "eval_runtime": 0.0123,
            "eval_samples_per_second": 100.0,
            "eval_steps_per_second": 12345678901234567.0,
            "step": 4,
        },
    ],
    stateful_callbacks=[],
)
state.stateful_callbacks = {}
state.save_to_json(str(pathlib.Path(__file__).with_name("trainer_state.json")))
