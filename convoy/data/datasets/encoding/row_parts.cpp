// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/row_parts.h"

#include <numeric>

#include "convoy/data/datasets/seeded_shuffle.h"

namespace convoy::data {
namespace {

constexpr uint64_t kSplitStream = 0x73706c69742d726full;

}  // namespace

std::vector<uint8_t> parts_of_rows(const std::vector<int64_t>& sizes, uint64_t seed) {
  const int64_t num_rows = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  std::vector<uint8_t> part_of_row(static_cast<size_t>(num_rows), 0);
  const std::vector<int64_t> order = seeded_permutation(num_rows, {kSplitStream, seed});
  auto at = order.begin();
  for (size_t part = 0; part < sizes.size(); ++part)
    for (int64_t count = 0; count < sizes[part]; ++count, ++at)
      part_of_row[static_cast<size_t>(*at)] = static_cast<uint8_t>(part);
  return part_of_row;
}

}  // namespace convoy::data
