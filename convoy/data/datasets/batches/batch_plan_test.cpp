// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/batches/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/batches/pack_rows.h"
#include "convoy/data/datasets/seeded_shuffle.h"

namespace convoy::data {
namespace {

TokenDataset dataset_of(const std::vector<int64_t>& lengths_tokens) {
  std::vector<EncodedRow> rows;
  for (const int64_t length : lengths_tokens) {
    EncodedRow row;
    row.source_index = static_cast<int64_t>(rows.size());
    for (int64_t token = 0; token < length; ++token) {
      row.ids.push_back(static_cast<int32_t>(100 * row.source_index + token));
      row.supervised.push_back(token > length / 2);
    }
    rows.push_back(std::move(row));
  }
  return TokenDataset::from_rows(rows);
}

TokenDataset dataset_of_rows(int64_t num_rows) {
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < num_rows; ++row) lengths.push_back(2 + row % 5);
  return dataset_of(lengths);
}

std::vector<int64_t> step_rows(const BatchPlan& plan, StepPosition position) {
  std::vector<int64_t> rows;
  for (int64_t micro = 0; micro < plan.config().grad_accum; ++micro)
    for (int64_t rank = 0; rank < plan.config().world_size; ++rank)
      for (const int64_t row : plan.rows(position, micro, rank)) rows.push_back(row);
  return rows;
}

std::vector<int64_t> sorted(std::vector<int64_t> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST(TokenDataset, TheWeightOfARowIsThatOfItsSupervisedTokens) {
  EncodedRow weighed{{5, 6, 7}, {0, 1, 1}, 0};
  weighed.weights = {9, 0.25F, 2};
  const EncodedRow plain{{8, 9}, {0, 1}, 1};
  const TokenDataset dataset = TokenDataset::from_rows({weighed, plain});
  EXPECT_EQ(dataset.loss_weight(0), 2.25);
  EXPECT_EQ(dataset.loss_weight(1), 1);
  EXPECT_EQ(dataset.supervised_tokens(0), 2);
  const BatchPlan plan(dataset, {.batch_size = 2});
  EXPECT_EQ(plan.loss_weight({0, 0}), 3.25);
  EXPECT_EQ(plan.supervised_tokens({0, 0}), 3);
  // A changed weight changes the data set's hash.
  weighed.weights[1] = 0.5F;
  EXPECT_NE(TokenDataset::from_rows({weighed, plain}).content_hash(), dataset.content_hash());
}

TEST(TokenDataset, HoldsRowsAsGiven) {
  const TokenDataset dataset =
      TokenDataset::from_rows({{{5, 6, 7}, {0, 1, 1}, 3}, {{}, {}, 4}, {{8, 9}, {0, 0}, 9}});
  ASSERT_EQ(dataset.num_rows(), 3);
  EXPECT_EQ(std::vector<int32_t>(dataset.ids(0).begin(), dataset.ids(0).end()),
            (std::vector<int32_t>{5, 6, 7}));
  EXPECT_EQ(dataset.length_tokens(1), 0);
  EXPECT_EQ(dataset.ids(2)[1], 9);
  EXPECT_EQ(dataset.supervised(0)[2], 1);
  EXPECT_EQ(dataset.supervised_tokens(0), 2);
  EXPECT_EQ(dataset.source_index(2), 9);
  EXPECT_EQ(dataset.total_tokens(), 5);
  EXPECT_EQ(dataset.total_supervised_tokens(), 2);
  EXPECT_EQ(TokenDataset().num_rows(), 0);
  EXPECT_THROW(dataset.ids(3), StateError);
}

TEST(TokenDataset, HashSeesIdsMasksAndRowBounds) {
  std::set<std::string> hashes;
  hashes.insert(TokenDataset::from_rows({{{1, 2}, {0, 1}, 0}, {{3}, {0}, 1}}).content_hash());
  hashes.insert(TokenDataset::from_rows({{{1, 2}, {0, 0}, 0}, {{3}, {0}, 1}}).content_hash());
  hashes.insert(TokenDataset::from_rows({{{1, 4}, {0, 1}, 0}, {{3}, {0}, 1}}).content_hash());
  hashes.insert(TokenDataset::from_rows({{{1}, {0}, 0}, {{2, 3}, {0, 1}, 1}}).content_hash());
  EXPECT_EQ(hashes.size(), 4u);
}

TEST(TokenDataset, RefusesASupervisedFirstToken) {
  EXPECT_THROW(TokenDataset::from_rows({{{1, 2}, {1, 1}, 0}}), StateError);
}

TEST(SeededPermutation, IsAPermutationFixedByItsWords) {
  const auto order = seeded_permutation(1000, {1, 2});
  std::vector<int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted(order), all);
  EXPECT_NE(order, all);
  EXPECT_EQ(order, seeded_permutation(1000, {1, 2}));
  EXPECT_NE(order, seeded_permutation(1000, {1, 3}));
  EXPECT_NE(order, seeded_permutation(1000, {2, 2}));
  EXPECT_TRUE(seeded_permutation(0, {1}).empty());
}

// Each element should reach each place about equally often: chi-squared over 8 x 8 cells, 49
// degrees of freedom.
TEST(SeededPermutation, FavoursNoPlace) {
  constexpr int kRounds = 8000;
  std::array<std::array<int, 8>, 8> seen{};
  for (uint64_t round = 0; round < kRounds; ++round) {
    const auto order = seeded_permutation(8, {99, round});
    for (size_t place = 0; place < 8; ++place) ++seen[static_cast<size_t>(order[place])][place];
  }
  double chi_squared = 0;
  for (const auto& row : seen)
    for (const int count : row)
      chi_squared += (count - kRounds / 8.0) * (count - kRounds / 8.0) / (kRounds / 8.0);
  EXPECT_LT(chi_squared, 94.0);  // exceeded once in 10,000 draws of a fair shuffle
}

TEST(BatchPlan, EveryRowOncePerEpochAndThePartialStepIsUsed) {
  const BatchPlan plan(dataset_of_rows(23),
                       {.batch_size = 2, .grad_accum = 2, .world_size = 2, .seed = 5});
  ASSERT_EQ(plan.steps_per_epoch(), 3);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> rows;
    for (int64_t step = 0; step < 3; ++step)
      for (const int64_t row : step_rows(plan, {epoch, step})) rows.push_back(row);
    std::vector<int64_t> all(23);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted(rows), all);
  }
  EXPECT_EQ(step_rows(plan, {0, 2}).size(), 7u);
}

