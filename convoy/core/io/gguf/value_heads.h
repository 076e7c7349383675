// SPDX-License-Identifier: Apache-2.0
//
// The order in which llama.cpp stores the value heads of Gated DeltaNet (Qwen3.5). transformers
// keeps the value heads of a key head side by side; llama.cpp has the first value head of every key
// head, then the second of every key head, and so on (its PR 19468).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace convoy::gguf {

struct ValueHeads {
  int64_t num_key_heads = 0;
  int64_t num_value_heads = 0;
  int64_t key_head_dim = 0;
  int64_t value_head_dim = 0;

  int64_t heads_of_a_key() const { return num_value_heads / num_key_heads; }
  // The place in the file of transformers' head `own`, and the reverse.
  int64_t file_head(int64_t own) const {
    return own % heads_of_a_key() * num_key_heads + own / heads_of_a_key();
  }
  int64_t own_head(int64_t in_file) const {
    return in_file % num_key_heads * heads_of_a_key() + in_file / num_key_heads;
  }
};

// The rows or columns of a tensor that belong to value heads: all from `first` on, `width` each.
struct ValueHeadPart {
  bool columns = false;
  int64_t first = 0;
  int64_t width = 1;

  // The row or column in the file of transformers' `own`.
  int64_t file_place(const ValueHeads& heads, int64_t own) const {
    if (own < first) return own;
    return first + heads.file_head((own - first) / width) * width + (own - first) % width;
  }
};

// `own_name`: transformers' name. Nullopt for a tensor without value heads.
std::optional<ValueHeadPart> value_head_part(const ValueHeads& heads, std::string_view own_name);

}  // namespace convoy::gguf
