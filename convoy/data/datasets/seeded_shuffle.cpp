// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/seeded_shuffle.h"

#include <numeric>
#include <utility>

#include "convoy/core/base/hash.h"

namespace convoy::data {

std::vector<int64_t> seeded_permutation(int64_t count, std::initializer_list<uint64_t> words) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::vector<uint64_t> counter(words);
  counter.push_back(0);
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    counter.back() = i;
    // The high word of a 128-bit product (Lemire's method); the bias is below count / 2^64.
    const auto product = static_cast<unsigned __int128>(mix_seed(counter)) * (order.size() - i);
    std::swap(order[i], order[i + static_cast<size_t>(product >> 64)]);
  }
  return order;
}

}  // namespace convoy::data
