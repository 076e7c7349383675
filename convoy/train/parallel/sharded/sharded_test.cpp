// SPDX-License-Identifier: Apache-2.0
//
// Compares ZeRO 1 to 3 with one process that computes the whole batch.
#include "convoy/train/parallel/sharded/sharded.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/train/optim/adamw.h"
#include "load/slowdown.h"
#include "ranks/ranks.h"

namespace convoy::parallel {
namespace {

using testing::expect_all_well;
using testing::start_ranks;

std::unique_ptr<comm::Group> join_sharded() {
  return comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300));
}

constexpr int64_t kWidth = 30;  // the pieces do not end at the ends of weights

// Units 0 and 3 are trained completely, unit 1 has a frozen part, and unit 2 is frozen and held in
// codes. No number of ranks divides the number of trained elements of unit 1.
class Network {
 public:
  explicit Network(at::ScalarType dtype, int64_t seed) {
    for (int layer = 0; layer < 4; ++layer) {
      const std::string name = "layer" + std::to_string(layer);
      at::manual_seed(static_cast<uint64_t>(10 * seed + layer));
      nn::Unit unit{.name = name};
      if (layer != 2) {
        unit.trained.push_back({name + ".weight", random({kWidth, kWidth}, dtype)});
        unit.trained.push_back({name + ".bias", random({kWidth}, dtype)});
        unit.trained.push_back({name + ".scale", random({kWidth}, at::kFloat)});
      }
      if (layer == 1) unit.trained.push_back({"unused", random({7}, dtype)});
      for (const nn::NamedTensor& parameter : unit.trained) parameter.value.requires_grad_();
      at::manual_seed(static_cast<uint64_t>(layer));  // all ranks have the same frozen values
      if (layer == 1) unit.frozen.push_back({name + ".base", random({kWidth, kWidth}, dtype)});
      if (layer == 2) {
        unit.frozen.push_back({name + ".codes", at::randint(256, {kWidth, kWidth}, at::kByte)});
        unit.frozen.push_back({name + ".absmax", at::rand({kWidth})});
      }
      units.push_back(std::move(unit));
    }
  }

  // The loss is a sum over rows, so the losses of parts of a batch add up.
  at::Tensor loss(const at::Tensor& rows, nn::Residency* residency) const {
    at::Tensor x = rows.to(units[0].trained[0].value.scalar_type());
    for (size_t index = 0; index < units.size(); ++index) {
      const nn::UnitUse use(residency, index);
      x = use.enter(x);
      x = use.leave(layer(units[index], x));
    }
    return x.to(at::kFloat).square().sum();
  }

  std::vector<nn::Unit> units;

 private:
  static at::Tensor layer(const nn::Unit& unit, const at::Tensor& x) {
    at::Tensor y = x;
    if (!unit.frozen.empty()) y = y + at::tanh(x.mm(frozen_weight(unit).to(x.scalar_type())));
    if (unit.trained.empty()) return y;
    y = at::addmm(unit.trained[1].value, y, unit.trained[0].value);
    return at::tanh(y.to(at::kFloat) * unit.trained[2].value).to(x.scalar_type());
  }
  // Returns the frozen weight, which is stored whole or as codes with a scale for each row.
  static at::Tensor frozen_weight(const nn::Unit& unit) {
    const at::Tensor& first = unit.frozen[0].value;
    if (unit.frozen.size() == 1) return first;
    return (first.to(at::kFloat) - 128) / 384 * unit.frozen[1].value.unsqueeze(1);
  }
  static at::Tensor random(at::IntArrayRef shape, at::ScalarType dtype) {
    return (at::randn(shape) / 3).to(dtype);
  }
};

at::Tensor sharded_batch_of(int64_t rows, int64_t seed) {
  at::manual_seed(static_cast<uint64_t>(seed));
  return at::randn({rows, kWidth});
}

using Values = std::map<std::string, at::Tensor>;

std::vector<optim::OptimizedParameter> optimized(const Strategy& strategy) {
  std::vector<optim::OptimizedParameter> list;
  for (const ParameterShard& shard : strategy.shards())
    list.push_back({.name = shard.name, .value = shard.value, .gradient = shard.gradient});
  return list;
}

