// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/memory_block_pool.h"

#include <algorithm>
#include <bit>

namespace convoy::device {
namespace {

// Beyond this, room is not doubled: addresses may be limited, too.
constexpr size_t kMostSpareRoom = 64 << 20;

// Equal for sizes that may become each other: a block's room does not change.
size_t room_of(size_t bytes) {
  return std::min(std::bit_ceil(bytes),
                  (bytes + kMostSpareRoom - 1) / kMostSpareRoom * kMostSpareRoom);
}

}  // namespace

void* MemoryBlockPool::take(size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto kept = nearest(bytes);
  void* block = kept == kept_.end() ? make(bytes) : reuse(kept, bytes);
  figures_.most_in_use_bytes = std::max(figures_.most_in_use_bytes, figures_.in_use_bytes);
  return block;
}

bool MemoryBlockPool::give_back(void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = in_use_.find(block);
  if (found == in_use_.end()) return false;
  figures_.in_use_bytes -= found->second;
  figures_.kept_bytes += found->second;
  kept_.emplace(found->second, KeptBlock{block, clock_++});
  in_use_.erase(found);
  return true;
}

void MemoryBlockPool::release_kept() {
  const std::lock_guard lock(mutex_);
  release_all();
}

void MemoryBlockPool::forget() {
  const std::lock_guard lock(mutex_);
  release_all();
  figures_.most_in_use_bytes = figures_.in_use_bytes;
}

MemoryBlockPool::Figures MemoryBlockPool::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

MemoryBlockPool::Kept::iterator MemoryBlockPool::nearest(size_t bytes) {
  const auto has_room = [&](Kept::iterator kept) { return room_of(kept->first) == room_of(bytes); };
  const auto above = kept_.lower_bound(bytes);
  if (above != kept_.end() && above->first <= bytes + bytes / 8) return above;
  const auto below = above == kept_.begin() ? kept_.end() : std::prev(above);
  const bool can_shrink = above != kept_.end() && has_room(above);
  const bool can_grow = below != kept_.end() && has_room(below);
  if (can_shrink && can_grow) return above->first - bytes < bytes - below->first ? above : below;
  if (can_shrink) return above;
  return can_grow ? below : kept_.end();
}

void* MemoryBlockPool::reuse(Kept::iterator kept, size_t bytes) {
  void* block = kept->second.block;
  const size_t old_size = kept->first;
  size_t size = old_size;
  kept_.erase(kept);
  figures_.kept_bytes -= old_size;
  if (size > bytes + bytes / 8) source_.shrink(block, size = bytes, old_size);
  if (size < bytes) {
    figures_.added_bytes += bytes - size;
    size = bytes;
  }
  figures_.in_use_bytes += size;
  release_over(std::max(figures_.most_in_use_bytes, figures_.in_use_bytes));
  ++figures_.reused_blocks;
  in_use_.emplace(block, size);
  return block;
}

void* MemoryBlockPool::make(size_t bytes) {
  const size_t wanted = figures_.in_use_bytes + bytes;
  release_over(std::max(figures_.most_in_use_bytes, wanted) - bytes);
  void* block = nullptr;
  try {
    block = source_.allocate(bytes, room_of(bytes));
  } catch (...) {
    if (kept_.empty()) throw;
    release_all();
    block = source_.allocate(bytes, room_of(bytes));
  }
  in_use_.emplace(block, bytes);
  figures_.in_use_bytes = wanted;
  figures_.added_bytes += bytes;
  return block;
}

// Releases kept blocks until they and the blocks in use have at most `limit_bytes`.
void MemoryBlockPool::release_over(size_t limit_bytes) {
  while (!kept_.empty() && figures_.in_use_bytes + figures_.kept_bytes > limit_bytes)
    release_oldest();
}

void MemoryBlockPool::release_oldest() {
  const auto oldest = std::min_element(
      kept_.begin(), kept_.end(),
      [](const auto& a, const auto& b) { return a.second.given_back < b.second.given_back; });
  source_.release(oldest->second.block, room_of(oldest->first));
  figures_.kept_bytes -= oldest->first;
  kept_.erase(oldest);
}

void MemoryBlockPool::release_all() {
  while (!kept_.empty()) release_oldest();
}

}  // namespace convoy::device
