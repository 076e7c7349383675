// SPDX-License-Identifier: Apache-2.0
//
// Maps tokens to the block with their keys and values, so that rows that begin alike share them. A
// key names a full block and all that comes before it. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "convoy/generate/scheduler/block_pool.h"

namespace convoy::scheduler {

// 128 bits of a SHA-256: two prefixes never share a key.
using PrefixKey = std::array<uint64_t, 2>;

// The parent of the key of a row's first block. The root key differs by space, so rows of different
// spaces share no blocks.
PrefixKey root_key(int64_t space);
PrefixKey next_key(const PrefixKey& parent, std::span<const int32_t> tokens);

class PrefixIndex {
 public:
  explicit PrefixIndex(int64_t num_blocks) : key_of_(static_cast<size_t>(num_blocks)) {}

  BlockId find(const PrefixKey& key) const;  // kNoBlock: none
  // From now on `block` holds this prefix. Returns false when another block already holds it;
  // find() still returns the other block.
  bool add(const PrefixKey& key, BlockId block);
  bool holds(BlockId block) const { return key_of_[static_cast<size_t>(block)].used; }
  void forget(BlockId block);  // call before the block gets other tokens

 private:
  struct KeyHash {
    size_t operator()(const PrefixKey& key) const { return key[0]; }
  };
  struct Entry {
    PrefixKey key{};
    bool used = false;
  };
  std::unordered_map<PrefixKey, BlockId, KeyHash> blocks_;
  std::vector<Entry> key_of_;  // by block
};

}  // namespace convoy::scheduler
