// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/scheduler/prefix_index.h"

#include <cstring>

#include "convoy/core/base/hash.h"

namespace convoy::scheduler {
namespace {

PrefixKey first_words(Sha256& hash) {
  const std::array<uint8_t, 32> digest = hash.digest();
  PrefixKey key;
  std::memcpy(key.data(), digest.data(), sizeof(key));
  return key;
}

}  // namespace

PrefixKey root_key(int64_t space) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(&space, 1)));
  return first_words(hash);
}

PrefixKey next_key(const PrefixKey& parent, std::span<const int32_t> tokens) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(parent)));
  hash.update(std::as_bytes(tokens));
  return first_words(hash);
}

BlockId PrefixIndex::find(const PrefixKey& key) const {
  const auto found = blocks_.find(key);
  return found == blocks_.end() ? kNoBlock : found->second;
}

bool PrefixIndex::add(const PrefixKey& key, BlockId block) {
  const bool is_new = blocks_.try_emplace(key, block).second;
  if (is_new) key_of_[block] = {key, true};
  return is_new;
}

void PrefixIndex::forget(BlockId block) {
  if (!key_of_[block].used) return;
  blocks_.erase(key_of_[block].key);
  key_of_[block] = {};
}

}  // namespace convoy::scheduler
