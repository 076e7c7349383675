# SPDX-License-Identifier: Apache-2.0
"""Muse Glimmer's text model with its head, for AutoModelForCausalLM.

In transformers 5.24 only the model that also sees images has the head. check() shows that both give the same logits.
"""

import torch
from transformers import AutoModelForCausalLM, GenerationMixin, MuseGlimmerConfig
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.models.muse_glimmer.configuration_muse_glimmer import MuseGlimmerTextConfig
from transformers.models.muse_glimmer.modeling_muse_glimmer import (
    MuseGlimmerForConditionalGeneration,
    MuseGlimmerPreTrainedModel,
    MuseGlimmerTextModel,
)

VISION = dict(hidden_size=16, intermediate_size=16, num_attention_heads=2, num_hidden_layers=1)


class MuseGlimmerText(MuseGlimmerPreTrainedModel, GenerationMixin):
    config: MuseGlimmerTextConfig
    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.model = MuseGlimmerTextModel(config)
        self.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def forward(self, input_ids=None, labels=None, logits_to_keep=0, **kwargs):
        states = self.model(input_ids=input_ids, **kwargs)
        logits = self.lm_head(states.last_hidden_state) * self.config.output_multiplier
        cap = self.config.final_logit_softcapping
        return CausalLMOutputWithPast(logits=torch.tanh(logits / cap) * cap, cache=states.cache)


# Without exist_ok transformers refuses a class for one of its own configurations.
AutoModelForCausalLM.register(MuseGlimmerTextConfig, MuseGlimmerText, exist_ok=True)


def check(model, rows, logits):
    """Checks that the model that also sees images gives these logits with the same weights."""
    config = MuseGlimmerConfig(
        text_config=model.config.to_dict(),
        vision_config=VISION,
        out_hidden_size=64,
        projector_hidden_size=8,
        tie_word_embeddings=model.config.tie_word_embeddings,
        attn_implementation="eager",
    )
    whole = MuseGlimmerForConditionalGeneration(config).eval()
    tensors = {
        name.replace("model.", "model.language_model.", 1): value
        for name, value in model.state_dict().items()
    }
    kept = whole.load_state_dict(tensors, strict=False)
    assert not kept.unexpected_keys, kept.unexpected_keys
    assert all(name.startswith("model.vision") for name in kept.missing_keys), kept.missing_keys
    with torch.no_grad():
        again = torch.cat([whole(input_ids=row[None]).logits[0] for row in rows])
    assert torch.equal(again, logits), (again - logits).abs().max()
