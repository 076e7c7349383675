// SPDX-License-Identifier: Apache-2.0
//
// A thread rotates 16 bytes of the first half of a head with their partners of the second. x is
// read once and y written once; the tables' rows come from cache, since all heads of a token read
// the same. Reference: rope_aten.cpp.
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/rope/rope_launch.h"

namespace convoy::kernels::gpu {
namespace {

template <class Element, int kCount>
CONVOY_DEVICE void rotate_piece(const RopeLaunch& launch, const RopeHeads& part, uint64_t token,
                                uint64_t head, uint64_t feature) {
  const auto* from = static_cast<const Element*>(part.x) +
                     static_cast<int64_t>(token) * part.token_stride +
                     static_cast<int64_t>(head) * part.head_stride + feature;
  auto* to =
      static_cast<Element*>(part.y) + (token * part.heads + head) * 2 * launch.half + feature;
  const uint64_t row = static_cast<uint64_t>(launch.positions[token]) * launch.half + feature;
  float first[kCount], second[kCount], cos[kCount], sin[kCount];
  load(from, first);
  load(from + launch.half, second);
  load(launch.cos + row, cos);
  load(launch.sin + row, sin);
  for (int i = 0; i < kCount; ++i) {
    const float x = first[i], y = second[i], turned = sin[i] * launch.direction;
    first[i] = x * cos[i] - y * turned;
    second[i] = y * cos[i] + x * turned;
  }
  store(to, first);
  store(to + launch.half, second);
}

template <class Element, int kCount>
CONVOY_DEVICE void rotate(const RopeLaunch& launch) {
  const uint64_t pieces = launch.half / kCount;  // in a half
  const uint64_t before = launch.parts[0].heads, heads = before + launch.parts[1].heads;
  const uint64_t count = launch.tokens * heads * pieces;
  for (uint64_t at = nvidia::thread_number(); at < count; at += nvidia::num_threads()) {
    const uint64_t vector = at / pieces, feature = at % pieces * kCount;
    const uint64_t token = vector / heads, head = vector % heads;
    if (head < before)
      rotate_piece<Element, kCount>(launch, launch.parts[0], token, head, feature);
    else
      rotate_piece<Element, kCount>(launch, launch.parts[1], token, head - before, feature);
  }
}

}  // namespace

#define CONVOY_ROPE(Element, type)                          \
  CONVOY_KERNEL void rope_##type(const RopeLaunch launch) { \
    if (launch.vectors)                                     \
      rotate<Element, kPerLoad<Element>>(launch);           \
    else                                                    \
      rotate<Element, 1>(launch);                           \
  }

CONVOY_ROPE(float, fp32)
CONVOY_ROPE(Bf16, bf16)

}  // namespace convoy::kernels::gpu
