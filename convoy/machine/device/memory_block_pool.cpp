// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/memory_block_pool.h"

#include <algorithm>

namespace convoy::device {

void* MemoryBlockPool::take(size_t bytes) {
  const std::lock_guard lock(mutex_);
  void* block = reuse(bytes);
  if (block == nullptr) block = make(bytes);
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

void* MemoryBlockPool::reuse(size_t bytes) {
  const auto fitting = kept_.lower_bound(bytes);
  if (fitting == kept_.end() || fitting->first > bytes + bytes / 8) return nullptr;
  const size_t size = fitting->first;
  void* block = fitting->second.block;
  kept_.erase(fitting);
  figures_.kept_bytes -= size;
  figures_.in_use_bytes += size;
  ++figures_.reused_blocks;
  in_use_.emplace(block, size);
  return block;
}

void* MemoryBlockPool::make(size_t bytes) {
  const size_t wanted = figures_.in_use_bytes + bytes;
  const size_t limit = std::max(figures_.most_in_use_bytes, wanted);
  while (!kept_.empty() && wanted + figures_.kept_bytes > limit) release_oldest();
  void* block = nullptr;
  try {
    block = source_.allocate(bytes);
  } catch (...) {
    if (kept_.empty()) throw;
    release_all();
    block = source_.allocate(bytes);
  }
  in_use_.emplace(block, bytes);
  figures_.in_use_bytes = wanted;
  return block;
}

void MemoryBlockPool::release_oldest() {
  const auto oldest = std::min_element(
      kept_.begin(), kept_.end(),
      [](const auto& a, const auto& b) { return a.second.given_back < b.second.given_back; });
  source_.release(oldest->second.block);
  figures_.kept_bytes -= oldest->first;
  kept_.erase(oldest);
}

void MemoryBlockPool::release_all() {
  while (!kept_.empty()) release_oldest();
}

}  // namespace convoy::device