TEST(BatchPlan, OrderIsAFunctionOfSeedAndEpochAlone) {
  const TokenDataset dataset = dataset_of_rows(40);
  const BatchPlan plan(dataset, {.batch_size = 4, .seed = 5});
  const BatchPlan again(dataset, {.batch_size = 4, .seed = 5});
  const BatchPlan other(dataset, {.batch_size = 4, .seed = 6});
  const auto far = again.rows({7, 3}, 0, 0);  // before any other step is asked for
  plan.rows({0, 0}, 0, 0);
  plan.rows({6, 9}, 0, 0);
  EXPECT_EQ(plan.rows({7, 3}, 0, 0), far);
  EXPECT_NE(plan.rows({7, 3}, 0, 0), other.rows({7, 3}, 0, 0));
  EXPECT_NE(plan.rows({0, 0}, 0, 0), plan.rows({1, 0}, 0, 0));
}

TEST(BatchPlan, GlobalBatchIsTheSameHoweverItIsDealt) {
  const TokenDataset dataset = dataset_of_rows(50);
  const BatchPlan reference(dataset, {.batch_size = 8, .seed = 3});
  for (const auto& [batch, accum, world] : std::vector<std::array<int64_t, 3>>{
           {2, 4, 1}, {2, 2, 2}, {2, 1, 4}, {1, 2, 4}, {4, 1, 2}, {1, 8, 1}}) {
    const BatchPlan plan(
        dataset, {.batch_size = batch, .grad_accum = accum, .world_size = world, .seed = 3});
    ASSERT_EQ(plan.steps_per_epoch(), reference.steps_per_epoch());
    for (int64_t epoch = 0; epoch < 2; ++epoch)
      for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
        EXPECT_EQ(sorted(step_rows(plan, {epoch, step})),
                  sorted(step_rows(reference, {epoch, step})));
        EXPECT_EQ(plan.supervised_tokens({epoch, step}),
                  reference.supervised_tokens({epoch, step}));
        EXPECT_EQ(plan.total_tokens({epoch, step}), reference.total_tokens({epoch, step}));
      }
  }
}

