// SPDX-License-Identifier: Apache-2.0
//
// Tests gradients that are sent as bf16.
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/train/parallel/ddp/ddp.h"
#include "convoy/train/parallel/ddp/grad_reducer.h"
#include "convoy/train/parallel/sharded/sharded.h"
#include "ranks/ranks.h"

namespace convoy::parallel {
namespace {

std::unique_ptr<comm::Group> join_compressed() {
  return comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300));
}

at::Tensor gradient_of(int rank) {
  at::manual_seed(static_cast<uint64_t>(100 + rank));
  return at::randn({3000}) * at::pow(10.0, at::randn({3000}));  // many orders of magnitude
}

std::vector<at::Tensor> reduced(comm::Group& group, const at::Tensor& gradient) {
  std::vector<at::Tensor> gradients = {gradient.clone(), gradient.clone().mul_(-0.5)};
  GradReducer reducer(group, gradients, {1, 0}, 8000, at::kBFloat16);
  for (const size_t index : {0, 1}) reducer.mark_ready(index);
  reducer.finish_step();
  return gradients;
}

RANK_BODY(WithinTheStatedBound) {
  const auto group = join_compressed();
  at::Tensor sum = at::zeros({3000}), of_absolutes = at::zeros({3000});
  for (int rank = 0; rank < group->size(); ++rank) {
    sum += gradient_of(rank);
    of_absolutes += gradient_of(rank).abs();
  }
  const std::vector<at::Tensor> found = reduced(*group, gradient_of(group->rank()));
  const at::Tensor bound = of_absolutes * (group->size() / 256.0);
  EXPECT_TRUE(((found[0] - sum).abs() <= bound).all().item<bool>());
  EXPECT_TRUE(((found[1] + 0.5 * sum).abs() <= 0.5 * bound).all().item<bool>());
  EXPECT_FALSE(found[0].equal(sum)) << "nothing was rounded";
  // All ranks have the same bits.
  at::Tensor all = at::empty({group->size() * 3000});
  group->all_gather(found[0], all);
  EXPECT_TRUE(all.view({-1, 3000}).eq(found[0]).all().item<bool>());
}
TEST(Compression, ErrorStaysWithinTheStatedBound) {
  for (const int ranks : {2, 3, 4})
    testing::expect_all_well(testing::start_ranks(ranks, "WithinTheStatedBound"));
}

RANK_BODY(WhatBf16Holds) {
  const auto group = join_compressed();
  const at::Tensor small = at::arange(64, at::kFloat) - 32;
  const std::vector<at::Tensor> found = reduced(*group, small);
  EXPECT_TRUE(found[0].equal(small * group->size()));
  EXPECT_TRUE(found[1].equal(small * -0.5 * group->size()));
}
TEST(Compression, WhatBf16HoldsIsSummedExactly) {
  testing::expect_all_well(testing::start_ranks(2, "WhatBf16Holds"));
}

// The micro-batches of a rank are added in fp32; only their sum is rounded.
RANK_BODY(Accumulates) {
  const auto group = join_compressed();
  const at::Tensor value = at::ones({1}).set_requires_grad(true);
  Ddp ddp(*group, 1 << 20, at::kBFloat16);
  ddp.prepare({{.name = "unit", .trained = {{"w", value}}}});
  for (int step = 0; step < 2; ++step) {
    for (int micro = 0; micro < 64; ++micro) {
      ddp.begin_micro_batch(micro == 63 ? MicroBatch::Last : MicroBatch::More);
      (value * (micro == 0 ? 256.0 : 1.0 / 16)).sum().backward();
    }
    ddp.finish_gradients();
    // 256 + 63 / 16 = 259.9375 rounds to 260 in bf16. If each addition were rounded, the sum would
    // be 256.
    EXPECT_EQ(ddp.shards()[0].gradient.item<float>(), 520);
    EXPECT_EQ(ddp.shards()[0].gradient.scalar_type(), at::kFloat);
    ddp.finish_step();
  }
}
// zero2 rounds the gradient of each micro-batch, and adds the sums over ranks in fp32.
RANK_BODY(ShardsAccumulate) {
  const auto group = join_compressed();
  for (const ShardLevel level : {ShardLevel::Optimizer, ShardLevel::Gradients}) {
    const at::Tensor value = at::ones({1}).set_requires_grad(true);
    Sharded sharded(*group, {.level = level, .wire = at::kBFloat16});
    sharded.prepare({{.name = "unit", .trained = {{"w", value}}}});
    for (int step = 0; step < 2; ++step) {
      for (int micro = 0; micro < 64; ++micro) {
        sharded.begin_micro_batch(micro == 63 ? MicroBatch::Last : MicroBatch::More);
        (value * (micro == 0 ? 257.0 : 1.0 / 16)).sum().backward();
      }
      sharded.finish_gradients();
      // Each of the two ranks has 257 + 63 / 16 = 260.9375; 257 alone rounds to 256 in bf16.
      const double wanted = level == ShardLevel::Optimizer ? 520 : 2 * (256 + 63.0 / 16);
      for (const ParameterShard& shard : sharded.shards())
        EXPECT_EQ(shard.gradient.item<float>(), wanted);
      sharded.finish_step();
    }
  }
}
TEST(Compression, AccumulationOfShardsStaysFp32) {
  testing::expect_all_well(testing::start_ranks(2, "ShardsAccumulate"));
}

TEST(Compression, AccumulationStaysFp32) {
  testing::expect_all_well(testing::start_ranks(2, "Accumulates"));
}

}  // namespace
}  // namespace convoy::parallel
