# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny models of this folder, and the results of transformers with them.

Per model: config.json in transformers 5 style, config.v4.json in the older style, the weights, golden.safetensors
(input ids of two rows, their logits, a greedy continuation of the first), golden.json (summed loss and the norm of
its gradient by parameter) and bf16.safetensors (the logits with weights and activations in bf16). Odd sizes on purpose.
Run: python make_models.py [NAME...], or python make_models.py --bf16 [NAME...] to make only bf16.safetensors.
"""

import json
import pathlib
import shutil
import sys

import glimmer_text
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).parent
ROWS = (40, 13)
PROMPT, NEW = 9, 16
MARGIN = 1e-4  # least difference between the two best logits of a greedy token

LLAMA3 = dict(
    factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16
)
COMMON = dict(
    bos_token_id=1, eos_token_id=2, attention_dropout=0.0, initializer_range=0.02, use_cache=True
)

# name: (v5 config, keys that v4 spells otherwise, how it is saved, the seed of its weights; its rows have seed + 100)
MODELS = {
    "llama": (
        dict(
            model_type="llama",
            architectures=["LlamaForCausalLM"],
            hidden_size=24,
            intermediate_size=38,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=10,
            vocab_size=97,
            max_position_embeddings=128,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            tie_word_embeddings=True,
            attention_bias=False,
            mlp_bias=False,
            rope_parameters=dict(rope_type="llama3", rope_theta=500.0, **LLAMA3),
        ),
        dict(rope_theta=500.0, rope_scaling=dict(rope_type="llama3", **LLAMA3)),
        {},
        0,
    ),
    "llama-biased": (
        dict(
            model_type="llama",
            architectures=["LlamaForCausalLM"],
            hidden_size=30,
            intermediate_size=34,
            num_hidden_layers=2,
            num_attention_heads=5,
            num_key_value_heads=5,
            vocab_size=101,
            max_position_embeddings=128,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            tie_word_embeddings=False,
            attention_bias=True,
            mlp_bias=True,
            rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.0),
        ),
        dict(rope_theta=10000.0, rope_scaling=dict(type="linear", factor=2.0)),
        dict(max_shard_size="20KB"),
        1,
    ),
    "qwen2": (
        dict(
            model_type="qwen2",
            architectures=["Qwen2ForCausalLM"],
            hidden_size=36,
            intermediate_size=40,
            num_hidden_layers=2,
            num_attention_heads=6,
            num_key_value_heads=2,
            vocab_size=103,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_act="silu",
            tie_word_embeddings=False,
            use_sliding_window=False,
            sliding_window=None,
            max_window_layers=1,
            rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
        ),
        dict(rope_theta=1000000.0, rope_scaling=None, sliding_window=4, layer_types=None),
        {},
        2,
    ),
    "qwen2-window": (
        dict(
            model_type="qwen2",
            architectures=["Qwen2ForCausalLM"],
            hidden_size=24,
            intermediate_size=36,
            num_hidden_layers=3,
            num_attention_heads=3,
            num_key_value_heads=3,
            vocab_size=107,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_act="silu",
            tie_word_embeddings=True,
            use_sliding_window=True,
            sliding_window=7,
            max_window_layers=1,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        ),
        dict(rope_theta=10000.0, layer_types=None),
        {},
        3,
    ),
    "qwen3": (
        dict(
            model_type="qwen3",
            architectures=["Qwen3ForCausalLM"],
            hidden_size=30,
            intermediate_size=44,
            num_hidden_layers=2,
            num_attention_heads=5,
            num_key_value_heads=1,
            head_dim=16,
            vocab_size=109,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_act="silu",
            tie_word_embeddings=True,
            attention_bias=False,
            use_sliding_window=False,
            sliding_window=None,
            max_window_layers=2,
            rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
        ),
        dict(rope_theta=1000000.0, rope_scaling=None, layer_types=None),
        dict(dtype=torch.bfloat16),
        4,
    ),
    "gemma3": (
        dict(
            model_type="gemma3_text",
            architectures=["Gemma3ForCausalLM"],
            hidden_size=28,
            intermediate_size=42,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=10,
            vocab_size=131,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_activation="gelu_pytorch_tanh",
            tie_word_embeddings=True,
            query_pre_attn_scalar=12,
            sliding_window=8,
            pad_token_id=0,
            layer_types=[
                "sliding_attention",
                "sliding_attention",
                "full_attention",
                "sliding_attention",
            ],
            rope_parameters=dict(
                full_attention=dict(rope_type="linear", rope_theta=100000.0, factor=8.0),
                sliding_attention=dict(rope_type="default", rope_theta=500.0),
            ),
        ),
        dict(
            rope_theta=100000.0,
            rope_local_base_freq=500.0,
            rope_scaling=dict(rope_type="linear", factor=8.0),
            sliding_window_pattern=3,
            layer_types=None,
        ),
        {},
        5,
    ),
    # v0.1: a window in every layer, heads of hidden / num_heads.
    "mistral": (
        dict(
            model_type="mistral",
            architectures=["MistralForCausalLM"],
            hidden_size=32,
            intermediate_size=42,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=None,
            vocab_size=113,
            max_position_embeddings=128,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            tie_word_embeddings=False,
            sliding_window=9,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        ),
        dict(rope_theta=10000.0),
        {},
        6,
    ),
    # Nemo: heads wider than hidden / num_heads, no window.
    "mistral-nemo": (
        dict(
            model_type="mistral",
            architectures=["MistralForCausalLM"],
            hidden_size=30,
            intermediate_size=40,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=16,
            vocab_size=127,
            max_position_embeddings=128,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            tie_word_embeddings=False,
            sliding_window=None,
            rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
        ),
        dict(rope_theta=1000000.0, rope_scaling=None),
        dict(dtype=torch.bfloat16, max_shard_size="10KB"),
        7,
    ),
    # As in the published model, every fourth layer has no rotary embedding.
    "smollm3": (
        dict(
            model_type="smollm3",
            architectures=["SmolLM3ForCausalLM"],
            hidden_size=24,
            intermediate_size=38,
            num_hidden_layers=5,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=137,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_act="silu",
            tie_word_embeddings=True,
            use_sliding_window=False,
            sliding_window=None,
            no_rope_layer_interval=4,
            attention_bias=False,
            mlp_bias=False,
            pad_token_id=0,
            rope_parameters=dict(rope_type="default", rope_theta=5000000.0),
        ),
        dict(rope_theta=5000000.0, rope_scaling=None, layer_types=None, no_rope_layers=None),
        {},
        8,
    ),
    # The other options of SmolLM3: windows in layers without rotation, biases, a separate head.
    "smollm3-window": (
        dict(
            model_type="smollm3",
            architectures=["SmolLM3ForCausalLM"],
            hidden_size=28,
            intermediate_size=34,
            num_hidden_layers=4,
            num_attention_heads=2,
            num_key_value_heads=1,
            vocab_size=139,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_act="silu",
            tie_word_embeddings=False,
            use_sliding_window=True,
            sliding_window=6,
            no_rope_layers=[0, 1, 1, 0, 1],
            attention_bias=True,
            mlp_bias=True,
            pad_token_id=0,
            rope_parameters=dict(rope_type="default", rope_theta=2000000.0),
        ),
        dict(layer_types=None),
        {},
        9,
    ),
    # YaRN for positions beyond the trained ones, as the model cards of Qwen describe it.
    "qwen3-yarn": (
        dict(
            model_type="qwen3",
            architectures=["Qwen3ForCausalLM"],
            hidden_size=30,
            intermediate_size=38,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=22,
            vocab_size=109,
            max_position_embeddings=32,
            rms_norm_eps=1e-6,
            hidden_act="silu",
            tie_word_embeddings=True,
            attention_bias=False,
            use_sliding_window=False,
            sliding_window=None,
            max_window_layers=2,
            rope_parameters=dict(
                rope_type="yarn",
                rope_theta=10000.0,
                factor=4.0,
                original_max_position_embeddings=32,
            ),
        ),
        dict(
            rope_theta=10000.0,
            layer_types=None,
            rope_scaling=dict(type="yarn", factor=4.0, original_max_position_embeddings=32),
        ),
        {},
        10,
    ),
    # This configuration sets all other keys of YaRN.
    "llama-yarn": (
        dict(
            model_type="llama",
            architectures=["LlamaForCausalLM"],
            hidden_size=24,
            intermediate_size=38,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=3,
            head_dim=18,
            vocab_size=97,
            max_position_embeddings=64,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            tie_word_embeddings=False,
            attention_bias=False,
            mlp_bias=False,
            rope_parameters=dict(
                rope_type="yarn",
                rope_theta=500.0,
                factor=3.0,
                beta_fast=4.0,
                beta_slow=0.5,
                truncate=False,
                mscale=1.4,
                mscale_all_dim=0.6,
                original_max_position_embeddings=20,
            ),
        ),
        dict(
            rope_theta=500.0,
            rope_scaling=dict(
                rope_type="yarn",
                factor=3.0,
                beta_fast=4.0,
                beta_slow=0.5,
                truncate=False,
                mscale=1.4,
                mscale_all_dim=0.6,
                original_max_position_embeddings=20,
            ),
        ),
        {},
        11,
    ),
    # Four scales. Only the scale of the logits is a power of two.
    "granite": (
        dict(
            model_type="granite",
            architectures=["GraniteForCausalLM"],
            hidden_size=30,
            intermediate_size=44,
            num_hidden_layers=3,
            num_attention_heads=3,
            num_key_value_heads=1,
            vocab_size=113,
            max_position_embeddings=128,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            tie_word_embeddings=True,
            attention_bias=False,
            mlp_bias=False,
            embedding_multiplier=6.0,
            residual_multiplier=0.22,
            attention_multiplier=0.15,
            logits_scaling=8.0,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        ),
        dict(rope_theta=10000.0, rope_scaling=None),
        {},
        12,
    ),
    # Only queries, keys and values have biases; heads are wider than hidden / num_heads.
    "seed_oss": (
        dict(
            model_type="seed_oss",
            architectures=["SeedOssForCausalLM"],
            hidden_size=30,
            intermediate_size=46,
            num_hidden_layers=2,
            num_attention_heads=6,
            num_key_value_heads=2,
            head_dim=14,
            vocab_size=119,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_act="silu",
            tie_word_embeddings=False,
            attention_bias=True,
            attention_out_bias=False,
            mlp_bias=False,
            residual_dropout=0.0,
            rope_parameters=dict(rope_type="default", rope_theta=10000000.0),
        ),
        dict(rope_theta=10000000.0, rope_scaling=None),
        dict(dtype=torch.bfloat16),
        13,
    ),
    # Norms after attention and after feed-forward, and norms over queries and keys of all heads at once.
    "olmo2": (
        dict(
            model_type="olmo2",
            architectures=["Olmo2ForCausalLM"],
            hidden_size=30,
            intermediate_size=42,
            num_hidden_layers=2,
            num_attention_heads=5,
            num_key_value_heads=1,
            vocab_size=101,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_act="silu",
            tie_word_embeddings=False,
            attention_bias=False,
            rope_parameters=dict(rope_type="default", rope_theta=500000.0),
        ),
        dict(rope_theta=500000.0, rope_scaling=None),
        {},
        14,
    ),
    # Three of four layers have windows; the rotation of the other layers is stretched.
    "olmo3": (
        dict(
            model_type="olmo3",
            architectures=["Olmo3ForCausalLM"],
            hidden_size=28,
            intermediate_size=38,
            num_hidden_layers=5,
            num_attention_heads=2,
            num_key_value_heads=2,
            vocab_size=103,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_act="silu",
            tie_word_embeddings=False,
            attention_bias=True,
            sliding_window=9,
            layer_types=["sliding_attention"] * 3 + ["full_attention", "sliding_attention"],
            rope_parameters=dict(
                full_attention=dict(
                    rope_type="yarn",
                    rope_theta=500000.0,
                    factor=4.0,
                    original_max_position_embeddings=32,
                    attention_factor=1.2,
                    beta_fast=32.0,
                    beta_slow=1.0,
                ),
                sliding_attention=dict(rope_type="default", rope_theta=500000.0),
            ),
        ),
        dict(
            rope_theta=500000.0,
            layer_types=None,
            rope_scaling=dict(
                rope_type="yarn",
                factor=4.0,
                original_max_position_embeddings=32,
                attention_factor=1.2,
                beta_fast=32.0,
                beta_slow=1.0,
            ),
        ),
        {},
        15,
    ),
    # Like Phi-4-mini: fused projections, three quarters of a head rotate, longrope below its original positions.
    "phi3": (
        dict(
            model_type="phi3",
            architectures=["Phi3ForCausalLM"],
            hidden_size=32,
            intermediate_size=42,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=113,
            max_position_embeddings=256,
            original_max_position_embeddings=128,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            tie_word_embeddings=True,
            sliding_window=None,
            pad_token_id=0,
            rope_parameters=dict(
                rope_type="longrope",
                rope_theta=10000.0,
                partial_rotary_factor=0.75,
                short_factor=[1.0, 1.3, 2.5],
                long_factor=[1.0, 4.0, 16.0],
            ),
        ),
        dict(
            rope_theta=10000.0,
            partial_rotary_factor=0.75,
            rope_scaling=dict(
                type="longrope", short_factor=[1.0, 1.3, 2.5], long_factor=[1.0, 4.0, 16.0]
            ),
        ),
        {},
        16,
    ),
    # Like Phi-3-mini-4k: heads rotate as a whole, there are as many keys as queries, and a window.
    "phi3-window": (
        dict(
            model_type="phi3",
            architectures=["Phi3ForCausalLM"],
            hidden_size=30,
            intermediate_size=38,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=3,
            vocab_size=107,
            max_position_embeddings=128,
            original_max_position_embeddings=128,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            tie_word_embeddings=False,
            sliding_window=7,
            pad_token_id=0,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        ),
        dict(rope_theta=10000.0, rope_scaling=None),
        dict(dtype=torch.bfloat16, max_shard_size="10KB"),
        17,
    ),
    # Half of a head rotates, in pairs of neighbours; gate and up are one projection.
    "glm": (
        dict(
            model_type="glm",
            architectures=["GlmForCausalLM"],
            hidden_size=30,
            intermediate_size=42,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=12,
            vocab_size=109,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_act="silu",
            tie_word_embeddings=True,
            attention_bias=True,
            pad_token_id=0,
            rope_parameters=dict(
                rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5
            ),
        ),
        dict(rope_theta=10000.0, rope_scaling=None, partial_rotary_factor=0.5),
        {},
        18,
    ),
    # GLM-4 is GLM with norms after attention and after feed-forward, under names of its own.
    "glm4": (
        dict(
            model_type="glm4",
            architectures=["Glm4ForCausalLM"],
            hidden_size=28,
            intermediate_size=46,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=12,
            vocab_size=103,
            max_position_embeddings=128,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            tie_word_embeddings=False,
            attention_bias=False,
            pad_token_id=0,
            rope_parameters=dict(
                rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5
            ),
        ),
        dict(rope_theta=10000.0, rope_scaling=None, partial_rotary_factor=0.5),
        {},
        19,
    ),
    # The scale of queries grows every eight positions.
    "ministral3": (
        dict(
            model_type="ministral3",
            architectures=["Ministral3ForCausalLM"],
            hidden_size=30,
            intermediate_size=42,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=14,
            vocab_size=127,
            max_position_embeddings=128,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            tie_word_embeddings=False,
            sliding_window=None,
            pad_token_id=0,
            rope_parameters=dict(
                rope_type="yarn",
                rope_theta=10000.0,
                factor=16.0,
                original_max_position_embeddings=8,
                beta_fast=32.0,
                beta_slow=1.0,
                mscale=1.0,
                mscale_all_dim=1.0,
                llama_4_scaling_beta=0.3,
            ),
        ),
        dict(
            rope_theta=10000.0,
            rope_scaling=dict(
                type="yarn",
                factor=16.0,
                original_max_position_embeddings=8,
                beta_fast=32.0,
                beta_slow=1.0,
                mscale=1.0,
                mscale_all_dim=1.0,
                llama_4_scaling_beta=0.3,
            ),
        ),
        {},
        20,
    ),
    # Soft caps low enough to change scores and logits; every second layer has a window.
    "gemma2": (
        dict(
            model_type="gemma2",
            architectures=["Gemma2ForCausalLM"],
            hidden_size=30,
            intermediate_size=44,
            num_hidden_layers=3,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=14,
            vocab_size=131,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_activation="gelu_pytorch_tanh",
            tie_word_embeddings=True,
            attention_bias=False,
            query_pre_attn_scalar=10,
            sliding_window=7,
            attn_logit_softcapping=2.5,
            final_logit_softcapping=6.0,
            pad_token_id=0,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        ),
        dict(rope_theta=10000.0, rope_scaling=None, layer_types=None),
        {},
        21,
    ),
    # Gemma 2 without a cap on logits, with biases, a separate head, and another order of windows.
    "gemma2-untied": (
        dict(
            model_type="gemma2",
            architectures=["Gemma2ForCausalLM"],
            hidden_size=28,
            intermediate_size=38,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=10,
            vocab_size=109,
            max_position_embeddings=128,
            rms_norm_eps=1e-5,
            hidden_activation="gelu_pytorch_tanh",
            tie_word_embeddings=False,
            attention_bias=True,
            query_pre_attn_scalar=24,
            sliding_window=9,
            layer_types=["full_attention", "sliding_attention"],
            attn_logit_softcapping=3.5,
            final_logit_softcapping=None,
            pad_token_id=0,
            rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0),
        ),
        dict(rope_theta=10000.0, rope_scaling=dict(rope_type="linear", factor=4.0)),
        dict(dtype=torch.bfloat16, max_shard_size="10KB"),
        22,
    ),
    # As in the published model, three layers of Gated DeltaNet come before each layer of attention. Each key head
    # serves three value heads.
    # The epsilon is large because the norm after the recurrence divides by the size of its outputs, which is nearly 0
    # with so few features. With 1e-6 transformers' own gradients in fp32 and fp64 differ by 2e-4.
    "qwen3_5": (
        dict(
            model_type="qwen3_5_text",
            architectures=["Qwen3_5ForCausalLM"],
            hidden_size=30,
            intermediate_size=42,
            num_hidden_layers=4,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=16,
            vocab_size=113,
            max_position_embeddings=256,
            rms_norm_eps=1e-2,
            hidden_act="silu",
            tie_word_embeddings=False,
            attention_bias=False,
            linear_num_key_heads=2,
            linear_num_value_heads=6,
            linear_key_head_dim=10,
            linear_value_head_dim=7,
            linear_conv_kernel_dim=4,
            pad_token_id=0,
            rope_parameters=dict(
                rope_type="default",
                rope_theta=10000000.0,
                partial_rotary_factor=0.25,
                mrope_interleaved=True,
                mrope_section=[1, 1, 0],
            ),
        ),
        dict(
            rope_theta=10000000.0,
            rope_scaling=None,
            layer_types=None,
            full_attention_interval=4,
            attn_output_gate=True,
        ),
        {},
        23,
    ),
    # Qwen3.5 with a tied head, attention biases, as many key heads as value heads, and another order of layers.
    "qwen3_5-tied": (
        dict(
            model_type="qwen3_5_text",
            architectures=["Qwen3_5ForCausalLM"],
            hidden_size=28,
            intermediate_size=38,
            num_hidden_layers=3,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=12,
            vocab_size=107,
            max_position_embeddings=128,
            rms_norm_eps=1.5e-2,
            hidden_act="silu",
            tie_word_embeddings=True,
            attention_bias=True,
            linear_num_key_heads=3,
            linear_num_value_heads=3,
            linear_key_head_dim=6,
            linear_value_head_dim=9,
            linear_conv_kernel_dim=3,
            layer_types=["full_attention", "linear_attention", "linear_attention"],
            pad_token_id=0,
            rope_parameters=dict(
                rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5
            ),
        ),
        dict(rope_theta=10000.0, rope_scaling=None, partial_rotary_factor=0.5),
        dict(dtype=torch.bfloat16, max_shard_size="10KB"),
        24,
    ),
    # The first row of this model is longer than the original positions, the second row is not.
    "phi3-long": (
        dict(
            model_type="phi3",
            architectures=["Phi3ForCausalLM"],
            hidden_size=30,
            intermediate_size=36,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=1,
            vocab_size=109,
            max_position_embeddings=64,
            original_max_position_embeddings=16,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            tie_word_embeddings=False,
            sliding_window=None,
            pad_token_id=0,
            rope_parameters=dict(
                rope_type="longrope",
                rope_theta=100.0,
                partial_rotary_factor=0.6,
                short_factor=[1.0, 1.3, 2.5],
                long_factor=[1.5, 4.0, 16.0],
            ),
        ),
        dict(
            rope_theta=100.0,
            partial_rotary_factor=0.6,
            rope_scaling=dict(
                type="longrope", short_factor=[1.0, 1.3, 2.5], long_factor=[1.5, 4.0, 16.0]
            ),
        ),
        {},
        25,
    ),
    # Like E2B: the last layers read the keys and values of earlier layers and have a feed-forward of twice the width;
    # each layer has embeddings of its own; heads have two sizes.
    "gemma4": (
        dict(
            model_type="gemma4_text",
            architectures=["Gemma4ForCausalLM"],
            hidden_size=30,
            intermediate_size=22,
            num_hidden_layers=5,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=10,
            global_head_dim=14,
            vocab_size=113,
            max_position_embeddings=256,
            rms_norm_eps=1e-6,
            hidden_activation="gelu_pytorch_tanh",
            tie_word_embeddings=True,
            attention_bias=False,
            sliding_window=7,
            layer_types=[
                "sliding_attention",
                "sliding_attention",
                "full_attention",
                "sliding_attention",
                "full_attention",
            ],
            num_kv_shared_layers=2,
            use_double_wide_mlp=True,
            hidden_size_per_layer_input=17,
            vocab_size_per_layer_input=113,
            final_logit_softcapping=6.0,
            pad_token_id=0,
            rope_parameters=dict(
                full_attention=dict(
                    rope_type="proportional", rope_theta=1000.0, partial_rotary_factor=0.5
                ),
                sliding_attention=dict(rope_type="default", rope_theta=100.0),
            ),
        ),
        dict(
            global_head_dim=14,
            rope_parameters=dict(
                full_attention=dict(
                    rope_type="proportional", rope_theta=1000.0, partial_rotary_factor=0.5
                ),
                sliding_attention=dict(rope_type="default", rope_theta=100.0),
            ),
        ),
        {},
        26,
    ),
    # Like 31B: in layers that see all keys, the keys are also the values and have fewer heads. A separate head, biases.
    "gemma4-keys": (
        dict(
            model_type="gemma4_text",
            architectures=["Gemma4ForCausalLM"],
            hidden_size=28,
            intermediate_size=38,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=12,
            global_head_dim=20,
            num_global_key_value_heads=1,
            attention_k_eq_v=True,
            vocab_size=109,
            max_position_embeddings=256,
            rms_norm_eps=1e-5,
            hidden_activation="gelu_pytorch_tanh",
            tie_word_embeddings=False,
            attention_bias=True,
            sliding_window=9,
            hidden_size_per_layer_input=0,
            pad_token_id=0,
        ),
        dict(global_head_dim=20, num_global_key_value_heads=1, layer_types=None),
        dict(dtype=torch.bfloat16, max_shard_size="10KB"),
        27,
    ),
    # Like 12B, whose model type has other defaults.
    "gemma4-unified": (
        dict(
            model_type="gemma4_unified_text",
            architectures=["Gemma4UnifiedForCausalLM"],
            hidden_size=26,
            intermediate_size=34,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=10,
            global_head_dim=16,
            num_global_key_value_heads=1,
            attention_k_eq_v=True,
            vocab_size=107,
            rms_norm_eps=1e-6,
            hidden_activation="gelu_pytorch_tanh",
            tie_word_embeddings=True,
            attention_bias=False,
            sliding_window=5,
            final_logit_softcapping=6.0,
            pad_token_id=0,
        ),
        dict(global_head_dim=16, num_global_key_value_heads=1, layer_types=None),
        {},
        28,
    ),
    # Counted from the last layer backwards, every fourth layer sees all keys and has no rotation. The epsilons are so
    # large that a wrong one changes the logits.
    "muse_glimmer": (
        dict(
            model_type="muse_glimmer_text",
            architectures=["MuseGlimmerText"],
            hidden_size=30,
            intermediate_size=42,
            num_hidden_layers=5,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=14,
            vocab_size=127,
            max_position_embeddings=128,
            rms_norm_eps=1e-3,
            post_norm_eps=1e-2,
            hidden_activation="silu",
            tie_word_embeddings=False,
            attention_bias=False,
            sliding_window=7,
            qk_scale_factor=2.3,
            output_multiplier=0.4,
            final_logit_softcapping=5.0,
            pad_token_id=0,
            rope_parameters=dict(rope_type="default", rope_theta=500000.0),
        ),
        dict(rope_theta=500000.0, rope_scaling=None, layer_types=None, layer_rope_theta=None),
        {},
        29,
    ),
    # Muse Glimmer with a tied head, another order of windows and of layers without rotation, and a scaled rotation.
    "muse_glimmer-tied": (
        dict(
            model_type="muse_glimmer_text",
            architectures=["MuseGlimmerText"],
            hidden_size=28,
            intermediate_size=38,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=10,
            vocab_size=113,
            max_position_embeddings=128,
            rms_norm_eps=1e-5,
            post_norm_eps=1e-8,
            hidden_activation="gelu_pytorch_tanh",
            tie_word_embeddings=True,
            attention_bias=False,
            sliding_window=9,
            layer_types=["full_attention", "sliding_attention", "sliding_attention"],
            layer_rope_theta=[10000.0, 0, 10000.0],
            qk_scale_factor=1.7,
            output_multiplier=0.25,
            final_logit_softcapping=8.0,
            pad_token_id=0,
            rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0),
        ),
        dict(rope_theta=10000.0, rope_scaling=dict(rope_type="linear", factor=4.0)),
        dict(dtype=torch.bfloat16, max_shard_size="10KB"),
        30,
    ),
    # One key head, heads wider than hidden / num_heads. The first files call GELU's approximation `gelu`.
    "gemma": (
        dict(
            model_type="gemma",
            architectures=["GemmaForCausalLM"],
            hidden_size=30,
            intermediate_size=44,
            num_hidden_layers=3,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=14,
            vocab_size=127,
            max_position_embeddings=128,
            rms_norm_eps=1e-6,
            hidden_act="gelu_pytorch_tanh",
            tie_word_embeddings=True,
            attention_bias=False,
            pad_token_id=0,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        ),
        dict(rope_theta=10000.0, rope_scaling=None, hidden_act="gelu", hidden_activation=None),
        {},
        31,
    ),
}
# Number of new tokens of the greedy continuation, for models with more than NEW.
NEW_BY_MODEL = {"qwen3_5": 200}

# Checkpoints of models that also see images, made from a model above: (model, model_type, class)
NESTED = {
    "gemma3-nested": ("gemma3", "gemma3", "Gemma3ForConditionalGeneration"),
    "ministral3-nested": ("ministral3", "mistral3", "Mistral3ForConditionalGeneration"),
    "qwen3_5-nested": ("qwen3_5", "qwen3_5", "Qwen3_5ForConditionalGeneration"),
    "gemma4-nested": ("gemma4", "gemma4", "Gemma4ForConditionalGeneration"),
    "gemma4-unified-nested": (
        "gemma4-unified",
        "gemma4_unified",
        "Gemma4UnifiedForConditionalGeneration",
    ),
    "muse_glimmer-nested": (
        "muse_glimmer",
        "muse_glimmer",
        "MuseGlimmerForConditionalGeneration",
    ),
}


def norm_centre(model, name):
    """The weight with which the norm only normalises."""
    model_type = model.config.model_type
    is_zero_centred = model_type == "gemma" or model_type.startswith(
        ("gemma2", "gemma3", "qwen3_5", "muse_glimmer")
    )
    is_plain = ".linear_attn." in name or (model_type, name) == (
        "muse_glimmer_text",
        "model.norm.weight",
    )
    return 0.0 if is_zero_centred and not is_plain else 1.0


def embedding_scale(model):
    """Gemma multiplies embeddings by the root of their width and caps no logits: larger ones leave one likely token."""
    return 0.15 if model.config.model_type == "gemma" else 0.5


def randomise(model, seed):
    """Sets weights so large that a wrong rule changes the logits."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name:
                parameter.copy_(0.3 * noise + norm_centre(model, name))
            elif parameter.dim() == 1:
                parameter.copy_(0.3 * noise)
            elif "embed" in name:
                parameter.copy_(embedding_scale(model) * noise)
            elif "linear_attn.in_proj" in name:
                parameter.copy_(noise * 0.6 / parameter.shape[1] ** 0.5)
            else:
                parameter.copy_(noise * 1.2 / parameter.shape[1] ** 0.5)
        for _, scalar in layer_scalars(model):
            scalar.copy_(1 + 0.3 * torch.randn(scalar.shape, generator=generator))


