// SPDX-License-Identifier: Apache-2.0
//
// Shared by the kernels of one new token per row: pieces of stored tokens, the splits that blocks
// of threads take, and the places of their results.
#pragma once

#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/functions.cuh"
#include "convoy/model/kernels/paged_attention/paged_attention_launch.h"

namespace convoy::kernels::gpu {
namespace {

constexpr int kElements = kThreadElements;
constexpr float kLowest = -3.402823466e38f;
constexpr float kInfinity = __builtin_huge_valf();

struct Int8 {
  int8_t value;
};

// kElements of a stored token as they lie in memory.
template <class Stored>
struct Piece {
  static constexpr int kWords = kElements * sizeof(Stored) / sizeof(uint32_t);
  uint32_t words[kWords];

  CONVOY_DEVICE void read(const Stored* from) {
    load_words<std::conditional_t<kWords == 2, Words2, Words4>>(from, words);
  }
  CONVOY_DEVICE void clear() {
#pragma unroll
    for (uint32_t& word : words) word = 0;
  }
  CONVOY_DEVICE float at(int element) const {
    if constexpr (std::is_same_v<Stored, float>) {
      return as_float(words[element]);
    } else if constexpr (std::is_same_v<Stored, Bf16>) {
      const uint32_t both = words[element / 2];
      return as_float(element % 2 == 0 ? both << 16 : both & 0xffff0000u);
    } else {
      const auto word = static_cast<int32_t>(words[element / 4] << (24 - element % 4 * 8));
      return static_cast<float>(word >> 24);
    }
  }
};

CONVOY_DEVICE float larger(float a, float b) { return a > b ? a : b; }

// One split of a row, for heads `first_head` to first_head + num_heads - 1 of one kv head.
struct SplitTask {
  DecodeRow row;
  uint32_t row_number, kv_head, split, num_splits, first_head, num_heads;
};

CONVOY_DEVICE uint64_t partial_place(const PagedDecodeLaunch& launch, uint32_t row, uint32_t head,
                                     uint32_t split) {
  return (uint64_t{row} * launch.heads + head) * launch.splits + split;
}

CONVOY_DEVICE uint32_t first_key_of(const PagedDecodeLaunch& launch, const SplitTask& task) {
  const auto keys = static_cast<uint32_t>(task.row.keys);
  return (first_split(keys, launch.window, launch.split_keys) + task.split) * launch.split_keys;
}
CONVOY_DEVICE uint32_t end_key_of(const PagedDecodeLaunch& launch, const SplitTask& task) {
  const auto keys = static_cast<uint32_t>(task.row.keys);
  const uint32_t end = first_key_of(launch, task) + launch.split_keys;
  return keys < end ? keys : end;
}

// body(task) for the tasks of this block of threads, each of kHeads query heads at most.
template <int kHeads, class Body>
CONVOY_DEVICE void for_splits(const PagedDecodeLaunch& launch, Body body) {
  const uint32_t group = launch.heads / launch.pool.kv_heads;
  const uint32_t chunks = (group + kHeads - 1) / kHeads;
  const uint64_t tasks = uint64_t{launch.num_rows} * launch.pool.kv_heads * chunks * launch.splits;
  for (uint64_t number = nvidia::block_number(); number < tasks; number += nvidia::num_blocks()) {
    SplitTask task;
    task.split = static_cast<uint32_t>(number % launch.splits);
    const uint64_t of_row = number / launch.splits;
    const auto chunk = static_cast<uint32_t>(of_row % chunks);
    task.kv_head = static_cast<uint32_t>(of_row / chunks % launch.pool.kv_heads);
    task.row_number = static_cast<uint32_t>(of_row / chunks / launch.pool.kv_heads);
    task.row = launch.rows[task.row_number];
    task.num_splits =
        num_splits(static_cast<uint32_t>(task.row.keys), launch.window, launch.split_keys);
    if (task.split >= task.num_splits) continue;
    task.first_head = task.kv_head * group + chunk * kHeads;
    task.num_heads = chunk + 1 < chunks ? kHeads : group - chunk * kHeads;
    body(task);
  }
}

// One head's part of a split: the sum of one element of the values, each weighed by
// 2^(score - top), and the sum of the weights.
struct SplitShare {
  float sum, top, divisor;
};

// To the result where the row has one split, else to where paged_join finds it.
template <class Element>
CONVOY_DEVICE void write_share(const PagedDecodeLaunch& launch, const SplitTask& task,
                               uint32_t head, uint32_t element, const SplitShare& share) {
  const uint32_t of_head = task.first_head + head;
  if (task.num_splits == 1) {
    const uint64_t at = (uint64_t{static_cast<uint32_t>(task.row.token)} * launch.heads + of_head) *
                            launch.pool.head_dim +
                        element;
    const float result[1] = {quotient(share.sum, share.divisor)};
    store(static_cast<Element*>(launch.out) + at, result);
  } else {
    const uint64_t place = partial_place(launch, task.row_number, of_head, task.split);
    launch.partial_sums[place * launch.pool.head_dim + element] = share.sum;
    if (element != 0) return;
    launch.partial_tops[place] = share.top;
    launch.partial_divisors[place] = share.divisor;
  }
}

}  // namespace
}  // namespace convoy::kernels::gpu
