// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/batches/mixed_items.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/batches/batch_plan.h"

namespace convoy::data {
namespace {

constexpr int64_t kSizes[] = {300, 70, 11};
constexpr double kWeights[] = {6, 3, 1};

MixConfig three_parts(MixStop stop) {
  MixConfig mix{.stop = stop};
  int64_t row = 0;
  for (size_t part = 0; part < 3; ++part) {
    mix.parts.push_back({fmt::format("part {}", part), row, kSizes[part], kWeights[part]});
    row += kSizes[part];
  }
  return mix;
}

// Rows of 2 to 9 tokens in three parts.
TokenDataset three_datasets() {
  std::vector<NamedRows> parts;
  for (size_t part = 0; part < 3; ++part) {
    std::vector<EncodedRow> rows;
    for (int64_t row = 0; row < kSizes[part]; ++row) {
      const auto tokens = static_cast<size_t>(2 + (row * 5 + static_cast<int64_t>(part)) % 8);
      EncodedRow& made = rows.emplace_back();
      made.ids.assign(tokens, static_cast<int32_t>(1000 * part + row % 1000));
      made.supervised.assign(tokens, 1);
      made.supervised[0] = 0;
      made.source_index = row;
    }
    parts.push_back({fmt::format("part {}", part), TokenDataset::from_rows(rows)});
  }
  return TokenDataset::joined(std::move(parts));
}

size_t part_of(int64_t row) { return row < 300 ? 0 : row < 370 ? 1 : 2; }

TEST(MixSchedule, SharesHoldInEveryWindow) {
  const MixSchedule schedule(three_parts(MixStop::AllExhausted));
  std::vector<int64_t> draws;
  for (int64_t draw = 0; draw < 3 * schedule.epoch_rows(); ++draw)
    draws.push_back(static_cast<int64_t>(schedule.at(draw).part));
  const int64_t epoch = schedule.epoch_rows();
  for (const int64_t width : {10, 37, 100})
    for (int64_t begin = 0; begin + width <= epoch; ++begin)
      for (size_t part = 0; part < 3; ++part) {
        const auto from = draws.begin() + begin;
        const auto count = std::count(from, from + width, static_cast<int64_t>(part));
        EXPECT_LE(
            std::abs(static_cast<double>(count) - static_cast<double>(width) * kWeights[part] / 10),
            2.0)
            << "window " << begin << " + " << width;
      }
}

TEST(MixSchedule, AnEpochEndsWithTheLastOrTheFirst) {
  const MixSchedule all(three_parts(MixStop::AllExhausted));
  EXPECT_EQ(all.epoch_rows_of(0), 300);  // part 0 has the most rows for its weight
  EXPECT_GE(all.epoch_rows_of(1), 149);
  EXPECT_GE(all.epoch_rows_of(2), 49);
  const MixSchedule first(three_parts(MixStop::FirstExhausted));
  EXPECT_EQ(first.epoch_rows_of(2), 11);
  EXPECT_LE(first.epoch_rows_of(0), 67);
  EXPECT_THROW(mix_stop_named("never"), ConfigError);
  MixConfig empty = three_parts(MixStop::AllExhausted);
  empty.parts[1].num_rows = 0;
  EXPECT_THROW(MixSchedule{empty}, ConfigError);
}

TEST(MixSchedule, DrawsOfAPartAreNumberedThroughAllEpochs) {
  const MixSchedule schedule(three_parts(MixStop::FirstExhausted));
  std::vector<int64_t> numbers(3, 0);
  for (int64_t draw = 0; draw < 4 * schedule.epoch_rows(); ++draw) {
    const auto [part, number] = schedule.at(draw);
    EXPECT_EQ(number, numbers[part]++) << draw;
  }
}

TEST(MixedItems, NoRowComesAgainBeforeTheOthersOfItsPart) {
  const MixedItems items(three_datasets(), three_parts(MixStop::FirstExhausted), {.seed = 5});
  std::map<int64_t, int64_t> seen;
  std::vector<int64_t> drawn(3, 0);
  for (int64_t item = 0; item < 2000; ++item) {
    const std::vector<int64_t> rows = items.rows(item);
    ASSERT_EQ(rows.size(), 1u);
    const size_t part = part_of(rows[0]);
    EXPECT_EQ(seen[rows[0]]++, drawn[part]++ / kSizes[part]) << "unit " << item;
  }
}

TEST(MixedItems, BlocksHoldTheStreamAndFit) {
  const TokenDataset dataset = three_datasets();
  const MixConfig mix = three_parts(MixStop::AllExhausted);
  const MixedItems rows(dataset, mix, {.seed = 9});
  const MixedItems blocks(dataset, mix, {.packing = true, .block_tokens = 32, .seed = 9});
  std::multiset<int64_t> of_rows, of_blocks;
  int64_t tokens = 0;
  const int64_t items = blocks.items_per_epoch();
  for (int64_t item = 0; item < items; ++item) {
    int64_t block_tokens = 0;
    for (const int64_t row : blocks.rows(item)) {
      of_blocks.insert(row);
      block_tokens += dataset.length_tokens(row);
    }
    EXPECT_LE(block_tokens, 32);
    tokens += block_tokens;
  }
  EXPECT_GE(tokens, items * 32 * 9 / 10);
  for (int64_t item = 0; item < rows.items_per_epoch(); ++item) of_rows.insert(rows.rows(item)[0]);
  // An epoch in blocks may end up to a window of the stream later or earlier than an epoch in rows.
  EXPECT_NEAR(static_cast<double>(of_blocks.size()), static_cast<double>(of_rows.size()),
              0.1 * static_cast<double>(of_rows.size()));
}

BatchPlanConfig plan_config(bool packing, int64_t world) {
  return {.batch_size = 2,
          .world_size = world,
          .global_batch = 8,
          .packing = packing,
          .block_tokens = 32,
          .seed = 3,
          .mix = three_parts(MixStop::AllExhausted)};
}

// A resumed run begins with a late step of a fresh plan.
TEST(BatchPlanOfAMix, StepsArePureFunctionsOfTheirPosition) {
  for (const bool packing : {false, true}) {
    const BatchPlan whole(three_datasets(), plan_config(packing, 1));
    const int64_t steps = whole.steps_per_epoch();
    std::vector<std::vector<int64_t>> in_order;
    for (int64_t epoch = 0; epoch < 3; ++epoch)
      for (int64_t step = 0; step < steps; ++step) {
        std::vector<int64_t> rows;
        for (int64_t micro = 0; micro < whole.config().grad_accum; ++micro)
          for (const int64_t row : whole.rows({epoch, step}, micro, 0)) rows.push_back(row);
        EXPECT_EQ(std::ssize(rows), whole.num_rows({epoch, step}));
        in_order.push_back(std::move(rows));
      }
    for (const int64_t at : {3 * steps - 1, 2 * steps, steps + 1, int64_t{0}}) {
      const BatchPlan resumed(three_datasets(), plan_config(packing, 1));
      std::vector<int64_t> rows;
      for (int64_t micro = 0; micro < resumed.config().grad_accum; ++micro)
        for (const int64_t row : resumed.rows({at / steps, at % steps}, micro, 0))
          rows.push_back(row);
      EXPECT_EQ(rows, in_order[static_cast<size_t>(at)]) << "step " << at << " packing " << packing;
    }
    EXPECT_NE(in_order[0], in_order[static_cast<size_t>(steps)]);
  }
}

TEST(BatchPlanOfAMix, RanksShareTheStepOfOne) {
  const BatchPlan one(three_datasets(), plan_config(true, 1));
  const BatchPlan two(three_datasets(), plan_config(true, 2));
  for (int64_t step = 0; step < one.steps_per_epoch(); ++step) {
    std::multiset<int64_t> of_one, of_two;
    for (int64_t micro = 0; micro < one.config().grad_accum; ++micro)
      for (const int64_t row : one.rows({1, step}, micro, 0)) of_one.insert(row);
    for (int64_t rank = 0; rank < 2; ++rank)
      for (int64_t micro = 0; micro < two.config().grad_accum; ++micro)
        for (const int64_t row : two.rows({1, step}, micro, rank)) of_two.insert(row);
    EXPECT_EQ(of_one, of_two);
    EXPECT_EQ(one.supervised_tokens({1, step}), two.supervised_tokens({1, step}));
  }
}

TEST(TokenDatasetJoined, IsItsPartsOneAfterTheOther) {
  const TokenDataset joined = three_datasets();
  ASSERT_EQ(joined.parts().size(), 3u);
  int64_t at = 0, tokens = 0;
  for (const NamedRows& part : joined.parts())
    for (int64_t row = 0; row < part.rows.num_rows(); ++row, ++at) {
      EXPECT_EQ(joined.length_tokens(at), part.rows.length_tokens(row));
      EXPECT_EQ(joined.ids(at)[0], part.rows.ids(row)[0]);
      EXPECT_EQ(joined.supervised(at).size(), part.rows.supervised(row).size());
      EXPECT_EQ(joined.source_index(at), row);
      tokens += part.rows.length_tokens(row);
    }
  EXPECT_EQ(joined.num_rows(), at);
  EXPECT_EQ(joined.total_tokens(), tokens);
  EXPECT_NE(joined.content_hash(), joined.parts()[0].rows.content_hash());
}

}  // namespace
}  // namespace convoy::data
