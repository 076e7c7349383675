# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files for training with transformers and PEFT: curves of a plain loop and scores of adapters.

All models use tokenizer/. Each family has the model folder, start/ (the adapter with which LoRA begins), lora/, rslora/,
dora/ (adapters with random B and patterns of rank and alpha) and golden.json. golden.json has for each step the loss, the
norm of the gradient before clipping and the learning rate, for full training on chats.jsonl and for LoRA on
completions.jsonl. It also has the negative log-likelihood and the number of tokens of every row of both files, without and
with each adapter.
Run: python make_train.py [FAMILY...]
"""

import json
import pathlib
import shutil
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    Trainer,
    get_linear_schedule_with_warmup,
)

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
from make_models import COMMON, MODELS, randomise  # noqa: E402

# For each family, the seed of its weights, which also widens its vocabulary.
FAMILIES = {
    "llama": 0,
    "qwen2": 1,
    "qwen3": 2,
    "gemma3": 3,
    "mistral": 4,
    "smollm3": 5,
    "phi3": 6,
    "gemma2": 7,
    "qwen3_5": 8,
    "muse_glimmer": 9,
    "gemma4": 10,
    "gemma": 11,
    "gemma4-unified": 12,
}
MODEL_OF = {"phi3": "phi3-window"}  # its rotation is the same at any length
FUSED = {"phi3": ("qkv_proj", "qkv_proj", "gate_up_proj")}  # in place of q_proj, v_proj, up_proj
STEPS, WARMUP, BATCH, ACCUMULATION, CLIP = 12, 2, 2, 2, 1.0
WEIGHT_DECAY = 2.0  # large, so that decaying the wrong parameters shows within 12 steps
LEARNING_RATE = {"full": 2e-3, "lora": 1e-2}
# With these learning rates gradient norms of gemma4's curves in fp32 and fp64 differ by 1e-5, with the
# rates above by 4e-4.
RATES_OF = {"gemma4": {"full": 5e-5, "lora": 3e-3}}
TEMPLATE = (
    "{% for message in messages %}{{ '<|start|>' + message.role + '\\n' }}"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content + '<|end|>' }}{% endgeneration %}"
    "{% else %}{{ message.content + '<|end|>' }}{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start|>assistant\\n' }}{% endif %}"
)

FACTS = [
    ("How many legs has a spider?", "Eight."),
    ("Name three colours of the rainbow, in order.", "Red, orange, yellow."),
    ("What is 17 + 25?", "17 + 25 = 42"),
    ("Spell the word for 3.", "three"),
    ("What comes after Thursday?", "Friday comes after Thursday."),
    ("Was ist die Hauptstadt von Österreich?", "Wien."),
    (
        "Is water wet? Say why or why not, in one short sentence.",
        "It makes other things wet, so people call it wet.",
    ),
    ("2 * 6?", "12"),
    ("What do bees make?", "Honey 🐝, and wax."),
]


def make_rows():
    """Makes 18 rows of each kind: four steps of four rows, and a step of two rows."""
    chats, completions = [], []
    for index in range(18):
        question, answer = FACTS[index % len(FACTS)]
        messages = [{"role": "system", "content": "Be brief."}] if index % 4 == 1 else []
        messages += [
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer},
        ]
        if index % 3 == 2:
            more, last = FACTS[(index * 5 + 2) % len(FACTS)]
            messages += [{"role": "user", "content": more}, {"role": "assistant", "content": last}]
        chats.append({"messages": messages})
        repeated = answer if index < 9 else f"{answer} Row {index} says so."
        completions.append({"prompt": f"Question {index}: {question}\n", "completion": repeated})
    for name, rows in (("chats", chats), ("completions", completions)):
        (HERE / f"{name}.jsonl").write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        )


def make_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<|pad|>", "<|start|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text for fact in FACTS for text in fact], trainer)
    folder = HERE / "tokenizer"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "eos_token": "<|end|>",
                "pad_token": "<|pad|>",
                "backend": "tokenizers",
                "tokenizer_class": "TokenizersBackend",
                "model_max_length": 256,
            },
            indent=1,
        )
        + "\n"
    )
    (folder / "chat_template.jinja").write_text(TEMPLATE)


def encode(tokenizer, row):
    """The ids of a row, and the mask of its tokens that have a loss."""
    if "messages" in row:
        encoded = tokenizer.apply_chat_template(
            row["messages"], tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
        return encoded["input_ids"], encoded["assistant_masks"]
    prompt = tokenizer(row["prompt"])["input_ids"]
    ids = tokenizer(row["prompt"] + row["completion"])["input_ids"] + [tokenizer.eos_token_id]
    assert ids[: len(prompt)] == prompt, row
    return ids, [0] * len(prompt) + [1] * (len(ids) - len(prompt))


def read_rows(tokenizer, name):
    return [
        encode(tokenizer, json.loads(line))
        for line in (HERE / f"{name}.jsonl").read_text().splitlines()
    ]


def row_losses(model, rows):
    """The summed negative log-likelihood of each row, computed in one padded batch."""
    width = max(len(ids) for ids, _ in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), width), -100)
    attention = torch.zeros(len(rows), width, dtype=torch.long)
    for index, (row, mask) in enumerate(rows):
        ids[index, : len(row)] = torch.tensor(row)
        attention[index, : len(row)] = 1
        labels[index, : len(row)] = torch.where(torch.tensor(mask) == 1, torch.tensor(row), -100)
    logits = model(input_ids=ids, attention_mask=attention).logits.float()
    return torch.nn.functional.cross_entropy(
        logits[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none"
    ).sum(1)


def supervised(row):
    return sum(row[1][1:])


def score(model, rows):
    model.eval()
    with torch.no_grad():
        return [{"nll": row_losses(model, [row]).item(), "tokens": supervised(row)} for row in rows]


def parameter_groups(model):
    decaying = set(Trainer.get_decay_parameter_names(None, model))
    named = [
        (name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad
    ]
    return [
        {"params": [p for name, p in named if name in decaying], "weight_decay": WEIGHT_DECAY},
        {"params": [p for name, p in named if name not in decaying], "weight_decay": 0.0},
    ]


def train(model, rows, learning_rate):
    model.train()
    groups = parameter_groups(model)
    parameters = [parameter for group in groups for parameter in group["params"]]
    optimizer = torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.999), eps=1e-8)
    schedule = get_linear_schedule_with_warmup(optimizer, WARMUP, STEPS)
    size = BATCH * ACCUMULATION
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    curve = []
    for step in range(STEPS):
        batch = batches[step % len(batches)]
        tokens = sum(supervised(row) for row in batch)
        loss = 0.0
        for start in range(0, len(batch), BATCH):
            micro = row_losses(model, batch[start : start + BATCH]).sum() / tokens
            micro.backward()
            loss += micro.item()
        norm = torch.nn.utils.clip_grad_norm_(parameters, CLIP).item()
        curve.append(
            {
                "loss": loss,
                "grad_norm": norm,
                "learning_rate": schedule.get_last_lr()[0],
                "tokens": tokens,
            }
        )
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return curve


def load(folder):
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )


def save_adapter(model, folder):
    model.save_pretrained(folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    config.update(
        base_model_name_or_path=folder.parent.name, target_modules=sorted(config["target_modules"])
    )
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "README.md").unlink(missing_ok=True)


def make_adapter(folder, name, **options):
    query, value, up = FUSED.get(folder.name, ("q_proj", "v_proj", "up_proj"))
    model = get_peft_model(
        load(folder),
        LoraConfig(
            r=4,
            lora_alpha=7,
            lora_dropout=0.0,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
            rank_pattern={query: 2, "layers.1.mlp.down_proj": 5},
            alpha_pattern={value: 3, f".*\\.mlp\\.{up}": 11},
            **options,
        ),
    )
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "lora_B" in key:
                parameter.copy_(0.15 * torch.randn(parameter.shape))
            elif "magnitude" in key:
                parameter.mul_(1 + 0.2 * torch.rand(parameter.shape))
    save_adapter(model, folder / name)


def make(name, seed):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(HERE / "tokenizer")
    config = {
        **COMMON,
        **MODELS[MODEL_OF.get(name, name)][0],
        "vocab_size": 331 + seed,
        "max_position_embeddings": 256,
        "pad_token_id": 0,
    }
    if "vocab_size_per_layer_input" in config:
        config["vocab_size_per_layer_input"] = config["vocab_size"]
    (folder / "config.json").write_text(json.dumps(config))
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    randomise(model, seed)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)

    chats, completions = read_rows(tokenizer, "chats"), read_rows(tokenizer, "completions")
    rates = RATES_OF.get(name, LEARNING_RATE)
    golden = {"curves": {"full": train(load(folder), chats, rates["full"])}}
    start = get_peft_model(
        load(folder),
        LoraConfig(
            r=4, lora_alpha=8, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
        ),
    )
    save_adapter(start, folder / "start")
    golden["curves"]["lora"] = train(start, completions, rates["lora"])

    make_adapter(folder, "lora")
    make_adapter(folder, "rslora", use_rslora=True)
    make_adapter(folder, "dora", use_dora=True)
    golden["scores"] = {}
    for adapter in ("", "lora", "rslora", "dora"):
        scored = load(folder)
        if adapter:
            scored = PeftModel.from_pretrained(scored, folder / adapter)
        golden["scores"][adapter or "base"] = {
            "chats": score(scored, chats),
            "completions": score(scored, completions),
        }
    (folder / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    for kind, curve in golden["curves"].items():
        print(
            name, kind, " ".join(f"{entry['loss']:.4f}/{entry['grad_norm']:.3f}" for entry in curve)
        )


if __name__ == "__main__":
    if not sys.argv[1:]:
        make_rows()
        make_tokenizer()
    for family, seed in FAMILIES.items():
        if family in (sys.argv[1:] or FAMILIES):
            make(family, seed)
