// SPDX-License-Identifier: Apache-2.0
//
// Code shared by the kernels of one new token per row: pieces of stored tokens, the parts of rows
// that blocks of threads take, and the places of their results.
#pragma once

#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/functions.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"
#include "convoy/model/kernels/paged_attention/paged_attention_launch.h"

namespace convoy::kernels::gpu {
namespace {

constexpr int kElements = kThreadElements;
constexpr float kLowest = -3.402823466e38f;
constexpr float kInfinity = __builtin_huge_valf();

struct Int8 {
  int8_t value;
};

// kElements elements of a stored token, as they are in memory.
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

// Keys `first_key` to end_key - 1 of a row, for heads `first_head` to first_head + num_heads - 1 of
// one kv head. The first key may lie before the row's window.
struct Part {
  DecodeRow row;
  uint32_t kv_head, first_head, num_heads, first_key, end_key;
  uint32_t place;       // number of its sums among the sums of all parts
  bool is_whole;        // all keys of the row are in this part
  uint64_t task_place;  // its task's number among the tasks of all rows
  HeadParts of_task;    // count 0: the task began in an earlier share
};

CONVOY_DEVICE uint32_t keys_of(const DecodeRow& row) { return static_cast<uint32_t>(row.keys); }
CONVOY_DEVICE RowTasks tasks_of(const PagedDecodeLaunch& launch) {
  return {launch.heads, launch.pool.kv_heads, launch.task_heads};
}

// The sum of `value` over the lanes up to and including this one.
CONVOY_DEVICE uint32_t sum_to_lane(uint32_t value) {
  const uint32_t lane = thread_of_block() % kWarpThreads;
  for (uint32_t distance = 1; distance < kWarpThreads; distance *= 2) {
    const uint32_t before = as_bits(from_lane(as_float(value), lane - distance & 31));
    if (lane >= distance) value += before;
  }
  return value;
}

// The numbers of steps of a launch's rows; a row counts the steps of one of its tasks. All threads
// of a block call its functions together.
class RowSteps {
 public:
  CONVOY_DEVICE explicit RowSteps(const PagedDecodeLaunch& launch, uint32_t (&ends)[kBlockThreads])
      : launch_(launch), ends_(ends) {
    // The loop goes from the last rows to the first, because find() begins with the first rows.
    uint32_t first = (launch.num_rows + kBlockThreads - 1) / kBlockThreads * kBlockThreads;
    while (first > 0) {
      first -= kBlockThreads;
      of_first_ = sum_rows(first);
      all_ += of_first_;
    }
  }
  CONVOY_DEVICE uint32_t all() const { return all_; }

  // Sets `row` to the row that has step `step` < all(), and `before` to the steps before that row.
  CONVOY_DEVICE void find(uint32_t step, uint32_t& row, uint32_t& before) {
    row = before = 0;
    for (uint32_t ended = of_first_; before + ended <= step; ended = sum_rows(row)) {
      before += ended;
      row += kBlockThreads;
    }
    uint32_t rows = 0;
    for (uint32_t half = kBlockThreads / 2; half > 0; half /= 2)
      if (before + ends_[rows + half - 1] <= step) rows += half;
    row += rows;
    if (rows > 0) before += ends_[rows - 1];
  }

 private:
  // Sets ends_[i] to the steps of the rows `first` to first + i. Returns the steps of all these
  // rows.
  CONVOY_DEVICE uint32_t sum_rows(uint32_t first) {
    CONVOY_SHARED uint32_t of_warps[kBlockWarps];
    const uint32_t thread = thread_of_block(), warp = thread / kWarpThreads, row = first + thread;
    const uint32_t own =
        row < launch_.num_rows ? num_steps(keys_of(launch_.rows[row]), launch_.window) : 0;
    uint32_t end = sum_to_lane(own);
    if (thread % kWarpThreads == kWarpThreads - 1) of_warps[warp] = end;
    wait_for_block();
    uint32_t all = 0;
    for (uint32_t from = 0; from < kBlockWarps; ++from) {
      if (from == warp) end += all;
      all += of_warps[from];
    }
    ends_[thread] = end;
    wait_for_block();
    return all;
  }

  const PagedDecodeLaunch& launch_;
  uint32_t (&ends_)[kBlockThreads];
  uint32_t all_ = 0, of_first_ = 0;  // steps: in all rows, in the first kBlockThreads rows
};

// Divides the shares of a block of threads into parts. One thread runs it, ahead of the others. Its
// state is in shared memory, so that it takes no registers of all threads.
struct Dealer {
  // the previous part may still be read while the next one is added
  static constexpr uint32_t kPlaces = 3;

  uint32_t all, share;    // steps: in all rows' tasks, in a share
  uint32_t number, left;  // number of the current share, and the steps that are left in it
  uint32_t row, at;       // the next step: its row, and its number among all of that row
  Part parts[kPlaces];    // a part without heads is the end

