// SPDX-License-Identifier: Apache-2.0
//
// Which blocks of a paged KV cache are free. A block may have several holders: rows that share a prefix. One thread.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::serving {

using BlockId = int32_t;

class BlockPool {
 public:
  explicit BlockPool(int64_t num_blocks);

  int64_t num_blocks() const { return static_cast<int64_t>(holders_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  int64_t num_holders(BlockId block) const;

  // A free block, with one holder. There must be one. Throws StateError.
  BlockId take();
  void hold(BlockId block);  // one holder more of a block that has one
  void release(BlockId block);  // one holder fewer; without any it is free

 private:
  std::vector<int32_t> holders_;  // by block
  std::vector<BlockId> free_;
};

}  // namespace convoy::serving
