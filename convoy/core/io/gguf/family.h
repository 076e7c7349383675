// SPDX-License-Identifier: Apache-2.0
//
// The families of models that both llama.cpp and Convoy have: their names there and here, and how
// their tensors differ.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace convoy::gguf {

// How transformers names a layer's norms beside input_layernorm.
enum class NormNames {
  BeforeFfn,  // post_attention_layernorm is the feed-forward's
  Around,     // Gemma, OLMo 2, Seed-OSS: post_attention_layernorm is attention's
  GlmsAround,
};

struct Family {
  std::string_view architecture;  // general.architecture
  std::string_view model_type;    // value of this key in config.json
  std::string_view class_name;    // transformers' class
  // Rows of a head's queries and keys: llama.cpp rotates neighbours, transformers halves.
  bool permuted = false;
  bool norms_plus_one = false;  // Gemma: the file holds 1 + w
  NormNames norms = NormNames::BeforeFfn;
  bool fused = false;         // gate and up are one map, of Phi queries, keys and values too
  bool rotates_part = false;  // partial_rotary_factor says how much of a head
};

std::span<const Family> families();
// By general.architecture. Null: none.
const Family* family_of_architecture(std::string_view architecture);
// By config.json's model_type; several may share an architecture.
const Family* family_of_model_type(std::string_view model_type);

// "blk.3.attn_q.weight" for "model.layers.3.self_attn.q_proj.weight", and the reverse. None for a
// name that the family has not.
std::optional<std::string> file_name_of(const Family& family, std::string_view own_name);
std::optional<std::string> own_name_of(const Family& family, std::string_view file_name);

// The rows of q_proj and k_proj: row `row` of a head of transformers' lies here in the file.
constexpr int64_t permuted_row(int64_t row, int64_t head_dim) {
  const int64_t head = row / head_dim, in_head = row % head_dim, half = head_dim / 2;
  return head * head_dim + (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1);
}

enum class Rows { AsTheyAre, OfQueries, OfKeys };
// Which rows the file has in its own order, by transformers' name of the tensor.
Rows rows_of(const Family& family, std::string_view own_name);
bool is_norm(std::string_view own_name);

}  // namespace convoy::gguf
