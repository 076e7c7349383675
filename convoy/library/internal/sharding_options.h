// SPDX-License-Identifier: Apache-2.0
//
// FullyShardedOptions, checked before anything is sharded.
#pragma once

#include <memory>

#include "convoy/library/fsdp.h"
#include "convoy/train/comm/group.h"

namespace convoy::detail {

// Collective. Returns `options`. Throws ConfigError naming an option that differs between ranks or
// that cannot be honoured.
FullyShardedOptions checked_sharding(const FullyShardedOptions& options, ProcessGroup& group);

// Collective. The group of the ranks that share pieces with this rank; nullptr: all ranks share.
std::unique_ptr<comm::Group> row_of(ProcessGroup& group, const FullyShardedOptions& options);

}  // namespace convoy::detail
