// SPDX-License-Identifier: Apache-2.0
#include "convoy/serving/block_pool.h"

#include "convoy/base/error.h"

namespace convoy::serving {

BlockPool::BlockPool(int64_t num_blocks) : holders_(static_cast<size_t>(num_blocks), 0) {
  free_.reserve(holders_.size());
  for (int64_t block = num_blocks; block-- > 0;) free_.push_back(static_cast<BlockId>(block));
}

int64_t BlockPool::num_holders(BlockId block) const {
  return holders_.at(static_cast<size_t>(block));
}

BlockId BlockPool::take() {
  CONVOY_CHECK(!free_.empty(), StateError, "all {} KV blocks are taken", num_blocks());
  const BlockId block = free_.back();
  free_.pop_back();
  holders_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::hold(BlockId block) {
  CONVOY_INVARIANT(num_holders(block) > 0, "block {} is free and gets a holder", block);
  ++holders_[static_cast<size_t>(block)];
}

void BlockPool::release(BlockId block) {
  CONVOY_INVARIANT(num_holders(block) > 0, "block {} is free and loses a holder", block);
  if (--holders_[static_cast<size_t>(block)] == 0) free_.push_back(block);
}

}  // namespace convoy::serving
