// SPDX-License-Identifier: Apache-2.0
//
// Reads what a GGUF file says of Gemma 4's layers: heads of two sizes, keys and values that later
// layers read, a feed-forward of twice the width there, embeddings for each layer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/io/gguf/file.h"
#include "convoy/core/io/json_text.h"

namespace convoy::gguf {

inline constexpr std::string_view kGemma4 = "gemma4";  // the value of general.architecture

// Keys after "gemma4.".
inline constexpr const char* kSharedKvLayers = "attention.shared_kv_layers";
inline constexpr const char* kSlidingKeyLength = "attention.key_length_swa";
inline constexpr const char* kSlidingValueLength = "attention.value_length_swa";
inline constexpr const char* kSlidingRotated = "rope.dimension_count_swa";
inline constexpr const char* kLayerInputWidth = "embedding_length_per_layer_input";

// The divisor of pairs that the rotation leaves as they are; llama.cpp's converter writes it.
inline constexpr double kUnrotatedDivisor = 1e30;

struct Gemma4Layers {
  std::vector<bool> slides;
  int64_t head_dim = 0;  // in layers with a window
  int64_t kv_heads = 0;
  int64_t full_head_dim = 0;  // in layers that see all keys
  int64_t full_kv_heads = 0;
  int64_t num_shared = 0;  // the last layers, which read the keys and values of earlier ones
  int64_t ffn_size = 0;
  bool is_double_wide = false;  // the feed-forward of the shared layers
  int64_t input_width = 0;      // 0: no embeddings for each layer
};

// Throws DataError for sizes that no Gemma 4 of transformers has.
Gemma4Layers read_gemma4_layers(const File& file, int64_t num_layers);

// These sizes and the rotations, as keys of config.json. `keys_are_values`: layers that see all
// keys have no map of values. `divisors` belong to the rotation of these layers. `input_vocab`:
// the number of rows of the embeddings for each layer.
io::Json gemma4_config(const File& file, const Gemma4Layers& layers, bool keys_are_values,
                       const std::vector<float>& divisors, int64_t input_vocab);

}  // namespace convoy::gguf
