// SPDX-License-Identifier: Apache-2.0
//
// The definition of sample_tokens(): a full sort in double. For tests.
#pragma once

#include <span>
#include <vector>

#include "convoy/model/kernels/sampler/sampler.h"

namespace convoy::kernels::reference {

struct Share {
  int64_t id = 0;
  // Cumulated probability of the kept ids up to this one. A draw between the previous end and this
  // end picks this id.
  double end = 0;
};

// The ids that may be picked, rising; empty where there is no token to pick.
std::vector<Share> shares_of_row(std::span<const double> logits, const SamplingRule& rule,
                                 std::span<const int32_t> seen = {});

}  // namespace convoy::kernels::reference
