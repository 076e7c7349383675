// SPDX-License-Identifier: Apache-2.0
//
// Compares every strategy with one process that computes the whole batch.
#include "convoy/train/parallel/strategy.h"

#include <gtest/gtest.h>

#include <random>

#include "convoy/core/base/error.h"
#include "convoy/train/parallel/ddp/bucket_plan.h"
#include "convoy/train/parallel/ddp/ddp.h"
#include "convoy/train/parallel/ddp/grad_reducer.h"
#include "convoy/train/parallel/replicate/replicate.h"
#include "ranks/ranks.h"

namespace convoy::parallel {
namespace {

using testing::expect_all_well;
using testing::start_ranks;

// The limit is far beyond what a busy machine needs, so no test may reach it.
constexpr std::chrono::seconds kTimeout{300};

std::unique_ptr<comm::Group> join() {
  return comm::join_group(comm::read_rank_environment(), kTimeout);
}

// Four matrices, and one parameter that the loss does not use.
struct Toy {
  explicit Toy(at::ScalarType dtype, int64_t seed = 1) {
    at::manual_seed(static_cast<uint64_t>(seed));
    for (int64_t layer = 0; layer < 4; ++layer)
      add("layer" + std::to_string(layer), (at::randn({16, 16}) / 4).to(dtype));
    add("unused", at::randn({7}).to(dtype));
  }

  void add(const std::string& name, const at::Tensor& value) {
    parameters.push_back({name, value.clone().set_requires_grad(true)});
  }

  // The loss is a sum over rows, so the losses of parts of a batch add up.
  at::Tensor loss(const at::Tensor& rows) const {
    at::Tensor hidden = rows.to(parameters[0].value.scalar_type());
    for (size_t layer = 0; layer < 4; ++layer)
      hidden = at::tanh(hidden.matmul(parameters[layer].value));
    return hidden.to(at::kFloat).square().sum();
  }