  CONVOY_DEVICE uint32_t steps_of_share() const {
    const uint32_t first = number * share;
    return all - first < share ? all - first : share;
  }

  CONVOY_DEVICE void add_part(const PagedDecodeLaunch& launch, uint32_t place) {
    const RowTasks tasks = tasks_of(launch);
    Part& part = parts[place];
    part.num_heads = 0;
    if (left == 0) {
      number += nvidia::num_blocks();
      if (number * share >= all) return;
      at += (nvidia::num_blocks() - 1) * share;
      left = steps_of_share();
    }
    for (;; ++row) {
      part.row = launch.rows[row];
      const uint32_t of_task = num_steps(keys_of(part.row), launch.window);
      if (at < of_task * tasks.count) return take(launch, tasks, of_task, part);
      at -= of_task * tasks.count;
    }
  }

  CONVOY_DEVICE void take(const PagedDecodeLaunch& launch, const RowTasks& tasks, uint32_t of_task,
                          Part& part) {
    const uint32_t task = at / of_task, step = at % of_task, left_of_task = of_task - step;
    const uint32_t count = left_of_task < left ? left_of_task : left;
    const uint32_t keys = keys_of(part.row);
    part.kv_head = tasks.kv_head(task);
    part.first_head = tasks.first_head(task);
    part.num_heads = tasks.num_heads(task);
    part.first_key = (first_step(keys, launch.window) + step) * kKeyStep;
    const uint32_t end = part.first_key + count * kKeyStep;
    part.end_key = keys < end ? keys : end;
    part.place = 2 * number + (step == 0 ? 1 : 0);
    part.is_whole = count == of_task;
    part.task_place = uint64_t{row} * tasks.count + task;
    part.of_task = {number, step == 0 ? (share - left + of_task - 1) / share + 1 : 0};
    at += count;
    left -= count;
  }
};

// Calls body(part) for the parts of this block of threads; `body` contains a barrier. The first
// part is found while the kernels before this one still run: rows and their lengths were copied
// before the step.
template <class Body>
CONVOY_DEVICE void for_parts(const PagedDecodeLaunch& launch, Body body) {
  CONVOY_SHARED uint32_t ends[kBlockThreads];
  CONVOY_SHARED Dealer dealer;
  RowSteps steps(launch, ends);
  const uint32_t tasks = tasks_of(launch).count;
  const uint32_t all = steps.all() * tasks, share = (all + launch.shares - 1) / launch.shares;
  const uint32_t first = nvidia::block_number() * share;
  uint32_t row = 0, before = 0;
  if (first < all) steps.find(first / tasks, row, before);
  if (thread_of_block() == 0) {
    dealer.all = all;
    dealer.share = share;
    dealer.number = nvidia::block_number();
    dealer.left = first < all ? dealer.steps_of_share() : 0;
    dealer.row = row;
    dealer.at = first - before * tasks;
    dealer.add_part(launch, 0);
  }
  wait_for_block();
  nvidia::wait_for_kernels_before();
  for (uint32_t place = 0; dealer.parts[place].num_heads > 0;) {
    const uint32_t next = place + 1 < Dealer::kPlaces ? place + 1 : 0;
    const Part& part = dealer.parts[place];
    if (thread_of_block() == 0) {
      if (part.of_task.count > 0 && launch.parts != nullptr)
        launch.parts[part.task_place] = part.of_task;
      dealer.add_part(launch, next);
    }
    body(part);
    // clang does not take a barrier for a memory access: this keeps the next read behind it
    asm volatile("" ::: "memory");
    place = next;
  }
}

// One head's share of a part: the sum of one element of the values, each weighed by
// 2^(score - top), and the sum of the weights.
struct PartSum {
  float sum, top, divisor;
};

CONVOY_DEVICE uint64_t result_place(const PagedDecodeLaunch& launch, const DecodeRow& row,
                                    uint32_t head) {
  return (uint64_t{static_cast<uint32_t>(row.token)} * launch.heads + head) * launch.pool.head_dim;
}

// Writes the sum to the result if the part is whole, else to the place where paged_join reads it.
template <class Element>
CONVOY_DEVICE void write_sum(const PagedDecodeLaunch& launch, const Part& part, uint32_t head,
                             uint32_t element, const PartSum& of) {
  if (part.is_whole) {
    const float result[1] = {quotient(of.sum, of.divisor)};
    store(static_cast<Element*>(launch.out) +
              result_place(launch, part.row, part.first_head + head) + element,
          result);
  } else {
    const uint64_t place = uint64_t{part.place} * launch.task_heads + head;
    launch.partial_sums[place * launch.pool.head_dim + element] = of.sum;
    if (element != 0) return;
    launch.partial_tops[place] = of.top;
    launch.partial_divisors[place] = of.divisor;
  }
}

}  // namespace
}  // namespace convoy::kernels::gpu