TEST(BatchPlan, AGivenGlobalBatchIsKeptOnAnyNumberOfRanks) {
  const TokenDataset dataset = dataset_of_rows(50);
  const BatchPlan reference(dataset, {.batch_size = 6, .seed = 3});
  for (const auto& [batch, world, accum] : std::vector<std::array<int64_t, 3>>{
           {2, 1, 3}, {2, 2, 2}, {2, 3, 1}, {2, 4, 1}, {4, 1, 2}, {1, 4, 2}, {1, 7, 1}}) {
    const BatchPlan plan(dataset,
                         {.batch_size = batch, .world_size = world, .global_batch = 6, .seed = 3});
    ASSERT_EQ(plan.config().grad_accum, accum);
    ASSERT_EQ(plan.steps_per_epoch(), reference.steps_per_epoch());
    for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
      EXPECT_EQ(sorted(step_rows(plan, {1, step})), sorted(step_rows(reference, {1, step})));
      for (int64_t micro = 0; micro < accum; ++micro)
        for (int64_t rank = 0; rank < world; ++rank)
          EXPECT_LE(plan.rows({1, step}, micro, rank).size(), static_cast<size_t>(batch));
    }
  }
}

TEST(BatchPlan, AccumulationAndRanksShareTheirMicroBatches) {
  const TokenDataset dataset = dataset_of_rows(32);
  const BatchPlan one(dataset, {.batch_size = 2, .grad_accum = 4, .world_size = 1, .seed = 3});
  const BatchPlan two(dataset, {.batch_size = 2, .grad_accum = 2, .world_size = 2, .seed = 3});
  for (int64_t micro = 0; micro < 4; ++micro)
    EXPECT_EQ(one.rows({0, 1}, micro, 0), two.rows({0, 1}, micro / 2, micro % 2));
}

TEST(BatchPlan, PartialStepSpreadsEvenlyAndMayLeaveARankEmpty) {
  const BatchPlan plan(dataset_of_rows(9), {.batch_size = 3, .world_size = 2, .seed = 1});
  EXPECT_EQ(plan.rows({0, 1}, 0, 0).size(), 2u);
  EXPECT_EQ(plan.rows({0, 1}, 0, 1).size(), 1u);
  const BatchPlan lone(dataset_of_rows(1), {.batch_size = 1, .world_size = 2});
  EXPECT_EQ(lone.rows({0, 0}, 0, 0).size(), 1u);
  EXPECT_TRUE(lone.rows({0, 0}, 0, 1).empty());
}

TEST(BatchPlan, WithoutShuffleRowsComeInOrder) {
  const BatchPlan plan(dataset_of_rows(10), {.batch_size = 4, .shuffle = false});
  EXPECT_EQ(plan.rows({3, 1}, 0, 0), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(plan.rows({3, 2}, 0, 0), (std::vector<int64_t>{8, 9}));
}

TEST(BatchPlan, CountsAreThoseOfTheRows) {
  const TokenDataset dataset = dataset_of_rows(11);
  const BatchPlan plan(dataset, {.batch_size = 4, .seed = 8});
  int64_t supervised = 0;
  int64_t total = 0;
  int64_t num_rows = 0;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    supervised += plan.supervised_tokens({0, step});
    total += plan.total_tokens({0, step});
    num_rows += plan.num_rows({0, step});
  }
  EXPECT_EQ(supervised, dataset.total_supervised_tokens());
  EXPECT_EQ(total, dataset.total_tokens());
  EXPECT_EQ(num_rows, dataset.num_rows());
}

