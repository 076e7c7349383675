// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/rollouts.h"

#include <algorithm>

namespace convoy::train {

data::EncodedRow row_of(const Rollout& rollout) {
  data::EncodedRow row{.ids = rollout.ids,
                       .supervised = std::vector<uint8_t>(rollout.ids.size(), 1)};
  std::fill_n(row.supervised.begin(), rollout.prompt_tokens, uint8_t{0});
  return row;
}

}  // namespace convoy::train
