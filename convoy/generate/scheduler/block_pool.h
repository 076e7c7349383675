// SPDX-License-Identifier: Apache-2.0
//
// The free blocks of a paged KV cache. A block may have several holders: rows that share a prefix.
// A free block keeps its content until it is taken, and may be held again before that. One thread.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::scheduler {

using BlockId = int32_t;
inline constexpr BlockId kNoBlock = -1;

class BlockPool {
 public:
  explicit BlockPool(int64_t num_blocks);

  int64_t num_blocks() const { return static_cast<int64_t>(holders_.size()); }
  int64_t num_free() const { return num_free_; }
  int64_t num_holders(BlockId block) const;

  // Takes the block that was discarded last or, if no discarded block is left, the block that has
  // been free for longest, and gives it one holder. Throws StateError when no block is free.
  BlockId take();
  void hold(BlockId block);     // one holder more
  void release(BlockId block);  // one holder fewer; a block without holders is free
  void discard(BlockId block);  // release() of useless content: it is taken first

 private:
  // Free blocks in a ring through the sentinel, the longest free first.
  struct Link {
    BlockId before;
    BlockId after;
  };
  BlockId sentinel() const { return static_cast<BlockId>(holders_.size()); }
  void unlink(BlockId block);
  void link_after(BlockId before, BlockId block);
  bool lose_holder(BlockId block);  // true when it was the last holder

  std::vector<int32_t> holders_;  // by block
  std::vector<Link> links_;       // by block, then the sentinel
  int64_t num_free_ = 0;
};

}  // namespace convoy::scheduler