  std::vector<nn::NamedTensor> parameters;
};

std::vector<nn::Unit> one_unit(const std::vector<nn::NamedTensor>& parameters) {
  return {{.name = "toy", .trained = parameters}};
}

at::Tensor batch_of(int64_t rows) {
  at::manual_seed(99);
  return at::randn({rows, 16});
}

// Returns the gradients of one process over all rows.
std::vector<at::Tensor> expected_gradients(const Toy& toy, const at::Tensor& rows) {
  toy.loss(rows).backward();
  std::vector<at::Tensor> gradients;
  for (const nn::NamedTensor& parameter : toy.parameters) {
    const at::Tensor& gradient = parameter.value.grad();
    gradients.push_back(gradient.defined() ? gradient.to(at::kFloat)
                                           : at::zeros(parameter.value.sizes()));
  }
  return gradients;
}

// Assigns the rows to ranks and micro-batches in turn, and computes their gradients.
void run_step(Strategy& strategy, const Toy& toy, const at::Tensor& rows, int64_t micro_batches) {
  const std::vector<at::Tensor> parts = rows.tensor_split(micro_batches * strategy.world());
  for (int64_t micro = 0; micro < micro_batches; ++micro) {
    strategy.begin_micro_batch(micro + 1 == micro_batches ? MicroBatch::Last : MicroBatch::More);
    const at::Tensor& part = parts[static_cast<size_t>(micro * strategy.world() + strategy.rank())];
    if (part.size(0) > 0) toy.loss(part).backward();
  }
  strategy.finish_gradients();
}

void expect_close(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected,
                  double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t index = 0; index < found.size(); ++index) {
    EXPECT_EQ(found[index].sizes(), expected[index].sizes());
    const at::Tensor wide = found[index].to(at::kFloat);
    EXPECT_TRUE(at::allclose(wide, expected[index], tolerance, tolerance))
        << index << ": " << (wide - expected[index]).abs().max().item<float>();
  }
}

// Runs several steps, so that state left by the first step would show. If the rows do not divide
// evenly, some ranks have empty micro-batches.
void compare_with_one_process(Strategy& strategy, at::ScalarType dtype, double tolerance) {
  const Toy toy(dtype, strategy.rank() + 1);  // prepare() gives all ranks rank 0's values
  strategy.prepare(one_unit(toy.parameters));
  const std::vector<at::Tensor> held = gradients_of(strategy.shards());  // as optimizers do
  for (size_t index = 0; index < held.size(); ++index)
    EXPECT_EQ(held[index].sizes(), toy.parameters[index].value.sizes());
  const Toy reference(dtype, 1);
  for (const int64_t micro_batches : {1, 3}) {
    for (const int64_t num_rows : {2, 12}) {
      const at::Tensor rows = batch_of(num_rows);
      for (const nn::NamedTensor& parameter : reference.parameters)
        parameter.value.mutable_grad().reset();
      const std::vector<at::Tensor> expected = expected_gradients(reference, rows);
      run_step(strategy, toy, rows, micro_batches);
      expect_close(held, expected, tolerance);
      for (const nn::NamedTensor& parameter : toy.parameters)
        EXPECT_FALSE(parameter.value.grad().defined());
      strategy.finish_step();
    }
  }
}

// Each rank rounds its bf16 gradients before they are summed; one process rounds them in other
// parts.
constexpr double kFp32Tolerance = 1e-5;
constexpr double kBf16Tolerance = 3e-2;

void conformance(const std::string& name, comm::Group& group) {
  settings::ParallelSettings settings;
  settings.strategy = name;
  compare_with_one_process(*make_strategy(settings, group), at::kFloat, kFp32Tolerance);
  compare_with_one_process(*make_strategy(settings, group), at::kBFloat16, kBf16Tolerance);
}

// A gradient of one micro-batch is rounded only once, by the product, because nothing is added to
// it.
TEST(Strategy, OneRankKeepsGradientsOfOneMicroBatchAsTheyAreMade) {
  const auto group = comm::join_group(comm::RankEnvironment(), std::chrono::seconds(1));
  settings::ParallelSettings settings;
  settings.strategy = "none";
  const auto strategy = make_strategy(settings, *group);
  const Toy toy(at::kBFloat16, 1);
  strategy->prepare(one_unit(toy.parameters));
  const auto type_after = [&](int64_t micro_batches) {
    run_step(*strategy, toy, batch_of(12), micro_batches);
    const at::ScalarType type = gradients_of(strategy->shards())[0].scalar_type();
    strategy->finish_step();
    return type;
  };
  EXPECT_EQ(type_after(1), at::kBFloat16);
  EXPECT_EQ(type_after(3), at::kFloat);
  EXPECT_EQ(type_after(1), at::kBFloat16);
}

TEST(Strategy, OneRankEqualsOneProcess) {
  const auto group = comm::join_group(comm::RankEnvironment(), std::chrono::seconds(1));
  for (const char* name : {"none", "ddp", "auto"}) conformance(name, *group);
}

RANK_BODY(Ddp) { conformance("auto", *join()); }
TEST(Strategy, DdpOnTwoRanksEqualsOneProcess) { expect_all_well(start_ranks(2, "Ddp")); }
TEST(Strategy, DdpOnThreeRanksEqualsOneProcess) { expect_all_well(start_ranks(3, "Ddp")); }

RANK_BODY(SmallBuckets) {
  const auto group = join();
  Ddp ddp(*group, 100);
  compare_with_one_process(ddp, at::kFloat, kFp32Tolerance);
}
TEST(Strategy, DdpWithABucketPerParameter) { expect_all_well(start_ranks(2, "SmallBuckets")); }

RANK_BODY(Accumulation) {
  // Adds 64 micro-batches with a tiny gradient to a large one. Accumulation in bf16 would lose all
  // the tiny gradients.
  const auto group = join();
  Ddp ddp(*group, 1 << 20);
  const at::Tensor value = at::ones({1}, at::kBFloat16).set_requires_grad(true);
  ddp.prepare(one_unit({{"w", value}}));
  for (int micro = 0; micro < 64; ++micro) {
    ddp.begin_micro_batch(micro == 63 ? MicroBatch::Last : MicroBatch::More);
    (value * (micro == 0 ? 256.0 : 0.5)).sum().backward();
  }
  ddp.finish_gradients();
  EXPECT_EQ(ddp.shards()[0].gradient.item<float>(), 2 * (256 + 63 * 0.5F));
}
TEST(Strategy, AccumulationKeepsFp32) { expect_all_well(start_ranks(2, "Accumulation")); }

RANK_BODY(Buffers) {
  const auto group = join();
  const auto of_rank = [&](float base) { return base + static_cast<float>(group->rank()); };
  const at::Tensor mean = at::full({3}, of_rank(10));
  const at::Tensor variance = at::full({2, 2}, of_rank(20));
  const at::Tensor count = at::full({}, group->rank(), at::kLong);
  const auto expect_values = [&](float mean_value, float variance_value, int64_t batches) {
    EXPECT_TRUE(mean.eq(mean_value).all().item<bool>()) << mean[0].item<float>();
    EXPECT_TRUE(variance.eq(variance_value).all().item<bool>());
    EXPECT_EQ(count.item<int64_t>(), batches);
  };
  const at::Tensor value = at::ones({2}).set_requires_grad(true);
  Ddp ddp(*group, 1 << 20);
  ddp.prepare({{.name = "norm",
                .trained = {{"weight", value}},
                .buffers = {{"mean", mean}, {"count", count}, {"variance", variance}}}});
  expect_values(10, 20, 0);
  for (int64_t step = 1; step < 4; ++step) {
    for (const MicroBatch which : {MicroBatch::More, MicroBatch::Last}) {
      ddp.begin_micro_batch(which);
      mean.add_(of_rank(1));  // as after a forward pass over different rows
      count.add_(1);
      value.sum().backward();
    }
    ddp.finish_gradients();
    ddp.finish_step();
    expect_values(10 + 2 * static_cast<float>(step), 20, 2 * step);
  }
}
TEST(Strategy, BuffersAreThoseOfRankZeroAfterEachStep) {
  expect_all_well(start_ranks(3, "Buffers"));
}

RANK_BODY(OtherBuffers) {
  const auto group = join();
  Ddp ddp(*group, 1 << 20);
  ddp.prepare({{.name = "norm",
                .trained = {{"weight", at::ones({2}).set_requires_grad(true)}},
                .buffers = {{"running_mean", at::zeros({2 + group->rank()})}}}});
}
TEST(Strategy, DifferentBuffersAreNamed) {
  for (const auto& result : start_ranks(2, "OtherBuffers")) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.output.find("running_mean [3] fp32"), std::string::npos) << result.output;
  }
}

