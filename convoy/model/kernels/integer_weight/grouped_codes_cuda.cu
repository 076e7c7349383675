// SPDX-License-Identifier: Apache-2.0
//
// One pass over the codes into values that a product of many rows reads next. A vector of values
// lies in one word of codes. Rounded as integer_weight.cpp rounds them.
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/integer_weight/grouped_codes_launch.h"

namespace convoy::kernels::gpu {
namespace {

template <class Element>
CONVOY_DEVICE void decode_groups(const DecodeGroupsLaunch& launch) {
  for_elements<kPerLoad<Element>>(launch.count, launch.num_vectors, [&](uint64_t at, auto count) {
    constexpr int kCount = decltype(count)::value;
    const uint64_t output = at / launch.inputs, input = at % launch.inputs;
    const uint32_t word = launch.words[output * launch.row_words + input / 8];
    const uint32_t both = launch.scales[output * launch.groups + (input >> launch.group_bits)];
    const float scale = as_float(both << 16), offset = as_float(both & 0xffff0000u);
    float values[kCount];
    for (int i = 0; i < kCount; ++i) {
      const auto place = static_cast<uint32_t>(input % 8) + i;
      const auto raised = static_cast<int>(word >> (place / 2 * 4 + place % 2 * 16) & 15);
      values[i] = static_cast<float>(raised - 8) * scale + offset;
    }
    store(static_cast<Element*>(launch.values) + at, values);
  });
}

}  // namespace

CONVOY_KERNEL void decode_groups_fp32(const DecodeGroupsLaunch launch) {
  decode_groups<float>(launch);
}
CONVOY_KERNEL void decode_groups_bf16(const DecodeGroupsLaunch launch) {
  decode_groups<Bf16>(launch);
}

}  // namespace convoy::kernels::gpu
