// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/ddp/bucket_plan.h"

#include <algorithm>

namespace convoy::parallel {

std::vector<std::vector<size_t>> plan_buckets(const std::vector<size_t>& ready_order,
                                              const std::vector<int64_t>& gradient_bytes,
                                              int64_t cap_bytes) {
  constexpr int64_t kFirstCapBytes = 1 << 20;
  std::vector<std::vector<size_t>> buckets;
  int64_t room_bytes = 0;
  for (const size_t index : ready_order) {
    if (room_bytes <= 0) {
      room_bytes = buckets.empty() ? std::min(kFirstCapBytes, cap_bytes) : cap_bytes;
      buckets.emplace_back();
    }
    buckets.back().push_back(index);
    room_bytes -= gradient_bytes.at(index);
  }
  return buckets;
}

}  // namespace convoy::parallel
