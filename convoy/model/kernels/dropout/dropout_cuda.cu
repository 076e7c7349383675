// SPDX-License-Identifier: Apache-2.0
//
// The mask is drop_hash() of each element's number, computed in the pass that reads x and writes y.
// This takes about 30 instructions an element, which on the newest GPUs limit bf16, and not memory.
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/dropout/dropout_launch.h"

namespace convoy::kernels::gpu {
namespace {

template <class Element>
CONVOY_DEVICE void drop(const DropoutLaunch& launch) {
  for_elements<kPerLoad<Element>>(launch.count, launch.num_vectors, [&](uint64_t at, auto count) {
    constexpr int kCount = decltype(count)::value;
    float x[kCount];
    load(static_cast<const Element*>(launch.x) + at, x);
    for (int i = 0; i < kCount; ++i) {
      const uint64_t number = at + i;
      const uint32_t hash = drop_hash(launch.rule, static_cast<uint32_t>(number),
                                      static_cast<uint32_t>(number >> 32));
      x[i] *= hash < launch.rule.dropped_below ? 0.0f : launch.rule.scale;
    }
    store(static_cast<Element*>(launch.y) + at, x);
  });
}

}  // namespace

CONVOY_KERNEL void dropout_fp32(const DropoutLaunch launch) { drop<float>(launch); }
CONVOY_KERNEL void dropout_bf16(const DropoutLaunch launch) { drop<Bf16>(launch); }

}  // namespace convoy::kernels::gpu
