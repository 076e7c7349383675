// SPDX-License-Identifier: Apache-2.0
//
// Against curves that PyTorch's fully_shard gave, and against one process.
#include "convoy/library/fsdp.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>

#include "convoy/core/base/error.h"
#include "convoy/library/network_test.h"
#include "convoy/machine/device/refillable_tensor.h"

namespace convoy::detail {
namespace {

using torch::optim::AdamWOptions;
using torch::optim::SGDOptions;

template <class Optimizer, class Options>
std::vector<double> train_sharded(ProcessGroup& group, const Options& options,
                                  int64_t micro_batches, double clip = 0) {
  FullyShardedDataParallel model(golden_network(group),
                                 std::shared_ptr<ProcessGroup>(&group, [](auto*) {}));
  Optimizer optimizer(model.parameters(), options);
  return curve_of(
      group, model, micro_batches, [&] { optimizer.zero_grad(); },
      [&] {
        if (clip > 0) {
          EXPECT_GT(model.clip_grad_norm(clip), clip);
        }
        optimizer.step();
      });
}

RANK_BODY(FsdpCurves) {
  const auto group = init();
  expect_curve(train_sharded<torch::optim::AdamW>(*group, AdamWOptions(3e-3).weight_decay(0.1), 1),
               "fsdp_adamw");
  expect_curve(
      train_sharded<torch::optim::SGD>(*group, SGDOptions(0.05).momentum(0.9).nesterov(true), 2),
      "fsdp_sgd_accumulated");
  expect_curve(
      train_sharded<torch::optim::AdamW>(*group, AdamWOptions(3e-3).weight_decay(0.1), 1, 0.5),
      "fsdp_adamw_clipped");
}
TEST(FullyShardedDataParallel, LossCurvesArePyTorchs) {
  expect_all_well(start_ranks(2, "FsdpCurves"));
}

// Units in units, in a Sequential, with several tensors in and out, frozen parts, parameters of
// other types, a weight that two parts share; sizes that no number of ranks divides.
struct PairImpl : torch::nn::Module {
  explicit PairImpl(at::Tensor shared) {
    inner = register_module("inner", FsdpUnit(torch::nn::Linear(5, 5)));
    scale = register_parameter("scale", at::randn({5}, at::kDouble) / 4);
    tied = register_parameter("tied", std::move(shared));
    frozen = register_parameter("frozen", at::randn({5, 5}) / 4, /*requires_grad=*/false);
  }
  std::tuple<at::Tensor, at::Tensor> forward(std::pair<at::Tensor, at::Tensor> both,
                                             double factor) {
    auto [a, b] = both;
    a = at::tanh(inner(a) + b.mm(tied) * factor);
    return {a, (b * scale).to(at::kFloat) + a.mm(frozen)};
  }
  FsdpUnit<torch::nn::Linear> inner{nullptr};
  at::Tensor scale, tied, frozen;
};
TORCH_MODULE(Pair);

struct OddImpl : torch::nn::Module {
  OddImpl() {
    words = register_module("words", torch::nn::Embedding(7, 5));
    tied = register_parameter("tied", at::randn({5, 5}) / 4);
    for (const char* name : {"first", "second"})
      pairs.push_back(register_module(name, FsdpUnit(Pair(tied))));
    tail = register_module(
        "tail", torch::nn::Sequential(FsdpUnit(torch::nn::Linear(5, 3)), torch::nn::Tanh(),
                                      FsdpUnit(torch::nn::Linear(3, 2))));
  }
  std::vector<at::Tensor> forward(const at::Tensor& ids) {
    std::tuple<at::Tensor, at::Tensor> both{words(ids), at::ones({ids.size(0), 5})};
    for (FsdpUnit<Pair>& pair : pairs)
      both = pair(std::pair(std::get<0>(both), std::get<1>(both)), 0.5);
    return {tail->forward(std::get<0>(both)), std::get<1>(both).mm(tied)};
  }
  torch::nn::Embedding words{nullptr};
  at::Tensor tied;
  std::vector<FsdpUnit<Pair>> pairs;
  torch::nn::Sequential tail{nullptr};
};
TORCH_MODULE(Odd);

at::Tensor ids_of(int64_t step, int64_t rank) {
  torch::manual_seed(static_cast<uint64_t>(100 * step + rank));
  return at::randint(7, {4 + rank}, at::kLong);
}

at::Tensor odd_loss(const std::vector<at::Tensor>& outputs) {
  return outputs[0].square().mean() + outputs[1].sin().mean();
}

using Values = std::map<std::string, at::Tensor>;

Values values_of(Odd& odd) {
  Values values;
  for (const auto& item : odd->named_parameters())
    values[item.key()] = item.value().detach().clone();
  return values;
}

Values trained_alone(int num_ranks) {
  torch::manual_seed(5);
  Odd odd;
  std::vector<at::Tensor> parameters;  // `tied` has three names
  for (const at::Tensor& parameter : odd->parameters())
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](const at::Tensor& each) { return each.is_same(parameter); }))
      parameters.push_back(parameter);
  torch::optim::Adam optimizer(parameters, 0.02);
  for (int64_t step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    for (int rank = 0; rank < num_ranks; ++rank)
      (odd_loss(odd(ids_of(step, rank))) / num_ranks).backward();
    optimizer.step();
  }
  return values_of(odd);
}