def layer_scalars(model):
    """The layer_scalar buffers of Gemma 4, which are stored and never trained."""
    return [(name, value) for name, value in model.named_buffers() if name.endswith("layer_scalar")]


def load(folder, dtype=torch.float32):
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager"
    ).eval()


def evaluate(model, rows):
    """Logits [sum of lengths, V], summed next-token loss, and gradient norms by parameter."""
    logits, loss = [], 0.0
    for row in rows:
        out = model(input_ids=row[None]).logits[0]
        loss = loss + torch.nn.functional.cross_entropy(out[:-1], row[1:], reduction="sum")
        logits.append(out.detach())
    model.zero_grad()
    loss.backward()
    norms = {name: parameter.grad.norm().item() for name, parameter in model.named_parameters()}
    norms.update({name: 0.0 for name, _ in layer_scalars(model)})
    return torch.cat(logits), loss.item(), norms


def greedy(model, prompt, tokens):
    """Greedy continuation. Every pass has the final length, because the length selects the factors of longrope."""
    ids = torch.cat([prompt, prompt.new_zeros(tokens)])
    for end in range(len(prompt), len(ids)):
        logits = model(input_ids=ids[None]).logits[0, end - 1]
        best = logits.topk(2).values
        assert best[0] - best[1] > MARGIN, "rounding may change the continuation: take another seed"
        ids[end] = logits.argmax()
    return ids[len(prompt) :]