RANK_BODY(Repeats) {
  const auto group = join();
  const Toy toy(at::kFloat);
  Ddp ddp(*group, 2000);
  ddp.prepare(one_unit(toy.parameters));
  std::vector<at::Tensor> first;
  for (int repeat = 0; repeat < 10; ++repeat) {
    run_step(ddp, toy, batch_of(12), 2);
    if (repeat == 0)
      for (const ParameterShard& shard : ddp.shards()) first.push_back(shard.gradient.clone());
    for (size_t index = 0; index < first.size(); ++index)
      EXPECT_TRUE(ddp.shards()[index].gradient.equal(first[index]));
    ddp.finish_step();
  }
}
TEST(Strategy, DdpRepeatsBitwise) { expect_all_well(start_ranks(2, "Repeats")); }

RANK_BODY(Orders) {
  const auto group = join();
  const std::vector<std::vector<int64_t>> shapes = {{3}, {2, 2}, {5}, {}, {1, 4}};
  for (const int64_t bucket_bytes : {1, 20, 40, 1 << 20}) {
    std::vector<at::Tensor> gradients;
    for (const std::vector<int64_t>& shape : shapes) gradients.push_back(at::ones(shape));
    GradReducer reducer(*group, gradients, {3, 0, 4, 1, 2}, bucket_bytes);
    for (const at::Tensor& gradient : gradients) EXPECT_TRUE(gradient.eq(1).all().item<bool>());
    for (unsigned step = 0; step < 3; ++step) {
      // Each rank completes its gradients in a different order.
      std::vector<size_t> order = {0, 1, 2, 3, 4};
      std::shuffle(order.begin(), order.end(),
                   std::mt19937(step * 10 + static_cast<unsigned>(group->rank())));
      for (const size_t index : order) {
        gradients[index].fill_(static_cast<float>(index) +
                               10.F * static_cast<float>(group->rank()));
        reducer.mark_ready(index);
      }
      reducer.finish_step();
      for (size_t index = 0; index < shapes.size(); ++index) {
        const float sum = 2 * static_cast<float>(index) + 10;
        EXPECT_TRUE(gradients[index].eq(sum).all().item<bool>());
        EXPECT_EQ(gradients[index].sizes().vec(), shapes[index]);
      }
    }
    EXPECT_THROW(reducer.finish_step(), StateError);
    reducer.mark_ready(0);
    EXPECT_THROW(reducer.mark_ready(0), StateError);
    for (size_t index = 1; index < shapes.size(); ++index) reducer.mark_ready(index);
    reducer.finish_step();
  }
}
TEST(GradReducer, AnyOrderOfCompletionOnEachRank) { expect_all_well(start_ranks(2, "Orders")); }