// Trains for eight steps. In steps of two rows, some ranks or micro-batches have no rows.
Values train(Strategy& strategy, at::ScalarType dtype, int64_t micro_batches,
             std::vector<double>* gradient_squares = nullptr) {
  Network network(dtype, strategy.rank() + 1);  // prepare() gives all ranks rank 0's values
  strategy.prepare(network.units);
  optim::AdamW optimizer({.epsilon = 1e-3, .weight_decay = 0.1}, optimized(strategy));
  for (int64_t step = 0; step < 8; ++step) {
    const std::vector<at::Tensor> parts = sharded_batch_of(step % 3 == 1 ? 2 : 12, step)
                                              .tensor_split(micro_batches * strategy.world());
    for (int64_t micro = 0; micro < micro_batches; ++micro) {
      strategy.begin_micro_batch(micro + 1 == micro_batches ? MicroBatch::Last : MicroBatch::More);
      const at::Tensor& part =
          parts[static_cast<size_t>(micro * strategy.world() + strategy.rank())];
      nn::Residency* const residency = strategy.residency();
      if (part.size(0) > 0 || (residency != nullptr && residency->is_collective()))
        network.loss(part, residency).backward();
    }
    strategy.finish_gradients();
    if (gradient_squares != nullptr) {
      double sum = 0;
      for (const at::Tensor& gradient : gradients_of(strategy.shards()))
        sum += gradient.square().sum().item<double>();
      gradient_squares->push_back(sum);
    }
    optimizer.step(0.01);
    strategy.finish_step();
  }
  // Collects the values of every unit.
  Values values;
  const at::NoGradGuard no_grad;
  for (size_t index = 0; index < network.units.size(); ++index) {
    const nn::UnitUse use(strategy.residency(), index);
    for (const nn::NamedTensor& parameter : network.units[index].trained)
      values[parameter.name] = parameter.value.detach().to(at::kFloat).clone();
  }
  return values;
}

Values expected(at::ScalarType dtype, int64_t micro_batches,
                std::vector<double>* gradient_squares) {
  const auto alone = comm::join_group(comm::RankEnvironment(), std::chrono::seconds(1));
  const auto strategy = make_strategy({}, *alone);
  return train(*strategy, dtype, micro_batches, gradient_squares);
}

void expect_close_tensors(const Values& found, const Values& wanted, double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, value] : wanted)
    EXPECT_TRUE(at::allclose(found.at(name), value, tolerance, tolerance))
        << name << ": " << (found.at(name) - value).abs().max().item<float>();
}

std::vector<ShardedConfig> configs_for(const comm::Group& group) {
  std::vector<ShardedConfig> configs = {
      {.level = ShardLevel::Optimizer},
      {.level = ShardLevel::Gradients},
      {.level = ShardLevel::Parameters},
      {.level = ShardLevel::Parameters, .smallest_elements = 1'000'000},
      {.level = ShardLevel::Parameters, .reshard_after_forward = false}};
  if (group.size() == 2) configs.push_back({.level = ShardLevel::Parameters, .prefetch = 3});
  if (group.size() == 4)
    for (const ShardLevel level : {ShardLevel::Optimizer, ShardLevel::Parameters})
      configs.push_back({.level = level, .ranks_that_share = 2});
  return configs;
}

void compare_shards_with_one_process(comm::Group& group) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const int64_t micro_batches : {1, 3}) {
      std::vector<double> wanted_gradient_squares;
      const Values wanted = expected(dtype, micro_batches, &wanted_gradient_squares);
      for (const ShardedConfig& config : configs_for(group)) {
        SCOPED_TRACE(fmt::format("level {} of {}, {} micro-batches, {} ranks share",
                                 static_cast<int>(config.level), c10::toString(dtype),
                                 micro_batches, config.ranks_that_share));
        std::vector<double> own_gradient_squares;
        Sharded strategy(group, config);
        const Values found = train(strategy, dtype, micro_batches, &own_gradient_squares);
        expect_close_tensors(found, wanted, dtype == at::kFloat ? 2e-5 : 3e-2);
        at::Tensor gradient_squares = at::tensor(own_gradient_squares, at::kFloat);
        group.all_reduce_sum(gradient_squares);
        gradient_squares.div_(strategy.num_owners());
        EXPECT_TRUE(at::allclose(gradient_squares, at::tensor(wanted_gradient_squares, at::kFloat),
                                 dtype == at::kFloat ? 1e-4 : 0.1));
        Sharded again(group, config);
        for (const auto& [name, value] : train(again, dtype, micro_batches))
          EXPECT_TRUE(value.equal(found.at(name))) << name << " differs the second time";
      }
    }
  }
}

TEST(Sharded, OneRankEqualsOneProcess) {
  const auto group = comm::join_group(comm::RankEnvironment(), std::chrono::seconds(1));
  compare_shards_with_one_process(*group);
}

RANK_BODY(ShardedEqualsOneProcess) { compare_shards_with_one_process(*join_sharded()); }
TEST(Sharded, TwoRanksEqualOneProcess) {
  expect_all_well(start_ranks(2, "ShardedEqualsOneProcess"));
}
TEST(Sharded, ThreeRanksEqualOneProcess) {
  expect_all_well(start_ranks(3, "ShardedEqualsOneProcess"));
}
TEST(Sharded, FourRanksEqualOneProcess) {
  expect_all_well(start_ranks(4, "ShardedEqualsOneProcess"));
}

