// SPDX-License-Identifier: Apache-2.0
//
// Many tensors in one launch: a block takes chunks, wherever they lie, and writes one sum for each,
// in fp64. Each element is read once. Reference: sum_of_squares_aten.cpp.
#include "convoy/model/kernels/cuda/block_shape.h"
#include "convoy/model/kernels/cuda/chunks.cuh"
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"
#include "convoy/model/kernels/sum_of_squares/sum_of_squares_launch.h"

namespace convoy::kernels::gpu {
namespace {

template <int kCount, class Element>
CONVOY_DEVICE void add_squares(const Element* from, double& sum) {
  float values[kCount];
  load(from, values);
  for (int i = 0; i < kCount; ++i) {
    const double wide = values[i];
    sum = __builtin_fma(wide, wide, sum);
  }
}

// Adds the threads' sums in the order of a tree, so that the bits are the same each time.
CONVOY_DEVICE double sum_of_block(double own) {
  CONVOY_SHARED double of_threads[kBlockThreads];
  const uint32_t thread = thread_of_block();
  of_threads[thread] = own;
  wait_for_block();
  for (uint32_t half = kBlockThreads / 2; half > 0; half /= 2) {
    if (thread < half) of_threads[thread] += of_threads[thread + half];
    wait_for_block();
  }
  const double sum = of_threads[0];
  wait_for_block();  // the place is free for the next chunk
  return sum;
}

template <class Element>
CONVOY_DEVICE void sum_chunks(const SquaresLaunch& launch) {
  constexpr int kTogether = kPerLoad<Element>;
  const uint64_t chunks = launch.first_chunk[launch.num_tensors];
  for (uint64_t chunk = nvidia::block_number(); chunk < chunks; chunk += nvidia::num_blocks()) {
    const uint32_t tensor =
        owner_of_chunk(launch.first_chunk, static_cast<uint32_t>(launch.num_tensors), chunk);
    const auto* values = static_cast<const Element*>(launch.values[tensor]);
    const uint64_t count = launch.counts[tensor];
    const uint64_t begin = (chunk - launch.first_chunk[tensor]) * kSquaresChunk;
    const uint64_t end = begin + kSquaresChunk < count ? begin + kSquaresChunk : count;
    const bool fits = reinterpret_cast<uint64_t>(values) % 16 == 0;
    const uint64_t end_of_vectors = fits ? begin + (end - begin) / kTogether * kTogether : begin;
    double sum = 0;
    for (uint64_t at = begin + thread_of_block() * kTogether; at < end_of_vectors;
         at += kBlockThreads * kTogether)
      add_squares<kTogether>(values + at, sum);
    for (uint64_t at = end_of_vectors + thread_of_block(); at < end; at += kBlockThreads)
      add_squares<1>(values + at, sum);
    sum = sum_of_block(sum);
    if (thread_of_block() == 0) launch.sums[chunk] = sum;
  }
}

}  // namespace

#define CONVOY_SUM_OF_SQUARES(Element, type)                             \
  CONVOY_KERNEL void sum_of_squares_##type(const SquaresLaunch launch) { \
    sum_chunks<Element>(launch);                                         \
  }

CONVOY_SUM_OF_SQUARES(float, fp32)
CONVOY_SUM_OF_SQUARES(Bf16, bf16)

}  // namespace convoy::kernels::gpu