RANK_BODY(Differ) {
  const auto group = join();
  const int64_t rows = group->rank() == 1 ? 3 : 2;
  Ddp ddp(*group, 1 << 20);
  ddp.prepare(one_unit({{"same", at::zeros({2}).set_requires_grad(true)},
                        {"layers.3.weight", at::zeros({rows, 2}).set_requires_grad(true)}}));
}
TEST(Strategy, DifferentParametersAreNamed) {
  for (const auto& result : start_ranks(2, "Differ")) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.output.find("layers.3.weight [2, 2] fp32"), std::string::npos)
        << result.output;
    EXPECT_NE(result.output.find("layers.3.weight [3, 2] fp32"), std::string::npos);
  }
}

RANK_BODY(ThrowsInBackward) {
  const auto group = join();
  const Toy toy(at::kFloat);
  Ddp ddp(*group, 100);
  ddp.prepare(one_unit(toy.parameters));
  run_step(ddp, toy, batch_of(4), 1);
  ddp.finish_step();
  ddp.begin_micro_batch(MicroBatch::Last);
  const at::Tensor loss = toy.loss(batch_of(4));
  // When rank 1 fails, the reductions of its first buckets have begun; rank 0 waits for the others.
  if (group->rank() == 1)
    toy.parameters[2].value.register_hook(
        [](at::Tensor) -> at::Tensor { throw NumericError("planted"); });
  loss.backward();
  ddp.finish_gradients();
}
TEST(Strategy, RankThatThrowsInBackwardEndsAllLongBeforeTheTimeout) {
  const auto results = start_ranks(2, "ThrowsInBackward");
  EXPECT_EQ(results[1].exit_code, 15) << results[1].output;
  EXPECT_EQ(results[0].exit_code, 13) << results[0].output;
  for (const auto& result : results) EXPECT_LT(result.seconds, kTimeout.count() / 2.0);
}

TEST(BucketPlan, FollowsTheOrderWithASmallFirstBucket) {
  constexpr int64_t kMiB = 1 << 20;
  EXPECT_EQ(plan_buckets({4, 3, 2, 1, 0}, {kMiB, kMiB, kMiB, kMiB / 2, kMiB / 2}, 2 * kMiB),
            (std::vector<std::vector<size_t>>{{4, 3}, {2, 1}, {0}}));
  EXPECT_EQ(plan_buckets({0, 2, 1}, {1, 30 * kMiB, 5}, 25 * kMiB),
            (std::vector<std::vector<size_t>>{{0, 2, 1}}));
  EXPECT_EQ(plan_buckets({2, 1, 0}, {1, 30 * kMiB, 5}, 25 * kMiB),
            (std::vector<std::vector<size_t>>{{2, 1}, {0}}));
  EXPECT_EQ(plan_buckets({0, 1}, {8, 8}, 4), (std::vector<std::vector<size_t>>{{0}, {1}}));
  EXPECT_TRUE(plan_buckets({}, {}, 4).empty());
}

// Imitates a peer that holds the same values as this rank, and records what was sent to it.
class TwoRanks : public comm::Group {
 public:
  class DoneWork : public comm::Work {
    void wait() override {}
  };

  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::unique_ptr<comm::Work> start_all_reduce(at::Tensor tensor, comm::Reduction) override {
    sent_numbers.push_back(tensor.numel());
    return std::make_unique<DoneWork>();
  }
  std::unique_ptr<comm::Work> start_reduce_scatter(at::Tensor, at::Tensor,
                                                   comm::Reduction) override {
    return std::make_unique<DoneWork>();
  }
  std::unique_ptr<comm::Work> start_all_gather(at::Tensor, at::Tensor) override {
    return std::make_unique<DoneWork>();
  }
  std::unique_ptr<comm::Group> split(int, std::string_view) override { return nullptr; }
  void broadcast(at::Tensor, int) override {}
  std::vector<std::string> all_gather_bytes(std::string_view bytes) override {
    return {std::string(bytes), std::string(bytes)};
  }
  void barrier() override {}
  void abort() override {}

