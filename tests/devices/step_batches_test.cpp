// SPDX-License-Identifier: Apache-2.0
//
// A separate thread copies batches to a device. The batches are in order with the work of the
// training thread, on whatever stream it works, and the host does not wait.
#include "convoy/train/loop/step_batches.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include "simulated_device/simulated_device.h"

namespace convoy {
namespace {

data::BatchPlan plan() {
  std::vector<data::EncodedRow> rows;
  for (int32_t row = 0; row < 9; ++row)
    rows.push_back({.ids = {row, row + 1, row + 2}, .supervised = {0, 1, 1}});
  return {data::TokenDataset::from_rows(rows), {.batch_size = 2, .grad_accum = 2}};
}

// Reads every batch of five steps as training does.
std::vector<at::Tensor> read_all(const data::BatchPlan& plan, at::Device device) {
  constexpr int64_t kSteps = 5;
  train::StepBatches batches(plan, 0, device, {.first = 0, .end = kSteps});
  std::vector<at::Tensor> read;
  for (int64_t index = 0; index < kSteps * plan.config().grad_accum; ++index) {
    const train::MicroBatch taken = batches.take();
    if (taken.batch.num_tokens() == 0) continue;
    read.push_back(taken.batch.tokens.token_ids_T() * 2 + taken.batch.tokens.position_ids_T());
    read.push_back(read.back().index_select(0, taken.batch.labels.tokens_N()));
  }
  return read;
}

void expect_equal_on_host(const std::vector<at::Tensor>& found,
                          const std::vector<at::Tensor>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t index = 0; index < found.size(); ++index)
    EXPECT_TRUE(found[index].cpu().equal(wanted[index])) << index;
}

class StepBatchesOnTheDevice : public ::testing::Test {
 protected:
  void SetUp() override { simulated::install(2); }
  void TearDown() override { EXPECT_TRUE(simulated::take_findings().empty()); }
};

TEST_F(StepBatchesOnTheDevice, NothingWaitsForIt) {
  const data::BatchPlan dealt = plan();
  simulated::reset_host_waits();
  const std::vector<at::Tensor> found = read_all(dealt, simulated::device(1));
  EXPECT_TRUE(simulated::host_waits().empty());
  expect_equal_on_host(found, read_all(dealt, at::kCPU));
}

TEST_F(StepBatchesOnTheDevice, TheyAreInOrderWithTheStreamOfWhoTrains) {
  const data::BatchPlan dealt = plan();
  const at::Device device = simulated::device(1);
  const c10::impl::VirtualGuardImpl devices(device.type());
  const c10::StreamGuard own_stream(devices.getNewStream(device));
  expect_equal_on_host(read_all(dealt, device), read_all(dealt, at::kCPU));
}

// Shows that the simulated device finds the fault that the two tests above look for.
TEST_F(StepBatchesOnTheDevice, ABatchOfAnotherStreamWouldBeFound) {
  const data::BatchPlan dealt = plan();
  const at::Device device = simulated::device(1);
  train::StepBatches batches(dealt, 0, device, {.first = 0, .end = 1});
  const train::MicroBatch taken = batches.take();
  const c10::impl::VirtualGuardImpl devices(device.type());
  const c10::StreamGuard own_stream(devices.getNewStream(device));
  EXPECT_THROW(taken.batch.tokens.token_ids_T() * 2, c10::Error);
}

}  // namespace
}  // namespace convoy
