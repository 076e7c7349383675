// SPDX-License-Identifier: Apache-2.0
//
// The ids that a row allows, numbered from 0 in their order: a CPU draws among their logits alone,
// which are few beside a vocabulary. One thread.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace convoy::kernels::sampler {

inline constexpr int64_t kNoPlace = -1;

class AllowedIds {
 public:
  // `words` as SamplingRow::allowed. Only ids below `num_ids` are taken. `words` must stay valid
  // until the next call.
  void set(std::span<const uint32_t> words, int64_t num_ids);

  int64_t size() const { return before_.back(); }
  int64_t id_at(int64_t place) const;  // 0 <= place < size()
  int64_t place_of(int64_t id) const;  // kNoPlace: the id is not allowed

  // Calls f(begin, count) for runs of ids that follow each other, in their order.
  template <class F>
  void for_each_run(const F& f) const {
    for (size_t word = 0; word < words_.size(); ++word) {
      uint32_t bits = bits_of(word);
      auto begin = static_cast<int64_t>(word) * kWordBits;
      while (bits != 0) {
        const int skipped = std::countr_zero(bits);
        const int count = std::countr_one(bits >> skipped);
        f(begin + skipped, static_cast<int64_t>(count));
        bits = skipped + count == kWordBits ? 0 : bits >> (skipped + count);
        begin += skipped + count;
      }
    }
  }

 private:
  static constexpr int kWordBits = 32;

  uint32_t bits_of(size_t word) const {
    return word + 1 == words_.size() ? words_[word] & last_bits_ : words_[word];
  }

  std::span<const uint32_t> words_;
  uint32_t last_bits_ = 0;          // bits of the last word that stand for ids
  std::vector<int64_t> before_{0};  // allowed ids before each word, and behind the last one
};

}  // namespace convoy::kernels::sampler
