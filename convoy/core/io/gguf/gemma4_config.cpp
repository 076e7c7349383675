// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/gemma4_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convoy/core/io/gguf/rope_divisors.h"

namespace convoy::gguf {
namespace {

constexpr int64_t kMostOfLayer = int64_t{1} << 24;
constexpr int64_t kMostWindow = int64_t{1} << 31;
constexpr const char* kHeadsOfKeys = "attention.head_count_kv";
constexpr const char* kWidthOfFfn = "feed_forward_length";

std::string gemma4_key(const char* name) { return fmt::format("{}.{}", kGemma4, name); }

// A number for each layer, where the file has a list of them or one for all.
std::vector<int64_t> numbers_by_layer(const File& file, const char* name, int64_t num_layers) {
  const std::string key = gemma4_key(name);
  const auto found = file.metadata().find(key);
  const bool is_list =
      found != file.metadata().end() && std::holds_alternative<List>(found->second);
  std::vector<int64_t> numbers =
      is_list ? std::get<List>(found->second).integers
              : std::vector<int64_t>(static_cast<size_t>(num_layers),
                                     file.require_integer(key, 1, kMostOfLayer));
  if (std::ssize(numbers) < num_layers)
    file.fail(key, fmt::format("lists fewer than {} layers, as many as there are", num_layers));
  numbers.resize(static_cast<size_t>(num_layers));
  for (const int64_t number : numbers)
    if (number < 1 || number > kMostOfLayer) file.fail(key, fmt::format("{} is no size", number));
  return numbers;
}

std::vector<bool> read_slides(const File& file, int64_t num_layers) {
  const std::string key = gemma4_key("attention.sliding_window_pattern");
  const List* const listed = file.list(key);
  if (listed == nullptr || std::ssize(listed->integers) < num_layers)
    file.fail(key, fmt::format("wanted a truth value for each of {} layers", num_layers));
  std::vector<bool> slides;
  for (int64_t layer = 0; layer < num_layers; ++layer)
    slides.push_back(listed->integers[static_cast<size_t>(layer)] != 0);
  if (slides.back()) file.fail(key, "the last layer must see all keys");
  return slides;
}

// The same number in all layers with a window, or in all without; `other` where there is none.
int64_t number_of_kind(const File& file, const char* name, const std::vector<int64_t>& numbers,
                       const std::vector<bool>& slides, bool kind, int64_t other) {
  int64_t found = 0;
  for (size_t layer = 0; layer < slides.size(); ++layer) {
    if (slides[layer] != kind) continue;
    if (found != 0 && numbers[layer] != found)
      file.fail(gemma4_key(name), "layers of one kind that differ are not supported");
    found = numbers[layer];
  }
  return found == 0 ? other : found;
}

void read_ffn(const File& file, const std::vector<int64_t>& sizes, Gemma4Layers& layers) {
  const auto num_own = static_cast<size_t>(std::ssize(sizes) - layers.num_shared);
  layers.ffn_size = sizes.front();
  layers.is_double_wide = layers.num_shared > 0 && sizes.back() == 2 * layers.ffn_size;
  for (size_t layer = 0; layer < sizes.size(); ++layer) {
    const bool is_double = layers.is_double_wide && layer >= num_own;
    if (sizes[layer] != (is_double ? 2 : 1) * layers.ffn_size)
      file.fail(
          gemma4_key(kWidthOfFfn),
          fmt::format("{} in layer {} beside {}: only layers that share keys may be wider, by "
                      "twice",
                      sizes[layer], layer, layers.ffn_size));
  }
}

int64_t read_head(const File& file, const char* keys, const char* values, int64_t usual) {
  const int64_t head_dim = file.integer(gemma4_key(keys), 2, kMostOfLayer).value_or(usual);
  if (file.integer(gemma4_key(values), 1, kMostOfLayer).value_or(head_dim) != head_dim)
    file.fail(gemma4_key(values), fmt::format("differs from the keys' {}", head_dim));
  if (head_dim % 2 != 0)
    file.fail(gemma4_key(keys), fmt::format("{} features cannot be rotated in pairs", head_dim));
  return head_dim;
}

// The share of pairs that rotate, such that floor(share * head_dim / 2) is their number again.
double rotated_share_of(const File& file, const std::vector<float>& divisors) {
  const auto pairs = static_cast<int64_t>(divisors.size());
  int64_t rotated = 0;
  while (rotated < pairs && divisors[static_cast<size_t>(rotated)] == 1.0f) ++rotated;
  for (int64_t pair = rotated; pair < pairs; ++pair)
    if (divisors[static_cast<size_t>(pair)] < 0.99f * static_cast<float>(kUnrotatedDivisor))
      file.fail(kLlama3Divisors, "only whole pairs may be left as they are");
  if (rotated == 0) file.fail(kLlama3Divisors, "leaves no feature to be rotated");
  const double share = static_cast<double>(rotated) / static_cast<double>(pairs);
  return share * static_cast<double>(pairs) < static_cast<double>(rotated)
             ? std::nextafter(share, 1.0)
             : share;
}

}  // namespace

Gemma4Layers read_gemma4_layers(const File& file, int64_t num_layers) {
  Gemma4Layers layers{.slides = read_slides(file, num_layers)};
  layers.full_head_dim = read_head(file, "attention.key_length", "attention.value_length", 512);
  layers.head_dim = read_head(file, kSlidingKeyLength, kSlidingValueLength, layers.full_head_dim);
  const std::vector<int64_t> heads = numbers_by_layer(file, kHeadsOfKeys, num_layers);
  layers.full_kv_heads =
      number_of_kind(file, kHeadsOfKeys, heads, layers.slides, false, heads.front());
  layers.kv_heads =
      number_of_kind(file, kHeadsOfKeys, heads, layers.slides, true, layers.full_kv_heads);
  layers.num_shared = file.integer(gemma4_key(kSharedKvLayers), 0, num_layers - 1).value_or(0);
  read_ffn(file, numbers_by_layer(file, kWidthOfFfn, num_layers), layers);
  layers.input_width = file.integer(gemma4_key(kLayerInputWidth), 0, kMostOfLayer).value_or(0);
  return layers;
}

io::Json gemma4_config(const File& file, const Gemma4Layers& layers, bool keys_are_values,
                       const std::vector<float>& divisors, int64_t input_vocab) {
  if (!keys_are_values && layers.full_kv_heads != layers.kv_heads)
    file.fail(gemma4_key(kHeadsOfKeys),
              "layers of two kinds may differ only where keys are values too");
  if (std::ssize(divisors) != layers.full_head_dim / 2)
    file.fail(kLlama3Divisors, fmt::format("wanted a divisor for each of {} pairs of features",
                                           layers.full_head_dim / 2));
  const std::string rotated = gemma4_key(kSlidingRotated);
  if (file.integer(rotated, 0, kMostOfLayer).value_or(layers.head_dim) != layers.head_dim)
    file.fail(rotated, fmt::format("only whole heads can be rotated, of {}", layers.head_dim));
  io::Json types = io::Json::array();
  for (const bool slides : layers.slides)
    types.push_back(slides ? "sliding_attention" : "full_attention");
  const auto theta = [&](const char* name, double usual) {
    return file.real(gemma4_key(name)).value_or(usual);
  };
  io::Json config = {
      {"intermediate_size", layers.ffn_size},
      {"use_double_wide_mlp", layers.is_double_wide},
      {"head_dim", layers.head_dim},
      {"global_head_dim", layers.full_head_dim},
      {"num_key_value_heads", layers.kv_heads},
      {"num_kv_shared_layers", layers.num_shared},
      {"attention_k_eq_v", keys_are_values},
      {"hidden_size_per_layer_input", layers.input_width},
      {"layer_types", types},
      {"sliding_window",
       file.require_integer(gemma4_key("attention.sliding_window"), 1, kMostWindow)},
      {"rope_parameters",
       {{"full_attention",
         {{"rope_type", "proportional"},
          {"rope_theta", theta("rope.freq_base", 1e4)},
          {"partial_rotary_factor", rotated_share_of(file, divisors)}}},
        {"sliding_attention",
         {{"rope_type", "default"}, {"rope_theta", theta("rope.freq_base_swa", 1e4)}}}}}};
  if (keys_are_values) config["num_global_key_value_heads"] = layers.full_kv_heads;
  if (layers.input_width > 0) config["vocab_size_per_layer_input"] = input_vocab;
  const double cap = theta("final_logit_softcapping", 0);
  config["final_logit_softcapping"] = cap > 0 ? io::Json(cap) : io::Json();
  return config;
}

}  // namespace convoy::gguf
