// SPDX-License-Identifier: Apache-2.0
//
// Gives every rank the small figures of all ranks: one all-reduce.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "convoy/train/comm/group.h"

namespace convoy::comm {

// Collective. Blocks. The words of all ranks, by rank; as many from each.
std::vector<int64_t> exchange_words(Group& group, std::span<const int64_t> own);

// Collective. Blocks. The figures of all ranks, by rank, to the bit.
template <class Figures>
std::vector<Figures> exchange(Group& group, const Figures& own) {
  static_assert(std::is_trivially_copyable_v<Figures> && sizeof(Figures) % sizeof(int64_t) == 0);
  std::vector<int64_t> words(sizeof(Figures) / sizeof(int64_t));
  std::memcpy(words.data(), &own, sizeof(Figures));
  const std::vector<int64_t> gathered = exchange_words(group, words);
  std::vector<Figures> all(static_cast<size_t>(group.size()));
  std::memcpy(static_cast<void*>(all.data()), gathered.data(), all.size() * sizeof(Figures));
  return all;
}

}  // namespace convoy::comm
