# SPDX-License-Identifier: Apache-2.0
"""Writes MODEL.json: the answers of transformers' generate() with the tiny models of ../models.

"prompts" and greedy "answers"; "logprobs" of the first answer's tokens; "penalised": the answers with the repetition
penalty PENALTY (null if rounding could change an answer); "drawn": a sampling rule, and the probabilities of all ids as
the first new token of prompt 4 under this rule.

Prompts have 1 to 90 tokens; some share their first 70. There is no end token: each answer has NEW tokens. A prompt is
left out if the two best logits of any token of its answer differ by less than MARGIN, so that rounding cannot change an
answer.
Run: python make_answers.py [MODEL...]
"""

import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
import glimmer_text  # noqa: E402, F401

# For each model, the seed of its prompts.
MODELS = {
    "llama": 0,
    "llama-biased": 1,
    "qwen2": 2,
    "qwen2-window": 3,
    "qwen3": 4,
    "gemma3": 5,
    "mistral": 6,
    "mistral-nemo": 7,
    "smollm3": 8,
    "smollm3-window": 9,
    "qwen3-yarn": 11,
    "olmo3": 12,
    "phi3": 13,
    "glm4": 14,
    "gemma2": 15,
    "gemma2-untied": 16,
    "qwen3_5": 15,
    "qwen3_5-tied": 16,
    "muse_glimmer": 25,
    "muse_glimmer-tied": 18,
    "gemma4": 17,
    "gemma4-keys": 18,
    "gemma4-unified": 19,
    "gemma": 20,
}
LENGTHS = (1, 2, 3, 7, 13, 31, 32, 33, 40, 64, 65, 90)
SHARED, SHARING = 70, 4
NEW, MARGIN = 24, 2e-3
PENALTY = 1.3
RULE = dict(temperature=0.7, top_k=40, top_p=0.9, min_p=0.02)


def prompts(vocabulary, generator):
    made = [torch.randint(3, vocabulary, (length,), generator=generator) for length in LENGTHS]
    begin = torch.randint(3, vocabulary, (SHARED,), generator=generator)
    made += [
        torch.cat([begin, torch.randint(3, vocabulary, (5 * n,), generator=generator)])
        for n in range(SHARING)
    ]
    return made + [begin.clone()]  # a prompt that is only the shared beginning


def answer(model, prompt, **options):
    """The new tokens, the smallest difference between the two best scores of any of them, and the logits."""
    found = model.generate(
        prompt[None],
        do_sample=False,
        max_new_tokens=NEW,
        eos_token_id=None,
        pad_token_id=0,
        output_logits=True,
        output_scores=True,
        return_dict_in_generate=True,
        **options,
    )
    best = torch.cat(found.scores).topk(2, dim=1).values
    return (
        found.sequences[0][len(prompt) :],
        (best[:, 0] - best[:, 1]).min().item(),
        torch.cat(found.logits),
    )


def drawn(model, prompt):
    """Probabilities of the first new token under RULE."""
    found = model.generate(
        prompt[None],
        do_sample=True,
        max_new_tokens=1,
        eos_token_id=None,
        pad_token_id=0,
        output_scores=True,
        return_dict_in_generate=True,
        **RULE,
    )
    return {**RULE, "probabilities": found.scores[0][0].double().softmax(0).tolist()}


def make(name, seed):
    model = AutoModelForCausalLM.from_pretrained(
        HERE.parent / "models" / name, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    kept = {"prompts": [], "answers": [], "penalised": []}
    for prompt in prompts(model.config.vocab_size, torch.Generator().manual_seed(seed)):
        tokens, margin, logits = answer(model, prompt)
        if margin < MARGIN:
            continue
        kept["prompts"].append(prompt.tolist())
        kept["answers"].append(tokens.tolist())
        other, margin, _ = answer(model, prompt, repetition_penalty=PENALTY)
        kept["penalised"].append(other.tolist() if margin >= MARGIN else None)
        if "logprobs" not in kept:
            kept["logprobs"] = logits.log_softmax(1).gather(1, tokens[:, None])[:, 0].tolist()
    kept["drawn"] = drawn(model, torch.tensor(kept["prompts"][4]))
    assert len(kept["prompts"]) >= 12, (name, len(kept["prompts"]))
    (HERE / f"{name}.json").write_text(json.dumps(kept) + "\n")
    print(name, len(kept["prompts"]))


if __name__ == "__main__":
    for model_name, prompts_seed in MODELS.items():
        if model_name in (sys.argv[1:] or MODELS):
            make(model_name, prompts_seed)
