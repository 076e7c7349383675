// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/olmo3/olmo3.h"

#include <vector>

#include "convoy/model/architecture/families/decoder_config.h"
#include "convoy/model/architecture/families/olmo2/olmo2.h"

namespace convoy::families {

// OLMo 2 with windows. Only layers without a window scale their rotation.
architecture::DecoderSpec read_olmo3_spec(const io::JsonReader& config) {
  constexpr double kDefaultTheta = 5e5;
  architecture::DecoderSpec spec = read_olmo_layers(config, "olmo3");
  const double theta = config.double_or("rope_theta", kDefaultTheta, kLeastTheta, kMostTheta);
  spec.ropes =
      read_ropes_by_type(config, {.full_theta = theta, .sliding_theta = theta}, spec.max_positions);

  constexpr int64_t kInterval = 4;
  const std::vector<int64_t> windows = read_windows(config, spec.num_layers(), kInterval);
  for (size_t i = 0; i < windows.size(); ++i)
    spec.layers[i] = {.rope = windows[i] > 0 ? kSlidingRope : kFullRope,
                      .sliding_window = windows[i]};
  return spec;
}

}  // namespace convoy::families