TEST(BatchPlan, PackedBlocksHoldEveryRowOnce) {
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < 60; ++row) lengths.push_back(1 + (row * 37) % 16);
  const TokenDataset dataset = dataset_of(lengths);
  const BatchPlan plan(
      dataset, {.batch_size = 2, .world_size = 2, .packing = true, .block_tokens = 16, .seed = 4});
  EXPECT_LT(plan.num_items(), 45);
  std::vector<std::vector<int64_t>> epochs(2);
  for (int64_t epoch = 0; epoch < 2; ++epoch)
    for (int64_t step = 0; step < plan.steps_per_epoch(); ++step)
      for (int64_t rank = 0; rank < 2; ++rank) {
        int64_t tokens = 0;
        for (const int64_t row : plan.rows({epoch, step}, 0, rank)) {
          epochs[static_cast<size_t>(epoch)].push_back(row);
          tokens += dataset.length_tokens(row);
        }
        EXPECT_LE(tokens, 2 * 16);
      }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_EQ(sorted(epochs[0]), sorted(epochs[1]));
  EXPECT_EQ(std::set<int64_t>(epochs[0].begin(), epochs[0].end()).size(), 60u);
}

TEST(BatchPlan, RefusesCountsBelowOneAndRowsBeyondABlock) {
  EXPECT_THROW(BatchPlan(dataset_of_rows(3), {.batch_size = 0}), ConfigError);
  EXPECT_THROW(BatchPlan(dataset_of_rows(3), {.world_size = 0}), ConfigError);
  EXPECT_THROW(BatchPlan(dataset_of({5, 17}), {.packing = true, .block_tokens = 16}), ConfigError);
  EXPECT_THROW(BatchPlan(dataset_of_rows(3), {}).rows({0, 3}, 0, 0), StateError);
}

// Best-fit decreasing by its definition: looks at every block for every row.
std::vector<std::vector<int64_t>> pack_by_definition(const std::vector<int64_t>& lengths,
                                                     int64_t capacity) {
  std::vector<int64_t> rows(lengths.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) {
    return lengths[static_cast<size_t>(a)] > lengths[static_cast<size_t>(b)];
  });
  std::vector<std::vector<int64_t>> blocks;
  std::vector<int64_t> left;
  for (const int64_t row : rows) {
    const int64_t length = lengths[static_cast<size_t>(row)];
    size_t best = blocks.size();
    for (size_t block = 0; block < blocks.size(); ++block)
      if (left[block] >= length && (best == blocks.size() || left[block] < left[best]))
        best = block;
    if (best == blocks.size()) {
      blocks.emplace_back();
      left.push_back(capacity);
    }
    blocks[best].push_back(row);
    left[best] -= length;
  }
  return blocks;
}

TEST(PackRows, EqualsTheDefinitionOfBestFitDecreasing) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> lengths(random() % 60);
    const int64_t capacity = 8 + static_cast<int64_t>(random() % 40);
    for (int64_t& length : lengths)
      length = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(capacity));
    EXPECT_EQ(pack_best_fit_decreasing(lengths, capacity), pack_by_definition(lengths, capacity));
  }
}

TEST(PackRows, FillsBlocksWherePossible) {
  EXPECT_EQ(pack_best_fit_decreasing(std::vector<int64_t>{6, 4, 7, 3, 10}, 10),
            (std::vector<std::vector<int64_t>>{{4}, {2, 3}, {0, 1}}));
}

TEST(BatchPlan, BothRowsOfAPairAreDealtTogether) {
  const TokenDataset dataset = dataset_of_rows(14);
  for (const bool packing : {false, true})
    for (const bool balance : {false, true}) {
      const BatchPlan plan(dataset, {.batch_size = 2,
                                     .grad_accum = 2,
                                     .packing = packing,
                                     .block_tokens = 24,
                                     .balance_tokens = balance,
                                     .seed = 3,
                                     .rows_of_item = 2});
      std::vector<int64_t> all;
      for (int64_t step = 0; step < plan.steps_per_epoch(); ++step)
        for (int64_t micro = 0; micro < 2; ++micro) {
          const std::vector<int64_t> rows = plan.rows({0, step}, micro, 0);
          ASSERT_EQ(rows.size() % 2, 0U);
          for (size_t row = 0; row < rows.size(); row += 2) {
            EXPECT_EQ(rows[row] % 2, 0);
            EXPECT_EQ(rows[row + 1], rows[row] + 1);
          }
          all.insert(all.end(), rows.begin(), rows.end());
        }
      std::vector<int64_t> wanted(14);
      std::iota(wanted.begin(), wanted.end(), int64_t{0});
      EXPECT_EQ(sorted(all), wanted);
      EXPECT_LE(plan.num_items(), 7);
    }
}

}  // namespace
}  // namespace convoy::data
