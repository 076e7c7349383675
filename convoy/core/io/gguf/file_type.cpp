// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/file_type.h"

#include <fmt/ranges.h>

#include <array>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/text_as.h"

namespace convoy::gguf {
namespace {

constexpr std::array<FileType, 13> kFileTypes = {{{"f32", 0, TensorType::F32},
                                                  {"f16", 1, TensorType::F16},
                                                  {"bf16", 32, TensorType::BF16},
                                                  {"q8_0", 7, TensorType::Q8_0},
                                                  {"q6_k", 18, TensorType::Q6_K},
                                                  {"q5_k_m", 17, TensorType::Q5_K},
                                                  {"q5_k_s", 16, TensorType::Q5_K},
                                                  {"q5_1", 9, TensorType::Q5_1},
                                                  {"q5_0", 8, TensorType::Q5_0},
                                                  {"q4_k_m", 15, TensorType::Q4_K},
                                                  {"q4_k_s", 14, TensorType::Q4_K},
                                                  {"q4_1", 3, TensorType::Q4_1},
                                                  {"q4_0", 2, TensorType::Q4_0}}};

// The layer of a tensor: 3 for "blk.3.attn_v.weight"; -1 for a tensor outside of layers.
int64_t layer_of(const std::string& name) {
  constexpr std::string_view kStart = "blk.";
  if (!name.starts_with(kStart)) return -1;
  return text_as<int64_t>(std::string_view(name).substr(
                              kStart.size(), name.find('.', kStart.size()) - kStart.size()))
      .value_or(-1);
}

// The layers for which more bits are used: the first and the last eighth, and every third of the
// others.
bool is_sensitive(int64_t layer, int64_t num_layers) {
  return layer < num_layers / 8 || layer >= 7 * num_layers / 8 || (layer - num_layers / 8) % 3 == 2;
}

bool divides(TensorType type, int64_t row_values) {
  return row_values % info_of(type).block_values == 0;
}

TensorType wanted_type(const FileType& file, const TypeChoice& model, const std::string& name,
                       int64_t row_values) {
  const bool is_medium = file.name.ends_with("_m"), is_small = file.name.ends_with("_s");
  const int64_t layer = layer_of(name);
  if (name == "output.weight" || (model.tied_head && name == "token_embd.weight")) {
    if (file.usual == TensorType::Q8_0 || !divides(file.usual, row_values)) return TensorType::Q8_0;
    return TensorType::Q6_K;
  }
  if (name.ends_with("attn_v.weight")) {
    TensorType type = file.usual;
    if (is_medium && is_sensitive(layer, model.num_layers)) type = TensorType::Q6_K;
    if (is_small && file.usual == TensorType::Q4_K && layer < 4) type = TensorType::Q5_K;
    // In a 70B model eight heads share these weights, so they get more bits.
    const bool is_70b = model.num_layers == 80 && model.shares_kv_heads;
    return is_70b && type == TensorType::Q4_K ? TensorType::Q5_K : type;
  }
  if (name.ends_with("attn_qkv.weight") && is_medium)
    return file.usual == TensorType::Q4_K ? TensorType::Q5_K : TensorType::Q6_K;
  if (name.ends_with("ffn_down.weight")) {
    if (is_medium && is_sensitive(layer, model.num_layers)) return TensorType::Q6_K;
    if (is_small && file.usual == TensorType::Q4_K && layer < model.num_layers / 8)
      return TensorType::Q5_K;
  }
  return file.usual;
}

// The type to use when the row size is no multiple of the block size of `type`.
TensorType next_type(TensorType type, int64_t row_values) {
  TensorType other = type;
  if (type == TensorType::Q4_K) other = TensorType::Q5_0;
  if (type == TensorType::Q5_K) other = TensorType::Q5_1;
  if (type == TensorType::Q6_K) other = TensorType::Q8_0;
  return divides(other, row_values) ? other : TensorType::F16;
}

}  // namespace

const FileType& file_type(std::string_view name) {
  for (const FileType& type : kFileTypes)
    if (type.name == name) return type;
  throw ConfigError(fmt::format("`{}` is no type that is written{}; there are {}", name,
                                did_you_mean(std::string(name), file_type_names()),
                                fmt::join(file_type_names(), ", ")),
                    {.key = "type"});
}

std::vector<std::string> file_type_names() {
  std::vector<std::string> names;
  for (const FileType& type : kFileTypes) names.emplace_back(type.name);
  return names;
}

ChosenType choose_type(const FileType& file, const TypeChoice& model, const std::string& name,
                       const std::vector<int64_t>& shape) {
  // llama.cpp keeps the few weights of short convolutions as they are.
  if (shape.size() < 2 || name.ends_with("_norm.weight") || name.ends_with("ssm_conv1d.weight"))
    return {};
  // Nor does it round the map of the inputs of all layers to codes.
  if (name == "per_layer_model_proj.weight" && info_of(file.usual).block_values > 1)
    return {TensorType::F16, TensorType::F16};
  const int64_t row_values = shape.back();
  if (info_of(file.usual).block_values == 1) return {file.usual, file.usual};
  const TensorType wanted = wanted_type(file, model, name, row_values);
  if (divides(wanted, row_values)) return {wanted, wanted};
  return {next_type(wanted, row_values), wanted};
}

}  // namespace convoy::gguf