def make(name):
    v5, v4, saving, seed = MODELS[name]
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**COMMON, **v5}))
    from transformers import AutoConfig

    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    randomise(model, seed)
    saving = dict(saving)
    model.to(saving.pop("dtype", torch.float32)).save_pretrained(folder, **saving)
    (folder / "generation_config.json").unlink(missing_ok=True)

    config = json.loads((folder / "config.json").read_text())
    dtype = config.pop("dtype")
    for key in ("rope_parameters", "per_layer_config", "transformers_version"):
        config.pop(key, None)
    config.update(v4, torch_dtype=dtype)
    (folder / "config.v4.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")

    generator = torch.Generator().manual_seed(seed + 100)
    rows = [torch.randint(3, v5["vocab_size"], (n,), generator=generator) for n in ROWS]
    model = load(folder)
    logits, loss, norms = evaluate(model, rows)
    if v5["model_type"] == "muse_glimmer_text":
        glimmer_text.check(model, rows, logits)
    with torch.no_grad():
        continuation = greedy(model, rows[0][:PROMPT], NEW_BY_MODEL.get(name, NEW))
    save_file(
        {"row_0": rows[0], "row_1": rows[1], "logits": logits, "greedy": continuation},
        folder / "golden.safetensors",
    )
    (folder / "golden.json").write_text(
        json.dumps({"loss": loss, "prompt_tokens": PROMPT, "gradient_norms": norms}, indent=1)
        + "\n"
    )
    check_v4(folder, rows, logits)
    make_bf16(name)


