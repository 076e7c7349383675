// SPDX-License-Identifier: Apache-2.0
//
// The families of models that both llama.cpp and Convoy have: their names in both programs, and the
// differences between their tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace convoy::gguf {

// How transformers names the norms of a layer other than input_layernorm.
enum class NormNames {
  BeforeFfn,  // post_attention_layernorm is before the feed-forward
  Around,     // Gemma, OLMo 2, Seed-OSS: post_attention_layernorm is after attention
  GlmsAround,
};

struct Family {
  std::string_view architecture;  // value of general.architecture
  std::string_view model_type;    // value of this key in config.json
  std::string_view class_name;    // transformers' class
  // True: the rows of queries and keys of a head are in llama.cpp's order. llama.cpp rotates
  // neighbouring rows, transformers rotates the two halves of a head.
  bool permuted = false;
  // Gemma up to 3, Qwen3.5, Muse Glimmer: the file holds 1 + w.
  bool norms_plus_one = false;
  bool final_norm_as_it_is = false;  // with norms_plus_one: but for the last norm
  NormNames norms = NormNames::BeforeFfn;
  bool fused_qkv = false;      // queries, keys and values are one map
  bool fused_gate_up = false;  // gate and up are one map
  bool rotates_part = false;   // partial_rotary_factor says how much of a head
  bool delta_net = false;      // some layers have Gated DeltaNet in place of attention
  // Embeddings for each layer, and a number that multiplies its output (Gemma 4).
  bool layer_inputs = false;
  // Attention's gate is a map of its own, and norms of queries and keys hold the scale of scores,
  // which config.json has as a number (Muse Glimmer).
  bool gate_map = false;
  // Two families may share an architecture. Then only files of this family have the key `told_by`,
  // after the architecture's name, with a number other than 0. Empty: any file.
  std::string_view told_by = {};
};

std::span<const Family> families();
// Finds the family in which a model is written, by the model_type of its language model; "gemma3"
// is accepted beside "gemma3_text". Null: there is none.
const Family* family_of_model_type(std::string_view model_type);
// Finds the family of a file whose base has this model_type. Null: there is none.
const Family* family_of(std::string_view architecture, std::string_view model_type);

// "blk.3.attn_q.weight" for "model.layers.3.self_attn.q_proj.weight", and the reverse. Returns
// nullopt for a name that the family does not have.
std::optional<std::string> file_name_of(const Family& family, std::string_view own_name);
std::optional<std::string> own_name_of(const Family& family, std::string_view file_name);

// For q_proj and k_proj: the row of the file that holds row `row` of transformers' weight.
constexpr int64_t permuted_row(int64_t row, int64_t head_dim) {
  const int64_t head = row / head_dim, in_head = row % head_dim, half = head_dim / 2;
  return head * head_dim + (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1);
}

enum class Rows { AsTheyAre, OfQueries, OfKeys };
// Tells whether the file has the rows of this tensor in llama.cpp's order. `own_name`:
// transformers' name.
Rows rows_of(const Family& family, std::string_view own_name);
// How the file stores the values of a tensor.
enum class Stored {
  AsTheyAre,
  PlusOne,   // 1 + w: weights of norms that transformers adds 1 to
  MinusExp,  // -exp(w): Gated DeltaNet's A_log
};
Stored stored_as(const Family& family, std::string_view own_name);

}  // namespace convoy::gguf
