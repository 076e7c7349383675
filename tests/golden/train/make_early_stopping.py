"""Writes early_stopping.json: the evaluation after which transformers ends a run, and the evaluation that it takes for the best.

Made with transformers 5.23.0, torch 2.11.0. Runs the callback and the trainer's choice of the best evaluation in the order
in which Trainer._maybe_log_save_evaluate calls them.
"""

import json
import pathlib
import random
from types import SimpleNamespace

from transformers import EarlyStoppingCallback, Trainer, TrainerControl, TrainerState


def run(losses, patience, threshold):
    arguments = SimpleNamespace(
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        save_strategy="steps",
        load_best_model_at_end=True,
    )
    callback = EarlyStoppingCallback(patience, threshold)
    trainer = SimpleNamespace(args=arguments, state=TrainerState(), is_in_train=True)
    control = TrainerControl()
    for loss in losses:
        trainer.state.global_step += 1
        metrics = {"eval_loss": loss}
        callback.on_evaluate(arguments, trainer.state, control, metrics=metrics)
        if Trainer._determine_best_metric(trainer, metrics=metrics, trial=None):
            best = trainer.state.global_step
        if control.should_training_stop:
            break
    return {"stopped_after": trainer.state.global_step, "best": best}


def main():
    random.seed(1)
    cases = []
    for _ in range(200):
        loss, losses = 2.0, []
        for _ in range(random.randint(3, 12)):
            loss = max(0.1, loss + random.choice([-0.3, -0.02, -0.005, 0, 0.01, 0.1]))
            losses.append(round(loss, 4))
        case = {
            "losses": losses,
            "patience": random.randint(1, 4),
            "threshold": random.choice([0.0, 0.01, 0.05, 0.5, 10.0]),
        }
        cases.append(case | run(losses, case["patience"], case["threshold"]))
    text = "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"
    pathlib.Path(__file__).with_name("early_stopping.json").write_text(text)


main()
