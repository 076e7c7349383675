// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sampler/allowed_ids.h"

#include <algorithm>
#include <limits>

namespace convoy::kernels::sampler {

void AllowedIds::set(std::span<const uint32_t> words, int64_t num_ids) {
  const auto most_words = static_cast<size_t>((num_ids + kWordBits - 1) / kWordBits);
  words_ = words.first(std::min(words.size(), most_words));
  const auto unused = static_cast<int>(std::ssize(words_) * kWordBits - num_ids);
  last_bits_ = std::numeric_limits<uint32_t>::max() >> std::max(unused, 0);
  before_.resize(words_.size() + 1);
  before_.front() = 0;
  for (size_t word = 0; word < words_.size(); ++word)
    before_[word + 1] = before_[word] + std::popcount(bits_of(word));
}

int64_t AllowedIds::id_at(int64_t place) const {
  const auto behind = std::upper_bound(before_.begin(), before_.end(), place);
  const auto word = static_cast<size_t>(behind - before_.begin()) - 1;
  uint32_t bits = bits_of(word);
  for (int64_t left = place - before_[word]; left > 0; --left) bits &= bits - 1;
  return static_cast<int64_t>(word) * kWordBits + std::countr_zero(bits);
}

int64_t AllowedIds::place_of(int64_t id) const {
  const auto word = static_cast<size_t>(id / kWordBits);
  if (id < 0 || word >= words_.size()) return kNoPlace;
  const uint32_t bit = 1U << (id % kWordBits);
  if ((bits_of(word) & bit) == 0) return kNoPlace;
  return before_[word] + std::popcount(bits_of(word) & (bit - 1));
}

}  // namespace convoy::kernels::sampler
