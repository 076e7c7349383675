// SPDX-License-Identifier: Apache-2.0
//
// Sends many tensors as a few large ones: the tensors of one type are copied into one tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "convoy/train/comm/group.h"

namespace convoy::detail {

// Collective; blocks. All `tensors` get the values of rank `root`. Shapes and types must be equal
// on every rank. The version counters of the tensors do not change, so a graph that has saved a
// tensor stays valid.
void broadcast_coalesced(comm::Group& group, const std::vector<at::Tensor>& tensors, int root);

}  // namespace convoy::detail
