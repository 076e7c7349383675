// SPDX-License-Identifier: Apache-2.0
//
// Everything that tells one decoder-only transformer from another, as plain data. models/ makes it from config.json;
// nn/decoder runs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/kernels/gated_activation/gated_activation.h"
#include "convoy/kernels/rms_norm/rms_norm.h"
#include "convoy/nn/rope_table.h"

namespace convoy::nn {

struct LayerSpec {
  int64_t rope = 0;  // index into DecoderSpec::ropes
  int64_t sliding_window =
      0;  // 0: full attention; else a query sees this many keys, itself among them
};

struct DecoderSpec {
  std::string family;
  int64_t vocab_size = 0;  // padded rows included
  int64_t hidden_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_size = 0;
  int64_t max_positions = 0;

  double norm_epsilon = 1e-6;
  kernels::NormOrder norm_order = kernels::NormOrder::CastThenScale;
  bool query_key_norm = false;  // RMSNorm over head_dim of queries and keys, before the rotation
  bool post_norms =
      false;  // Gemma: attention and feed-forward outputs are normalised before they are added

  bool qkv_bias = false;
  bool attention_output_bias = false;
  bool ffn_bias = false;
  kernels::Activation activation = kernels::Activation::Silu;

  double embedding_scale = 1.0;  // cast to the weight dtype before it multiplies
  double attention_scale = 1.0;
  bool tied_head = false;

  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layers;
};

struct ParameterDeclaration {
  std::string name;  // Hugging Face's
  std::vector<int64_t> shape;
};

// Every parameter of a decoder in checkpoint order; a tied head is not listed.
std::vector<ParameterDeclaration> declare_parameters(const DecoderSpec& spec);

}  // namespace convoy::nn
