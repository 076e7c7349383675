// SPDX-License-Identifier: Apache-2.0
//
// The KV blocks of layers that see the same keys: all keys of a row, or the keys of a window. A row
// holds a table of blocks by place; places before its window hold none. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convoy/generate/scheduler/block_pool.h"
#include "convoy/generate/scheduler/prefix_index.h"

namespace convoy::scheduler {

struct LayerGroup {
  int64_t window_tokens = 0;  // keys that a query sees, itself among them; 0 = all
  int64_t num_blocks = 0;
};

using BlockTable = std::vector<BlockId>;  // kNoBlock at places before the window

class LayerBlocks {
 public:
  LayerBlocks(const LayerGroup& group, int64_t block_tokens);

  int64_t num_blocks() const { return pool_.num_blocks(); }
  int64_t num_free() const { return pool_.num_free(); }
  int64_t num_holders(BlockId block) const { return pool_.num_holders(block); }

  // The most blocks that a row of `tokens` holds while it computes up to `step_tokens` at a time.
  int64_t most_held(int64_t tokens, int64_t step_tokens) const;
  // The first place that a query at `position` reads.
  int64_t first_place(int64_t position) const;

  // Upper limit of the number of leading `keys` for which has_prefix() can be true.
  int64_t most_shared(std::span<const PrefixKey> keys) const;
  // True when all blocks exist that a query after these full blocks reads.
  bool has_prefix(std::span<const PrefixKey> keys) const;
  // Number of blocks of `keys` that no row holds. Holding them takes as many blocks off num_free().
  int64_t num_unheld(std::span<const PrefixKey> keys) const;
  // Returns the table of a row that begins with `keys`. has_prefix(keys) must be true.
  BlockTable hold_prefix(std::span<const PrefixKey> keys);

  // Number of free blocks that a row needs before it computes up to `end`.
  int64_t missing(const BlockTable& table, int64_t end) const;
  void extend(BlockTable& table, int64_t end);
  // From now on rows find `block` by this prefix, although the block is not computed yet.
  void publish(const PrefixKey& key, BlockId block);
  // Call one of the next two functions after each step, for the blocks published in it.
  // keep_published(): the blocks are computed. retract_published(): they never will be.
  void keep_published() { unsettled_.clear(); }
  void retract_published();
  // Releases the blocks that no query from `position` on reads.
  void drop_below_window(BlockTable& table, int64_t position);
  // Releases the last blocks of a row first, because more rows share the first ones.
  void release(BlockTable& table);

 private:
  void let_go(BlockId block);

  int64_t window_tokens_;
  int64_t block_tokens_;
  BlockPool pool_;
  PrefixIndex index_;
  std::vector<BlockId> unsettled_;  // published, but not yet computed for certain
};

}  // namespace convoy::scheduler
