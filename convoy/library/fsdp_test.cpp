// SPDX-License-Identifier: Apache-2.0
//
// Compares with the curves of PyTorch's fully_shard, and with one process.
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
                                  int64_t micro_batches, double clip = 0,
                                  const FullyShardedOptions& sharding = {}) {
  FullyShardedDataParallel model(golden_network(group),
                                 std::shared_ptr<ProcessGroup>(&group, [](auto*) {}), sharding);
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

std::vector<FullyShardedOptions> exact_options() {
  return {{.reshard_after_forward = false},
          {.prefetch_units = 3},
          {.keep_whole_below = 1 << 20},  // keeps every unit whole
          {.reshard_after_forward = false, .keep_whole_below = 1000},
          {.gradient_dtype = at::kFloat}};
}

RANK_BODY(FsdpOptionsCurves) {
  const auto group = init();
  const auto curve = [&](const FullyShardedOptions& sharding) {
    return train_sharded<torch::optim::AdamW>(*group, AdamWOptions(3e-3).weight_decay(0.1), 1, 0,
                                              sharding);
  };
  for (const FullyShardedOptions& options : exact_options())
    expect_curve(curve(options), "fsdp_adamw");
  expect_curve(train_sharded<torch::optim::AdamW>(*group, AdamWOptions(3e-3).weight_decay(0.1), 1,
                                                  0.5, {.keep_whole_below = 1000}),
               "fsdp_adamw_clipped");
  expect_curve(
      train_sharded<torch::optim::SGD>(*group, SGDOptions(0.05).momentum(0.9).nesterov(true), 2, 0,
                                       {.reshard_after_forward = false, .keep_whole_below = 1000}),
      "fsdp_sgd_accumulated");
  // PyTorch rounds each rank's mean; Convoy rounds the numbers that it adds.
  const std::vector<double> rounded = curve({.gradient_dtype = at::kBFloat16});
  const std::vector<double> wanted = Golden::curve("fsdp_adamw_sent_as_bf16");
  const std::vector<double> exact = Golden::curve("fsdp_adamw");
  double difference = 0, effect = 0;
  for (size_t step = 0; step < wanted.size(); ++step) {
    difference = std::max(difference, std::abs(rounded[step] - wanted[step]));
    effect = std::max(effect, std::abs(rounded[step] - exact[step]));
  }
  EXPECT_LT(difference, 1e-3);
  EXPECT_GT(effect, 1e-5);
}
TEST(FullyShardedDataParallel, OptionsTrainAsPyTorch) {
  expect_all_well(start_ranks(2, "FsdpOptionsCurves"));
}

// The units contain units, one is in a Sequential, and they have several input and output tensors,
// frozen parts, parameters of other dtypes, a weight shared by two parts, and sizes that no number
// of ranks divides.
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

void expect_odd_network_of_one_process(const std::shared_ptr<ProcessGroup>& group,
                                       const FullyShardedOptions& options = {}) {
  torch::manual_seed(5 + static_cast<uint64_t>(group->rank()));
  Odd odd;
  FullyShardedDataParallel model(odd, group, options);
  torch::optim::Adam optimizer(model.parameters(), 0.02);
  for (int64_t step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    odd_loss(model(ids_of(step, group->rank()))).backward();
    optimizer.step();
    const at::NoGradGuard no_grad;
    model(ids_of(step, 0));  // an evaluation between the steps
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

RANK_BODY(OddNetwork) { expect_odd_network_of_one_process(init()); }
TEST(FullyShardedDataParallel, OneRankEqualsOneProcess) {
  expect_all_well(start_ranks(1, "OddNetwork"));
}
TEST(FullyShardedDataParallel, TwoRanksEqualOneProcess) {
  expect_all_well(start_ranks(2, "OddNetwork"));
}
TEST(FullyShardedDataParallel, ThreeRanksEqualOneProcess) {
  expect_all_well(start_ranks(3, "OddNetwork"));
}

RANK_BODY(OddNetworkByOptions) {
  const auto group = init();
  std::vector<FullyShardedOptions> all = exact_options();
  for (const int row : {1, 2, 4}) {
    if (group->size() % row != 0) continue;
    all.push_back({.ranks_that_share = row});
    all.push_back(
        {.reshard_after_forward = false, .ranks_that_share = row, .keep_whole_below = 40});
  }
  for (size_t index = 0; index < all.size(); ++index) {
    SCOPED_TRACE(index);
    expect_odd_network_of_one_process(group, all[index]);
  }
}
TEST(FullyShardedDataParallel, OptionsEqualOneProcess) {
  for (const int ranks : {1, 3, 4}) expect_all_well(start_ranks(ranks, "OddNetworkByOptions"));
}

std::string refusal(const std::function<void()>& use) {
  try {
    use();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no refusal";
}

RANK_BODY(OptionsRefused) {
  const auto group = init();
  const auto expect_refused = [&](const std::string& words, const FullyShardedOptions& options) {
    const std::string found = refusal([&] { FullyShardedDataParallel(Network(), group, options); });
    EXPECT_NE(found.find(words), std::string::npos) << found;
  };
  expect_refused("ranks_that_share must divide the 2 ranks, found 3", {.ranks_that_share = 3});
  expect_refused("found -1 and 0", {.prefetch_units = -1});
  expect_refused("found 0 and -5", {.keep_whole_below = -5});
  expect_refused("offload: the module is in the host's memory", {.offload = Offload::Parameters});
  expect_refused("is kFloat or kBFloat16, found Half", {.gradient_dtype = at::kHalf});
  expect_refused("rank 0 has reshard_after_forward false",
                 {.reshard_after_forward = group->rank() == 1});
  struct WaveImpl : torch::nn::Module {
    WaveImpl() { wave = register_parameter("wave", at::ones({2}, at::kComplexFloat)); }
    at::Tensor forward(const at::Tensor& x) { return at::real(wave * x); }
    at::Tensor wave;
  };
  const std::string found = refusal([&] {
    FullyShardedDataParallel(std::make_shared<WaveImpl>(), group,
                             {.gradient_dtype = at::kBFloat16});
  });
  EXPECT_NE(found.find("wave is complex"), std::string::npos) << found;
}
TEST(FullyShardedDataParallel, OptionsThatCannotBeHonouredAreRefused) {
  expect_all_well(start_ranks(2, "OptionsRefused"));
}

// A unit that is kept whole is withheld between uses as other units are, because its values are old
// after a step.
RANK_BODY(KeptWhole) {
  const auto group = init();
  torch::nn::Linear net(3, 2);
  FullyShardedDataParallel model(net, group, {.keep_whole_below = 1000});
  EXPECT_TRUE(device::is_withheld(net->weight));
  for (const at::Tensor& value : model.parameters()) value.detach().fill_(group->rank() + 1);
  const auto write = [&] {
    model.with_whole_parameters([&] {
      EXPECT_EQ(net->weight.min().item<float>(), 1);
      const at::NoGradGuard no_grad;
      net->weight.fill_(7);
      net->bias.fill_(7);
    });
  };
  const std::string found = refusal(write);
  EXPECT_NE(found.find("were written within with_whole_parameters()"), std::string::npos) << found;
}
TEST(FullyShardedDataParallel, WholeUnitsAreWithheldToo) {
  expect_all_well(start_ranks(2, "KeptWhole"));
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
