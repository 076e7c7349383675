// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/gemma/gemma.h"

#include <cmath>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {
namespace {

// The first files say `gelu` and mean its approximation, which transformers computes for both.
architecture::Activation read_gelu(const io::JsonReader& config) {
  constexpr const char* kKey = "hidden_act";
  if (config.string_or(kKey, "gelu") == "gelu") return architecture::Activation::GeluTanh;
  return read_activation(config, kKey, "gelu_pytorch_tanh");
}

}  // namespace

architecture::DecoderSpec read_gemma_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  architecture::DecoderSpec spec;
  spec.family = "gemma";
  read_sizes(config,
             {.vocab_size = 256000,
              .num_heads = 16,
              .num_kv_heads = 16,
              .head_dim = 256,
              .max_positions = 8192},
             spec);
  spec.activation = read_gelu(config);
  spec.norm_order = architecture::NormOrder::ScaleByOnePlusThenCast;
  spec.qkv_bias = config.bool_or("attention_bias", false);
  spec.attention_output_bias = spec.qkv_bias;
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", true);
  read_rope(config, spec);
  return spec;
}

}  // namespace convoy::families
