// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/step_batches.h"

#include <gtest/gtest.h>

namespace convoy::train {
namespace {

// 11 rows of 2 to 6 tokens, the first two of each without supervision.
data::TokenDataset rows() {
  std::vector<data::EncodedRow> encoded;
  for (int32_t row = 0; row < 11; ++row) {
    data::EncodedRow one;
    for (int32_t token = 0; token < 2 + row % 5; ++token) {
      one.ids.push_back(100 * row + token);
      one.supervised.push_back(token >= 2 ? 1 : 0);
    }
    encoded.push_back(std::move(one));
  }
  return data::TokenDataset::from_rows(encoded);
}

data::BatchPlan plan_of(int64_t grad_accum, int64_t world) {
  return {rows(),
          {.batch_size = 1, .grad_accum = grad_accum, .world_size = world, .shuffle = true}};
}

void expect_same(const LabelledBatch& found, const LabelledBatch& wanted) {
  EXPECT_TRUE(found.tokens.token_ids_T().equal(wanted.tokens.token_ids_T()));
  EXPECT_TRUE(found.tokens.position_ids_T().equal(wanted.tokens.position_ids_T()));
  EXPECT_EQ(found.tokens.rows().starts(), wanted.tokens.rows().starts());
  EXPECT_TRUE(found.labels.tokens_N().equal(wanted.labels.tokens_N()));
  EXPECT_TRUE(found.labels.labels_N().equal(wanted.labels.labels_N()));
}

// Runs over three epochs, whose last steps have micro-batches without rows.
TEST(StepBatches, AreThoseOfThePlanFromAnyStepOn) {
  for (const int64_t grad_accum : {1, 3}) {
    const data::BatchPlan plan = plan_of(grad_accum, 2);
    const int64_t per_epoch = plan.steps_per_epoch();
    for (const int64_t first : {int64_t{0}, int64_t{1}, per_epoch, 2 * per_epoch - 1}) {
      StepBatches batches(plan, 1, at::kCPU, {.first = first, .end = 3 * per_epoch});
      for (int64_t step = first; step < 3 * per_epoch; ++step) {
        const data::StepPosition here{step / per_epoch, step % per_epoch};
        for (int64_t number = 0; number < grad_accum; ++number) {
          SCOPED_TRACE(::testing::Message() << "step " << step << ", micro-batch " << number);
          const MicroBatch found = batches.take();
          EXPECT_EQ(found.place.position.epoch, here.epoch);
          EXPECT_EQ(found.place.position.step, here.step);
          EXPECT_EQ(found.place.number, number);
          EXPECT_EQ(found.place.step.rows, plan.num_rows(here));
          EXPECT_EQ(found.place.step.tokens, plan.total_tokens(here));
          EXPECT_EQ(found.place.step.supervised_tokens, plan.supervised_tokens(here));
          expect_same(found.batch, assemble_batch(plan.dataset(), plan.rows(here, number, 1)));
        }
      }
      EXPECT_THROW(batches.take(), StateError);
    }
  }
}

TEST(StepBatches, OfAFinishedRunThereAreNone) {
  const data::BatchPlan plan = plan_of(2, 1);
  EXPECT_THROW(StepBatches(plan, 0, at::kCPU, {.first = 9, .end = 9}).take(), StateError);
  EXPECT_THROW(StepBatches(plan, 0, at::kCPU, {.first = 9, .end = 4}).take(), StateError);
}

}  // namespace
}  // namespace convoy::train
