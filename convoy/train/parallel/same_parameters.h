// SPDX-License-Identifier: Apache-2.0
//
// The start of a replicated run: every rank must train the same parameters, from the same values.
#pragma once

#include <vector>

#include "convoy/model/nn/named_tensor.h"
#include "convoy/train/comm/group.h"

namespace convoy::parallel {

// Collective. Throws ConfigError naming the first parameter whose name, shape or dtype differs from
// rank 0's.
void check_same_parameters(comm::Group& group, const std::vector<nn::NamedTensor>& parameters);

// Collective. Every rank gets the values of rank 0.
void broadcast_values(comm::Group& group, const std::vector<nn::NamedTensor>& parameters);

}  // namespace convoy::parallel
