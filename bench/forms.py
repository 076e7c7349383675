#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a given form costs: answers under a JSON Schema beside free text, in turn.

  bench/forms.py [--model examples/tally-3m] [--rows 32] [--threads 2] [--rounds 5] [--convoy build/bin/convoy] [--json]
                 [-- FLAGS OF GENERATE]

--rows answers are generated together, all with the same number of tokens: the schema asks for more than that, and free text has no token that
ends it. The time of a token is the difference between a long and a short run, so that start, loading, the schema's compile and prompts do not
count. Prints the microseconds of a token of a row and, as `ratio`, those of a form over those of free text: the median of the rounds, that of the
least ones, which a busy machine changes less, and all.
`processor` are the same of processor time of all threads; with two threads it has their waiting, too.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SHORT, LONG = 32, 800  # new tokens

# Names, whole numbers, words of a list and short texts, as programs ask for them; more than LONG tokens of them.
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "role": {"enum": ["author", "editor", "reader"]},
        "active": {"type": "boolean"},
        "notes": {"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 3},
    },
    "required": ["name", "age", "role", "active", "notes"],
    "additionalProperties": False,
}
SCHEMA = {"type": "array", "items": PERSON, "minItems": 1000}


def without_end(model, folder):
    """A copy of the model that names no token that ends a text."""
    shutil.copytree(model, folder)
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        path = folder / name
        if path.exists():
            fields = json.loads(path.read_text())
            path.write_text(
                json.dumps({key: value for key, value in fields.items() if "eos" not in key})
            )
    return folder


def seconds(options, model, prompts, tokens, *flags):
    command = [
        options.convoy,
        "generate",
        "--model",
        model,
        "--prompts",
        prompts,
        "--chat",
        "off",
        "--batch-size",
        options.rows,
    ]
    command += ["--max-new-tokens", tokens, "--output", os.devnull, *flags, *options.flags]
    begin, used = time.monotonic(), processor_seconds()
    subprocess.run(
        [str(word) for word in command],
        env=dict(os.environ, OMP_NUM_THREADS=str(options.threads), CUDA_VISIBLE_DEVICES=""),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.monotonic() - begin, processor_seconds() - used


def processor_seconds():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def figures_of(found):
    ratios = [form / free for free, form in zip(found["free"], found["form"], strict=True)]
    return {
        "free_us": round(statistics.median(found["free"]), 1),
        "form_us": round(statistics.median(found["form"]), 1),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_of_least": round(min(found["form"]) / min(found["free"]), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default=str(HERE.parent / "examples/tally-3m"))
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--convoy", default=str(HERE.parent / "build/bin/convoy"))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("flags", nargs="*", help="further flags of generate, after --")
    options = parser.parse_args()
    clocks = {"wall": {"free": [], "form": []}, "processor": {"free": [], "form": []}}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "schema.json").write_text(json.dumps(SCHEMA))
        prompts = folder / "prompts.jsonl"
        rows = [{"prompt": f"People of house {place}, as JSON:\n"} for place in range(options.rows)]
        prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
        endless = without_end(options.model, folder / "model")
        kinds = {"free": (endless,), "form": (options.model, "--schema", folder / "schema.json")}
        for _ in range(options.rounds):
            for kind, (model, *flags) in kinds.items():
                short, long = (
                    seconds(options, model, prompts, tokens, *flags) for tokens in (SHORT, LONG)
                )
                for clock, before, after in zip(clocks, short, long, strict=True):
                    token = (after - before) / ((LONG - SHORT) * options.rows)
                    clocks[clock][kind].append(token * 1e6)
    figures = {clock: figures_of(found) for clock, found in clocks.items()}
    if options.json:
        print(
            json.dumps(
                {
                    "model": options.model,
                    "rows": options.rows,
                    "threads": options.threads,
                    **figures,
                }
            )
        )
        return
    for clock, of in figures.items():
        print(
            f"{clock}: free text {of['free_us']} us a token, of a form {of['form_us']} us: {of['ratio']}x, least by least {of['ratio_of_least']}x {of['ratios']}"
        )


if __name__ == "__main__":
    main()
