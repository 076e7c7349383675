// SPDX-License-Identifier: Apache-2.0
//
// Many tensors that travel as few: laid one after another, by type.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "convoy/train/comm/group.h"

namespace convoy::detail {

// Collective. Blocks. `tensors`, of the same shapes and types on every rank, become root's. Their
// versions stay: a graph that has saved one of them does not mind.
void broadcast_coalesced(comm::Group& group, const std::vector<at::Tensor>& tensors, int root);

}  // namespace convoy::detail
