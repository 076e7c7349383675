// SPDX-License-Identifier: Apache-2.0
//
// Parts of config.json that families share, in the v4 and the v5 style of transformers. Every
// function throws DataError naming file and key.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/io/json_reader.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::families {

inline constexpr std::string_view kPartialRotation = "partial_rotary_factor";
inline constexpr std::string_view kOutputGate = "attn_output_gate";

// Throw for settings that change the maths and that no family has (experts, ...), or that this
// family lacks. refuse_unsupported_but() is for a family that has the forms which `keys_of_forms`
// request.
void refuse_unsupported(const io::JsonReader& config);
void refuse_unsupported_but(const io::JsonReader& config,
                            std::initializer_list<std::string_view> keys_of_forms);

// A soft cap: `fallback` where the key is absent, 0 (none) where it is null.
double read_soft_cap(const io::JsonReader& config, const std::string& key, double fallback = 0.0);

architecture::Activation read_activation(const io::JsonReader& config, const std::string& key,
                                         const std::string& fallback);

// Transformers' values for absent keys. 0: the key is required, except that head_dim and the number
// of kv heads then follow from other keys.
struct SizeDefaults {
  int64_t vocab_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_positions = 2048;
  double norm_epsilon = 1e-6;
};
// Sizes, norm epsilon, head counts; spec.layers gets its length. All in range and consistent.
void read_sizes(const io::JsonReader& config, const SizeDefaults& defaults,
                architecture::DecoderSpec& spec);

// One rotary rule from `parameters` (rope_scaling, or rope_parameters or one layer type of it).
// theta is its rope_theta or `fallback_theta`.
architecture::RopeSpec read_rope_rule(const io::JsonReader& parameters, double fallback_theta,
                                      int64_t max_positions);

// Sets `spec.ropes` to the one rule of all layers: rope_theta + rope_scaling, or rope_parameters.
// YaRN also raises `spec.max_positions`, which must be set.
void read_rope(const io::JsonReader& config, architecture::DecoderSpec& spec,
               double default_theta = 10000.0);

// The same for a family that rotates a share of each head: partial_rotary_factor of the rule or of
// config.json.
struct PartialRotation {
  double usual_share = 1.0;
  bool neighbours = false;  // RopeSpec::neighbours
};
void read_partial_rope(const io::JsonReader& config, const PartialRotation& partial,
                       architecture::DecoderSpec& spec);

// Indices of two rotary rules: for layers without a window, and for layers with one. Newer
// config.json files have the rules by layer type in rope_parameters; older files have rope_scaling
// for layers without a window.
inline constexpr int64_t kFullRope = 0;
inline constexpr int64_t kSlidingRope = 1;
struct ThetaByType {
  double full_theta = 10000.0;
  double sliding_theta = 10000.0;
};
std::vector<architecture::RopeSpec> read_ropes_by_type(const io::JsonReader& config,
                                                       const ThetaByType& fallback,
                                                       int64_t max_positions);

inline constexpr double kLeastTheta = 1.0;
inline constexpr double kMostTheta = 1e15;
inline constexpr int64_t kMostPositions = int64_t{1} << 31;

// True where layer i is "sliding_attention". Empty when `layer_types` is absent.
std::vector<bool> read_layer_types(const io::JsonReader& config, int64_t num_layers);
// The same; without `layer_types` all layers slide except each `interval`-th.
std::vector<bool> read_sliding_layers(const io::JsonReader& config, int64_t num_layers,
                                      int64_t interval);
// The window of each layer, 0 in layers that see all keys. Throws DataError for a window that is
// null in a model with sliding layers.
std::vector<int64_t> read_windows(const io::JsonReader& config, int64_t num_layers,
                                  int64_t interval);
// The same for the layers for which `sliding` is true. `usual`: the window where the key is absent.
std::vector<int64_t> windows_of(const io::JsonReader& config, const std::vector<bool>& sliding,
                                int64_t usual);

// If use_sliding_window is off, no layer has a window. Otherwise the layers that layer_types calls
// sliding have it or, without that list, the layers for which `slides_unlisted` returns true.
void read_optional_windows(const io::JsonReader& config, architecture::DecoderSpec& spec,
                           const std::function<bool(int64_t layer)>& slides_unlisted);

// Qwen's rule: without layer_types, layers slide from max_window_layers on.
void read_qwen_windows(const io::JsonReader& config, architecture::DecoderSpec& spec);

}  // namespace convoy::families