RANK_BODY(HoldsItsPiece) {
  const auto group = join_sharded();
  Network network(at::kFloat, 1);
  Sharded strategy(*group, {.level = ShardLevel::Parameters});
  strategy.prepare(network.units);
  const auto bytes_held = [&] {
    size_t bytes = 0;
    for (const size_t unit : {0, 3})
      bytes += network.units[unit].trained[0].value.storage().nbytes();
    for (const size_t unit : {1, 2})
      bytes += network.units[unit].frozen[0].value.storage().nbytes();
    return bytes;
  };
  EXPECT_EQ(bytes_held(), 0U);
  strategy.begin_micro_batch(MicroBatch::Last);
  const at::Tensor loss = network.loss(sharded_batch_of(4, 1), strategy.residency());
  EXPECT_EQ(bytes_held(), 0U);  // none of it between forward and backward
  loss.backward();
  strategy.finish_gradients();
  EXPECT_EQ(bytes_held(), 0U);
  int64_t owned = 0;
  for (const ParameterShard& shard : strategy.shards()) owned += shard.value.numel();
  constexpr int64_t kTrained = 3 * (kWidth * kWidth + 2 * kWidth) + 7;
  EXPECT_LT(owned, kTrained * 9 / 10);
  at::Tensor all = at::full({1}, owned, at::kLong);
  group->all_reduce_sum(all);
  EXPECT_EQ(all.item<int64_t>(), kTrained);
}
TEST(Sharded, BetweenUsesOnlyThePieceIsHeld) { expect_all_well(start_ranks(2, "HoldsItsPiece")); }

// The next pass waits for the values of each unit in turn; a reader without a residency waits for
// all values.
RANK_BODY(SettlesValues) {
  const auto group = join_sharded();
  Network network(at::kFloat, 1);
  Sharded strategy(*group, {.level = ShardLevel::Gradients});
  strategy.prepare(network.units);
  ASSERT_TRUE(strategy.values_are_whole());
  for (const ParameterShard& shard : strategy.shards()) shard.value.fill_(group->rank() + 1);
  strategy.begin_micro_batch(MicroBatch::Last);
  strategy.finish_gradients();
  strategy.finish_step();
  strategy.settle();
  std::set<float> found;
  for (const nn::Unit& unit : network.units)
    for (const nn::NamedTensor& parameter : unit.trained)
      for (const float value :
           {parameter.value.min().item<float>(), parameter.value.max().item<float>()})
        found.insert(value);
  EXPECT_EQ(found, (std::set<float>{1, 2}));
}
TEST(Sharded, AfterSettlingEveryRankHoldsAllPieces) {
  expect_all_well(start_ranks(2, "SettlesValues"));
}

RANK_BODY(ShardedThrowsInBackward) {
  const auto group = join_sharded();
  Network network(at::kFloat, 1);
  Sharded strategy(*group, {.level = ShardLevel::Parameters});
  strategy.prepare(network.units);
  if (group->rank() == 1)
    network.units[1].trained[0].value.register_hook(
        [](at::Tensor) -> at::Tensor { throw NumericError("planted"); });
  strategy.begin_micro_batch(MicroBatch::Last);
  network.loss(sharded_batch_of(4, 1), strategy.residency()).backward();
  strategy.finish_gradients();
}
TEST(Sharded, RankThatThrowsInBackwardEndsAll) {
  const auto results = start_ranks(2, "ShardedThrowsInBackward");
  EXPECT_EQ(results[1].exit_code, 15) << results[1].output;
  EXPECT_EQ(results[0].exit_code, 13) << results[0].output;
  for (const auto& result : results) EXPECT_LT(result.seconds, 60 * testing::slowdown());
}

RANK_BODY(ShardedRefusals) {
  const auto group = join_sharded();
  EXPECT_THROW(Sharded(*group, {.ranks_that_share = 2}), ConfigError) << "three ranks";
  Network network(at::kFloat, 1);
  Sharded offloads(*group, {.offload = Offload::Optimizer});
  EXPECT_THROW(offloads.prepare(network.units), ConfigError) << "on the host already";
}
TEST(Sharded, WhatCannotBeHonouredIsRefused) { expect_all_well(start_ranks(3, "ShardedRefusals")); }

TEST(GatherOrder, LearnsForwardAndBackward) {
  GatherOrder order;
  EXPECT_TRUE(order.next(2).empty());
  const auto pass = [&](bool learned) {
    const std::vector<size_t> units = {0, 1, 2, 3, 0, 3, 2, 1};
    for (size_t at = 0; at < units.size(); ++at) {
      order.note(units[at]);
      if (!learned) continue;
      const auto after = [&](size_t steps) { return units[(at + steps) % units.size()]; };
      EXPECT_EQ(order.next(3), (std::vector<size_t>{after(1), after(2), after(3)})) << at;
    }
  };
  pass(false);
  pass(false);  // from a pass's last unit to the next pass's first
  pass(true);
}

}  // namespace
}  // namespace convoy::parallel
