# SPDX-License-Identifier: Apache-2.0
"""Names that PEFT gives to a LoRA of every linear map of the language model of checkpoints that also see.

nested_names.json: for each such golden model of ../models the file's tensors, by the classes of transformers. The tower
of each class has its usual size and no values.
Run: python make_nested_names.py
"""

import json
import pathlib
import sys

import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from transformers import AutoConfig, AutoModelForImageTextToText

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parent / "models"
sys.path.insert(0, str(MODELS))
from make_models import NESTED  # noqa: E402


def names_of(name):
    text_name, model_type, _ = NESTED[name]
    text = json.loads((MODELS / text_name / "config.json").read_text())
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(
            AutoConfig.for_model(model_type, text_config=text)
        )
    inside = "model.language_model."
    targets = [
        module
        for module, kind in model.named_modules()
        if module.startswith(inside) and isinstance(kind, torch.nn.Linear)
    ]
    adapted = get_peft_model(model, LoraConfig(r=1, target_modules=targets))
    return sorted(get_peft_model_state_dict(adapted))


if __name__ == "__main__":
    found = {name: names_of(name) for name in NESTED}
    (HERE / "nested_names.json").write_text(json.dumps(found, indent=1) + "\n")
    for model_name, names in found.items():
        print(model_name, len(names))
