// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/batches/item_assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "convoy/data/datasets/batches/batch_plan.h"

namespace convoy::data {
namespace {

using Dealt = std::vector<std::vector<size_t>>;

// Returns lengths as texts have them: most are short, and some are many times as long.
std::vector<int64_t> text_lengths(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> length(4.5, 0.7);
  std::vector<int64_t> lengths(count);
  for (int64_t& tokens : lengths) tokens = 2 + static_cast<int64_t>(length(random));
  return lengths;
}

int64_t tokens_in(const std::vector<size_t>& items, const std::vector<int64_t>& lengths) {
  int64_t sum = 0;
  for (const size_t item : items) sum += lengths[item];
  return sum;
}

// Returns the tokens of the rank with the most tokens, divided by the mean of all ranks.
double imbalance(const Dealt& dealt, const std::vector<int64_t>& lengths, size_t ranks) {
  std::vector<int64_t> of_rank(ranks, 0);
  for (size_t slot = 0; slot < dealt.size(); ++slot)
    of_rank[slot % ranks] += tokens_in(dealt[slot], lengths);
  const auto total = std::accumulate(of_rank.begin(), of_rank.end(), int64_t{0});
  return static_cast<double>(*std::max_element(of_rank.begin(), of_rank.end())) *
         static_cast<double>(ranks) / static_cast<double>(total);
}

TEST(ItemAssignment, EveryUnitOnceAndNoSlotTooFull) {
  for (const size_t slots : {1, 2, 3, 8, 12})
    for (const size_t count : {1, 5, 8, 24, 25, 100}) {
      const std::vector<int64_t> lengths = text_lengths(count, static_cast<unsigned>(count));
      const Dealt dealt = assign_by_tokens(lengths, slots);
      ASSERT_EQ(dealt.size(), slots);
      std::vector<size_t> all;
      for (const std::vector<size_t>& items : dealt) {
        EXPECT_LE(items.size(), (count + slots - 1) / slots);
        EXPECT_TRUE(count < slots || !items.empty()) << count << " over " << slots;
        EXPECT_TRUE(std::is_sorted(items.begin(), items.end()));
        all.insert(all.end(), items.begin(), items.end());
      }
      std::sort(all.begin(), all.end());
      std::vector<size_t> wanted(count);
      std::iota(wanted.begin(), wanted.end(), size_t{0});
      EXPECT_EQ(all, wanted);
    }
}

TEST(ItemAssignment, OneSlotKeepsTheOrder) {
  EXPECT_EQ(assign_by_tokens({3, 9, 1}, 1), (Dealt{{0, 1, 2}}));
  EXPECT_EQ(assign_by_tokens({3, 9, 1}, 1), assign_in_turn(3, 1));
}

TEST(ItemAssignment, RanksGetNearlyEqualTokensHoweverManyThereAre) {
  for (const size_t rows_per_slot : {1, 4, 8}) {
    constexpr size_t kSlots = 16;
    double worst_balanced = 1, sum_in_turn = 0, sum_balanced = 0;
    for (unsigned step = 0; step < 50; ++step) {
      const std::vector<int64_t> lengths = text_lengths(kSlots * rows_per_slot, step);
      for (const size_t ranks : {2, 4, 8}) {
        const double balanced = imbalance(assign_by_tokens(lengths, kSlots), lengths, ranks);
        sum_in_turn += imbalance(assign_in_turn(lengths.size(), kSlots), lengths, ranks) - 1;
        sum_balanced += balanced - 1;
        worst_balanced = std::max(worst_balanced, balanced);
      }
    }
    // A single row may be longer than the mean of the ranks, and no assignment can divide it.
    EXPECT_LT(sum_balanced, sum_in_turn / (rows_per_slot == 1 ? 1.5 : 4));
    EXPECT_TRUE(rows_per_slot < 8 || worst_balanced < 1.1) << worst_balanced;
  }
}

TokenDataset dataset_of_lengths(const std::vector<int64_t>& lengths) {
  std::vector<EncodedRow> rows;
  for (const int64_t length : lengths) {
    EncodedRow row;
    row.source_index = static_cast<int64_t>(rows.size());
    row.ids.assign(static_cast<size_t>(length), 1);
    row.supervised.assign(static_cast<size_t>(length), 1);
    row.supervised[0] = 0;
    rows.push_back(std::move(row));
  }
  return TokenDataset::from_rows(rows);
}

std::vector<std::vector<int64_t>> micro_batches(const BatchPlan& plan, StepPosition position) {
  std::vector<std::vector<int64_t>> all;
  for (int64_t micro = 0; micro < plan.config().grad_accum; ++micro)
    for (int64_t rank = 0; rank < plan.config().world_size; ++rank)
      all.push_back(plan.rows(position, micro, rank));
  return all;
}

// With the same micro-batches, a run that resumes with another number of ranks draws the same
// random numbers for the same rows.
TEST(ItemAssignment, OtherRanksWithTheSameGlobalBatchHaveTheSameMicroBatches) {
  const TokenDataset rows = dataset_of_lengths(text_lengths(50, 7));
  const auto plan = [&](int64_t ranks, bool balanced) {
    return BatchPlan(rows, {.batch_size = 2,
                            .world_size = ranks,
                            .global_batch = 16,
                            .balance_tokens = balanced,
                            .seed = 3});
  };
  for (const StepPosition position : {StepPosition{0, 0}, StepPosition{1, 2}, StepPosition{0, 3}}) {
    const auto one_rank = micro_batches(plan(1, true), position);
    for (const int64_t ranks : {2, 4, 8})
      EXPECT_EQ(micro_batches(plan(ranks, true), position), one_rank) << ranks << " ranks";
    std::vector<int64_t> balanced, in_turn;
    for (const auto& part : one_rank) balanced.insert(balanced.end(), part.begin(), part.end());
    for (const auto& part : micro_batches(plan(2, false), position))
      in_turn.insert(in_turn.end(), part.begin(), part.end());
    std::sort(balanced.begin(), balanced.end());
    std::sort(in_turn.begin(), in_turn.end());
    EXPECT_EQ(balanced, in_turn) << "other rows in step " << position.step;
  }
}

}  // namespace
}  // namespace convoy::data
