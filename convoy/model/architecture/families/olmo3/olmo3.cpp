// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/olmo3/olmo3.h"

#include <vector>

#include "convoy/model/architecture/families/decoder_config.h"
#include "convoy/model/architecture/families/olmo2/olmo2.h"

namespace convoy::families {
namespace {

// Without layer_types, every fourth layer sees all keys.
std::vector<bool> read_olmo3_windows(const io::JsonReader& config, int64_t num_layers) {
  constexpr int64_t kInterval = 4;
  std::vector<bool> sliding = read_layer_types(config, num_layers);
  if (!sliding.empty()) return sliding;
  for (int64_t i = 0; i < num_layers; ++i) sliding.push_back((i + 1) % kInterval != 0);
  return sliding;
}

}  // namespace

// OLMo 2 with windows. Only layers without a window scale their rotation.
architecture::DecoderSpec read_olmo3_spec(const io::JsonReader& config) {
  constexpr double kDefaultTheta = 5e5;
  architecture::DecoderSpec spec = read_olmo_layers(config, "olmo3");
  const double theta = config.double_or("rope_theta", kDefaultTheta, kLeastTheta, kMostTheta);
  spec.ropes =
      read_ropes_by_type(config, {.full_theta = theta, .sliding_theta = theta}, spec.max_positions);

  const int64_t window = config.int_or("sliding_window", 4096, 1, kMostPositions);
  const std::vector<bool> sliding = read_olmo3_windows(config, spec.num_layers());
  for (int64_t i = 0; i < spec.num_layers(); ++i) {
    if (sliding[i] && config.find("sliding_window") != nullptr && !config.has("sliding_window"))
      config.fail("sliding_window", "is null, but layers of this model have one");
    spec.layers[i] = {.rope = sliding[i] ? kSlidingRope : kFullRope,
                      .sliding_window = sliding[i] ? window : 0};
  }
  return spec;
}

}  // namespace convoy::families