  std::vector<int64_t> sent_numbers;
};

// A model with adapters and a trained embedding. The embedding is listed last, as modules_to_save
// are, and its gradient is ready last.
struct ToyWithWholeModule : Toy {
  ToyWithWholeModule() : Toy(at::kFloat) { add("whole", at::randn({16, 16}) / 4); }
  at::Tensor loss_of(const at::Tensor& rows) const {
    return loss(rows.matmul(parameters.back().value));
  }
};

TEST(Ddp, BucketsAreSentAsBackwardMakesThemReadyWhateverTheList) {
  TwoRanks group;
  const ToyWithWholeModule toy;
  Ddp ddp(group, 1);  // a bucket for each parameter
  ddp.prepare(one_unit(toy.parameters));
  size_t sent_before_the_last = 0;
  toy.parameters.back().value.register_hook(
      [&](const at::Tensor&) { sent_before_the_last = group.sent_numbers.size(); });
  for (int step = 0; step < 3; ++step) {
    group.sent_numbers.clear();
    for (const MicroBatch which : {MicroBatch::More, MicroBatch::Last}) {
      ddp.begin_micro_batch(which);
      toy.loss_of(batch_of(4)).backward();
    }
    // All four layers were sent during backward. In the first step their order was not yet known.
    EXPECT_EQ(sent_before_the_last, step == 0 ? 0U : 4U) << "step " << step;
    ddp.finish_gradients();
    ddp.finish_step();
    EXPECT_EQ(group.sent_numbers, (std::vector<int64_t>{256, 256, 256, 256, 256, 7}));
  }
}

RANK_BODY(SameLayoutAfterAResume) {
  const auto group = join();
  const auto gradients_of_last_step = [&](const std::vector<int64_t>& rows_of_steps) {
    const ToyWithWholeModule toy;
    Ddp ddp(*group, 2000);
    ddp.prepare(one_unit(toy.parameters));
    for (const int64_t num_rows : rows_of_steps) {
      ddp.finish_step();
      const std::vector<at::Tensor> parts = batch_of(num_rows).tensor_split(group->size());
      ddp.begin_micro_batch(MicroBatch::Last);
      const at::Tensor& part = parts[static_cast<size_t>(group->rank())];
      if (part.size(0) > 0) toy.loss_of(part).backward();
      ddp.finish_gradients();
    }
    std::vector<at::Tensor> values;
    for (const ParameterShard& shard : ddp.shards()) values.push_back(shard.gradient.clone());
    return values;
  };
  const std::vector<at::Tensor> unbroken = gradients_of_last_step({12, 2, 9});
  const std::vector<at::Tensor> resumed = gradients_of_last_step({9});
  for (size_t index = 0; index < unbroken.size(); ++index)
    EXPECT_TRUE(unbroken[index].equal(resumed[index])) << index;
}
TEST(Ddp, AResumedRunAddsUpAsTheUnbrokenOneDoes) {
  expect_all_well(start_ranks(3, "SameLayoutAfterAResume"));
}

TEST(Strategy, RegistryRefusesWhatCanNotBe) {
  TwoRanks group;
  settings::ParallelSettings settings;
  settings.strategy = "none";
  EXPECT_THROW(make_strategy(settings, group), ConfigError);
  settings.strategy = "zero9";
  EXPECT_THROW(make_strategy(settings, group), ConfigError);
}

TEST(Strategy, PlainAgainAfterwards) {
  const auto group = comm::join_group(comm::RankEnvironment(), std::chrono::seconds(1));
  const Toy toy(at::kFloat);
  {
    Replicate replicate(*group);
    replicate.prepare(one_unit(toy.parameters));
  }
  toy.loss(batch_of(2)).backward();
  EXPECT_TRUE(toy.parameters[0].value.grad().defined());
}

}  // namespace
}  // namespace convoy::parallel