RANK_BODY(OddNetwork) {
  const auto group = init();
  torch::manual_seed(5 + static_cast<uint64_t>(group->rank()));
  Odd odd;
  FullyShardedDataParallel model(odd, group);
  torch::optim::Adam optimizer(model.parameters(), 0.02);
  for (int64_t step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    odd_loss(model(ids_of(step, group->rank()))).backward();
    optimizer.step();
    const at::NoGradGuard no_grad;
    model(ids_of(step, 0));  // an evaluation in between
  }
  const Values wanted = trained_alone(group->size());
  model.with_whole_parameters([&] {
    for (const auto& [name, value] : values_of(odd))
      EXPECT_TRUE(at::allclose(value, wanted.at(name), 1e-4, 1e-5))
          << name << ": " << (value - wanted.at(name)).abs().max().item<double>();
  });
  for (const at::Tensor& parameter : odd->parameters()) EXPECT_TRUE(device::is_withheld(parameter));
  for (const ShardView& shard : model.shards())
    EXPECT_EQ(shard.name.find(".module"), std::string::npos);
}
TEST(FullyShardedDataParallel, OneRankEqualsOneProcess) {
  expect_all_well(start_ranks(1, "OddNetwork"));
}
TEST(FullyShardedDataParallel, TwoRanksEqualOneProcess) {
  expect_all_well(start_ranks(2, "OddNetwork"));
}
TEST(FullyShardedDataParallel, ThreeRanksEqualOneProcess) {
  expect_all_well(start_ranks(3, "OddNetwork"));
}

RANK_BODY(ShardedTwice) {
  const auto group = init();
  Network network;
  FullyShardedDataParallel model(network, group);
  FullyShardedDataParallel again(network, group);
}
TEST(FullyShardedDataParallel, ModuleIsShardedOnce) {
  for (const auto& result : start_ranks(2, "ShardedTwice")) {
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_NE(result.output.find("is sharded already"), std::string::npos) << result.output;
  }
}

TEST(FsdpUnit, IsItsModuleWithoutSharding) {
  FsdpUnit<torch::nn::Linear> unit(torch::nn::Linear(2, 3));
  EXPECT_EQ(unit(at::ones({1, 2})).sizes(), (at::IntArrayRef{1, 3}));
  EXPECT_EQ(unit->module()->weight.sizes(), (at::IntArrayRef{3, 2}));
}

}  // namespace
}  // namespace convoy::detail