def make_bf16(name):
    folder = HERE / name
    golden = load_file(folder / "golden.safetensors")
    model = load(folder, torch.bfloat16)
    with torch.no_grad():
        logits = [model(input_ids=golden[row][None]).logits[0] for row in ("row_0", "row_1")]
    save_file({"logits": torch.cat(logits)}, folder / "bf16.safetensors")


def check_v4(folder, rows, logits):
    """Checks that transformers computes the same logits with the older spelling of the configuration."""
    older = HERE / "older-spelling"
    shutil.rmtree(older, ignore_errors=True)
    shutil.copytree(folder, older)
    (older / "config.v4.json").rename(older / "config.json")
    again, _, _ = evaluate(load(older), rows)
    shutil.rmtree(older)
    assert torch.equal(again, logits), folder


def make_nested(name):
    """Writes a model in the form of checkpoints that also see or hear: under text_config, beside a vision tower."""
    text_name, model_type, architecture = NESTED[name]
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    text = json.loads((HERE / text_name / "config.v4.json").read_text())
    text.pop("architectures")
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model_type": model_type,
                "architectures": [architecture],
                "torch_dtype": "float32",
                "eos_token_id": [1, 106],
                "text_config": text,
                "vision_config": {"hidden_size": 8},
            },
            indent=2,
            sort_keys=True,
        )
        + "\n"
    )
    text_tensors = load_file(HERE / text_name / "model.safetensors")
    others = {
        "qwen3_5": ("model.visual.patch_embed.proj.weight", "mtp.norm.weight"),
        "muse_glimmer": ("model.vision_adapter.fc1.weight", "model.vision_projection.weight"),
    }
    if model_type in others:
        tensors = {
            k.replace("model.", "model.language_model.", 1): v for k, v in text_tensors.items()
        }
        tensors[others[model_type][0]] = torch.zeros(2, 3)
        tensors[others[model_type][1]] = torch.zeros(4)
    elif model_type == "gemma4_unified":
        tensors = {
            k.replace("model.", "model.language_model.", 1): v for k, v in text_tensors.items()
        }
        tensors["model.vision_embedder.patch_dense.weight"] = torch.zeros(2, 3)
        tensors["model.embed_audio.embedding_projection.weight"] = torch.zeros(3, 2)
    elif model_type == "gemma4":
        tensors = {
            k.replace("model.", "model.language_model.", 1): v for k, v in text_tensors.items()
        }
        tensors["model.vision_tower.patch_embedder.input_proj.weight"] = torch.zeros(2, 3)
        tensors["model.audio_tower.output_proj.bias"] = torch.zeros(4)
        tensors["model.embed_vision.embedding_projection.weight"] = torch.zeros(3, 2)
        # Published files have key and value projections that are never read.
        unread = "model.language_model.layers.4.self_attn"
        tensors[f"{unread}.k_proj.weight"] = torch.zeros(14, 30)
        tensors[f"{unread}.k_norm.weight"] = torch.zeros(14)
    else:
        tensors = {"language_model." + k: v for k, v in text_tensors.items()}
        tensors["vision_tower.vision_model.embeddings.weight"] = torch.zeros(2, 3)
        tensors["multi_modal_projector.mm_soft_emb_norm.weight"] = torch.zeros(4)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    for file in ("golden.json", "golden.safetensors", "bf16.safetensors"):
        shutil.copy(HERE / text_name / file, folder / file)


if __name__ == "__main__":
    names = [word for word in sys.argv[1:] if word != "--bf16"]
    for model_name in MODELS:
        if model_name in (names or MODELS):
            if "--bf16" in sys.argv:
                make_bf16(model_name)
            else:
                make(model_name)
    for model_name in NESTED:
        if model_name in (names or NESTED):
            make_nested(model_name)
