// SPDX-License-Identifier: Apache-2.0
//
// Gives every rank the small figures of all ranks, by one all-reduce.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "convoy/train/comm/group.h"

namespace convoy::comm {

// A running exchange: every rank gets the words (64-bit integers) of all ranks.
class WordExchange {
 public:
  // Collective. Every rank brings the same number of words. `group` outlives this.
  WordExchange(Group& group, std::span<const int64_t> own);
  // Blocks. Returns the words of all ranks, one rank after another. Call it once.
  std::vector<int64_t> wait();

 private:
  at::Tensor slots_;
  std::unique_ptr<Work> sum_;
};

// Collective. Blocks. Returns the words of all ranks, one rank after another.
std::vector<int64_t> exchange_words(Group& group, std::span<const int64_t> own);

// A running exchange of one `Figures` per rank. Every rank gets the figures of all ranks, by rank
// and with the same bits.
template <class Figures>
class Exchange {
 public:
  // Collective. `group` outlives this.
  Exchange(Group& group, const Figures& own) : words_(group, words_of(own)) {}
  std::vector<Figures> wait() {
    const std::vector<int64_t> gathered = words_.wait();
    std::vector<Figures> all(gathered.size() * sizeof(int64_t) / sizeof(Figures));
    std::memcpy(static_cast<void*>(all.data()), gathered.data(), all.size() * sizeof(Figures));
    return all;
  }

 private:
  static std::vector<int64_t> words_of(const Figures& own) {
    static_assert(std::is_trivially_copyable_v<Figures> && sizeof(Figures) % sizeof(int64_t) == 0);
    std::vector<int64_t> words(sizeof(Figures) / sizeof(int64_t));
    std::memcpy(words.data(), &own, sizeof(Figures));
    return words;
  }

  WordExchange words_;
};

// Collective. Blocks. Returns the figures of all ranks, by rank.
template <class Figures>
std::vector<Figures> exchange(Group& group, const Figures& own) {
  return Exchange<Figures>(group, own).wait();
}

}  // namespace convoy::comm
