// SPDX-License-Identifier: Apache-2.0
//
// Compares with the curves of PyTorch's DDP and ZeroRedundancyOptimizer, and with values computed
// by hand.
#include "convoy/library/ddp.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/utils/clip_grad.h>

#include "convoy/core/base/error.h"
#include "convoy/library/fsdp.h"
#include "convoy/library/network_test.h"
#include "convoy/library/zero.h"

namespace convoy::detail {
namespace {

using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;
using torch::optim::SGDOptions;

template <class Optimizer, class Options>
std::vector<double> train(ProcessGroup& group, DistributedDataParallel<Network>& model,
                          const Options& options, int64_t micro_batches = 1, double clip = 0) {
  Optimizer optimizer(model.parameters(), options);
  return curve_of(
      group, model, micro_batches, [&] { optimizer.zero_grad(); },
      [&] {
        if (clip > 0) torch::nn::utils::clip_grad_norm_(model.parameters(), clip);
        optimizer.step();
      });
}

RANK_BODY(DdpCurves) {
  const auto group = init();
  for (const bool view : {false, true}) {
    for (const double bucket_cap_mb : {25.0, 0.001}) {
      SCOPED_TRACE(fmt::format("bucket view {}, {} MiB", view, bucket_cap_mb));
      const DistributedDataParallelOptions options{.bucket_cap_mb = bucket_cap_mb,
                                                   .gradient_as_bucket_view = view};
      const auto model = [&] {
        return DistributedDataParallel(golden_network(*group), group, options);
      };
      auto first = model();
      expect_curve(train<torch::optim::Adam>(*group, first, AdamOptions(3e-3)), "ddp_adam");
      auto second = model();
      expect_curve(train<torch::optim::SGD>(*group, second,
                                            SGDOptions(0.05).momentum(0.9).nesterov(true), 2),
                   "ddp_sgd_accumulated");
      auto third = model();
      expect_curve(
          train<torch::optim::AdamW>(*group, third, AdamWOptions(3e-3).weight_decay(0.1), 1, 0.5),
          "ddp_adamw_clipped");
    }
  }
}
TEST(DistributedDataParallel, LossCurvesArePyTorchs) {
  expect_all_well(start_ranks(2, "DdpCurves"));
}

RANK_BODY(ZeroCurve) {
  const auto group = init();
  DistributedDataParallel model(golden_network(*group), group);
  ZeroOptimizer<torch::optim::Adam> optimizer(model.parameters(), group, AdamOptions(3e-3));
  expect_curve(curve_of(
                   *group, model, 1, [&] { optimizer.zero_grad(); }, [&] { optimizer.step(); }),
               "zero_adam");
  EXPECT_GT(optimizer.own().state().size(), 3U);
  EXPECT_LT(optimizer.own().state().size(), model.parameters().size() - 3);
  at::Tensor states = at::full({}, static_cast<int64_t>(optimizer.own().state().size()), at::kLong);
  group->all_reduce(states);
  EXPECT_EQ(states.item<int64_t>(), static_cast<int64_t>(model.parameters().size()));
}
TEST(ZeroOptimizer, LossCurveIsPyTorchs) { expect_all_well(start_ranks(2, "ZeroCurve")); }

RANK_BODY(ZeroGroups) {
  const auto group = init();
  torch::manual_seed(1);
  torch::nn::Sequential plain(torch::nn::Linear(3, 7), torch::nn::Linear(7, 2));
  torch::manual_seed(1);
  torch::nn::Sequential shared(torch::nn::Linear(3, 7), torch::nn::Linear(7, 2));
  const auto groups_of = [](torch::nn::Sequential& net) {
    const auto all = net->parameters();
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<at::Tensor>{all[0], all[2]},
                        std::make_unique<AdamWOptions>(AdamWOptions(0.1).weight_decay(0.5)));
    groups.emplace_back(std::vector<at::Tensor>{all[1], all[3]});
    return groups;
  };
  torch::optim::AdamW alone(groups_of(plain), AdamWOptions(0.01));
  ZeroOptimizer<torch::optim::AdamW> zero(groups_of(shared), group, AdamWOptions(0.01));
  for (int step = 0; step < 3; ++step) {
    for (auto* net : {&plain, &shared}) {
      (*net)->zero_grad();
      (*net)->forward(at::ones({2, 3})).sum().backward();
    }
    alone.step();
    zero.step();
  }
  for (size_t index = 0; index < 4; ++index)
    EXPECT_TRUE(shared->parameters()[index].equal(plain->parameters()[index])) << index;
}
TEST(ZeroOptimizer, KeepsOptionsOfGroups) { expect_all_well(start_ranks(3, "ZeroGroups")); }

// Has parameters of several dtypes, a parameter without dimensions, and a parameter that is used
// twice.
struct MixedImpl : torch::nn::Module {
  MixedImpl() {
    single = register_parameter("single", at::randn({4, 3}));
    wide = register_parameter("wide", at::randn({3}, at::kDouble));
    half = register_parameter("half", at::randn({3}).to(at::kBFloat16));
    scale = register_parameter("scale", at::randn({}));
    frozen = register_parameter("frozen", at::randn({3}), /*requires_grad=*/false);
    unused = register_parameter("unused", at::randn({5}));
    counts = register_buffer("counts", at::zeros({2}, at::kLong));
    flag = register_buffer("flag", at::zeros({1}));
  }
  at::Tensor forward(const at::Tensor& x, bool with_unused) {
    counts += 1;
    at::Tensor y = x.mm(single).to(at::kDouble) * wide + half.to(at::kDouble) * frozen;
    y = y * scale + scale;
    return with_unused ? y.sum() + unused.sum() : y.sum();
  }
  at::Tensor single, wide, half, scale, frozen, unused, counts, flag;
};
TORCH_MODULE(Mixed);

at::Tensor rank_rows_of(int64_t rank) {
  return at::arange(8, at::kFloat).view({2, 4}) / 8 + static_cast<double>(rank);
}

// Returns the gradients of a single rank for the rows of `rank`.
std::vector<at::Tensor> local_gradients(Mixed& mixed, int64_t rank, bool with_unused) {
  std::vector<at::Tensor> trained;
  for (const at::Tensor& parameter : mixed->parameters())
    if (parameter.requires_grad()) trained.push_back(parameter);
  return torch::autograd::grad({mixed->forward(rank_rows_of(rank), with_unused)}, trained, {},
                               std::nullopt, false, /*allow_unused=*/true);
}

void expect_mean_gradients(Mixed& mixed, const std::vector<std::vector<at::Tensor>>& by_rank) {
  size_t index = 0;
  for (const auto& item : mixed->named_parameters()) {
    if (!item.value().requires_grad()) continue;
    at::Tensor mean = at::zeros_like(item.value(), at::kDouble);
    bool any = false;
    for (const std::vector<at::Tensor>& gradients : by_rank) {
      any = any || gradients[index].defined();
      if (gradients[index].defined()) mean += gradients[index].to(at::kDouble);
    }
    mean /= static_cast<double>(by_rank.size());
    const at::Tensor& found = item.value().grad();
    ASSERT_EQ(found.defined(), any) << item.key();
    if (any) {
      EXPECT_EQ(found.scalar_type(), item.value().scalar_type());
      const at::ScalarType type = found.scalar_type();
      const double tolerance = type == at::kBFloat16 ? 2e-2 : type == at::kDouble ? 1e-14 : 1e-6;
      EXPECT_TRUE(at::allclose(found.to(at::kDouble), mean, tolerance, tolerance))
          << item.key() << "\n"
          << found << "\n"
          << mean;
    }
    ++index;
  }
}

RANK_BODY(MeansOfEveryType) {
  const auto group = init();
  for (const bool view : {false, true}) {
    torch::manual_seed(static_cast<uint64_t>(group->rank()));
    Mixed mixed;
    mixed->counts += group->rank();
    DistributedDataParallel model(
        mixed, group, {.find_unused_parameters = true, .gradient_as_bucket_view = view});
    EXPECT_TRUE(mixed->counts.equal(at::zeros({2}, at::kLong)));
    // Only the last rank uses `unused`, in every other step; in the other steps no rank uses it.
    for (int step = 0; step < 4; ++step) {
      std::vector<std::vector<at::Tensor>> by_rank;
      for (int rank = 0; rank < group->size(); ++rank)
        by_rank.push_back(local_gradients(mixed, rank, step % 2 == 1 && rank + 1 == group->size()));
      mixed->zero_grad();
      model(rank_rows_of(group->rank()), step % 2 == 1 && group->rank() + 1 == group->size())
          .backward();
      expect_mean_gradients(mixed, by_rank);
      // Without zero_grad() the new mean is added to the old gradient, which is equal on all ranks.
      const at::Tensor before = mixed->single.grad().clone();
      model(rank_rows_of(group->rank()), false).backward();
      EXPECT_TRUE(at::allclose(mixed->single.grad(), 2 * before));
    }
  }
}
TEST(DistributedDataParallel, MeansOnOneRank) {
  expect_all_well(start_ranks(1, "MeansOfEveryType"));
}
TEST(DistributedDataParallel, MeansOnTwoRanks) {
  expect_all_well(start_ranks(2, "MeansOfEveryType"));
}
TEST(DistributedDataParallel, MeansOnThreeRanks) {
  expect_all_well(start_ranks(3, "MeansOfEveryType"));
}

RANK_BODY(NoSyncKeepsLocal) {
  const auto group = init();
  torch::manual_seed(1);
  Mixed mixed;
  DistributedDataParallel model(mixed, group, {.find_unused_parameters = true});
  const at::Tensor own = local_gradients(mixed, group->rank(), false)[0];
  {
    const NoSync unsynchronised = model.no_sync();
    model(rank_rows_of(group->rank()), false).backward();
    EXPECT_TRUE(mixed->single.grad().allclose(own));
    model(rank_rows_of(group->rank()), false).backward();
    EXPECT_TRUE(mixed->single.grad().allclose(2 * own));
    const NoSync within = model.no_sync(false);  // the outer scope does not change
    model(rank_rows_of(group->rank()), false).backward();
    EXPECT_TRUE(mixed->single.grad().allclose(3 * own));
  }
  model(rank_rows_of(group->rank()), false).backward();
  const at::Tensor mean =
      (local_gradients(mixed, 0, false)[0] + local_gradients(mixed, 1, false)[0]) / 2;
  EXPECT_TRUE(mixed->single.grad().allclose(4 * mean));
}
TEST(DistributedDataParallel, NoSyncAddsUpOnTheRank) {
  expect_all_well(start_ranks(2, "NoSyncKeepsLocal"));
}

RANK_BODY(Buffers) {
  const auto group = init();
  for (const bool broadcast : {true, false}) {
    Mixed mixed;
    DistributedDataParallel model(mixed, group,
                                  {.broadcast_buffers = broadcast, .find_unused_parameters = true});
    mixed->flag.fill_(group->rank() + 1);
    mixed->counts.fill_(10 * group->rank());
    {
      const at::NoGradGuard no_grad;
      model(rank_rows_of(0), false);  // an evaluation calls no collective
    }
    EXPECT_EQ(mixed->flag.item<float>(), static_cast<float>(group->rank() + 1));
    model(rank_rows_of(0), false);
    const int64_t origin = broadcast ? 0 : group->rank();
    EXPECT_EQ(mixed->flag.item<float>(), static_cast<float>(origin + 1));
    EXPECT_EQ(mixed->counts[1].item<int64_t>(), 10 * origin + 2);
    model.broadcast_buffers();
    EXPECT_EQ(mixed->flag.item<float>(), 1);
  }
}
TEST(DistributedDataParallel, BuffersAreRankZeros) { expect_all_well(start_ranks(2, "Buffers")); }

RANK_BODY(LeavesParametersOut) {
  const auto group = init();
  Mixed mixed;
  DistributedDataParallel model(mixed, group);
  model(rank_rows_of(0), true).backward();
  model(rank_rows_of(0), group->rank() == 0).backward();
}
TEST(DistributedDataParallel, UnusedParameterIsNamed) {
  const auto results = start_ranks(2, "LeavesParametersOut");
  EXPECT_EQ(results[1].exit_code, 2) << results[1].output;
  EXPECT_NE(results[1].output.find("backward has left 1 of 5 parameters out: unused"),
            std::string::npos)
      << results[1].output;
  EXPECT_NE(results[1].output.find("find_unused_parameters"), std::string::npos);
  EXPECT_EQ(results[0].exit_code, 13) << results[0].output;
}

RANK_BODY(OtherShape) {
  const auto group = init();
  torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::Linear(4, 2 + group->rank()));
  DistributedDataParallel model(net, group);
}
TEST(DistributedDataParallel, OtherShapeIsNamed) {
  for (const auto& result : start_ranks(2, "OtherShape")) {
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_NE(result.output.find("rank 0 has `1.weight [2, 4] fp32` where rank 1 has "
                                 "`1.weight [3, 4] fp32`"),
              std::string::npos)
        << result.output;
  }
}

RANK_BODY(ThrowsInBackward) {
  const auto group = init();
  Mixed mixed;
  DistributedDataParallel model(mixed, group, {.find_unused_parameters = true});
  if (group->rank() == 1)
    mixed->wide.register_hook([](at::Tensor) -> at::Tensor { throw NumericError("planted"); });
  model(rank_rows_of(0), true).backward();
}
TEST(DistributedDataParallel, RankThatThrowsEndsAll) {
  const auto results = start_ranks(2, "ThrowsInBackward");
  EXPECT_EQ(results[1].exit_code, 15) << results[1].output;
  EXPECT_EQ(results[0].exit_code, 13) << results[0].output;
}

RANK_BODY(Misused) {
  const auto group = init();
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::Linear(4, 2));
  net->parameters()[3].requires_grad_(false);
  const auto words_of = [](const std::function<void()>& use) -> std::string {
    try {
      use();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no refusal";
  };
  DistributedDataParallel model(net, group);
  EXPECT_TRUE(words_of([&] {
                DistributedDataParallel again(net, group);
              }).starts_with("0.weight is in a DistributedDataParallel"));
  EXPECT_TRUE(words_of([&] {
                FullyShardedDataParallel again(net, group);
              }).starts_with("0.weight is in a DistributedDataParallel"));
  torch::nn::Sequential outer(torch::nn::Linear(3, 3), net->ptr<torch::nn::LinearImpl>(0));
  EXPECT_TRUE(words_of([&] {
                DistributedDataParallel again(outer, group);
              }).starts_with("1.weight is in a DistributedDataParallel"));
  const at::Tensor rows = at::ones({2, 3});
  EXPECT_TRUE(words_of([&] {
                model(rows).square().sum().backward({}, true, /*create_graph=*/true);
              }).starts_with("the gradient of 1.weight cannot be averaged"));
  net->parameters()[3].requires_grad_(true);
  EXPECT_TRUE(words_of([&] { model(rows); }).starts_with("1.bias requires grad"));
  net->parameters()[3].requires_grad_(false);
  net->push_back(torch::nn::Linear(2, 2));
  EXPECT_TRUE(words_of([&] { model(rows); }).starts_with("2.weight requires grad"));
}
TEST(DistributedDataParallel, SecondWrapperAndChangedParametersAreRefused) {
  expect_all_well(start_ranks(2, "Misused"));
}

RANK_BODY(ComplexGradients) {
  const auto group = init();
  struct WaveImpl : torch::nn::Module {
    WaveImpl() { wave = register_parameter("wave", at::ones({2}, at::kComplexFloat)); }
    at::Tensor forward(double turn) { return at::real(wave * c10::complex<double>(1, turn)).sum(); }
    at::Tensor wave;
  };
  const auto net = std::make_shared<WaveImpl>();
  DistributedDataParallel model(net, group);
  model(static_cast<double>(2 + 2 * group->rank())).backward();
  EXPECT_TRUE(net->wave.grad().allclose(at::complex(at::ones({2}), at::full({2}, -3.0F))))
      << net->wave.grad();
}
TEST(DistributedDataParallel, AveragesComplexGradients) {
  expect_all_well(start_ranks(2, "ComplexGradients"));
}

// bf16 cannot hold the mean. With two ranks the sum has only one rounding.
RANK_BODY(GradientsSentInAnotherType) {
  const auto group = init();
  const at::Tensor mean = at::tensor({2.0F, 1.0F / 3});
  const at::Tensor rounded = mean.to(at::kBFloat16).to(at::kFloat);
  ASSERT_FALSE(rounded.equal(mean));
  const at::Tensor row = at::tensor({1.0F + 2.0F * static_cast<float>(group->rank()), 1.0F / 3});
  for (const bool view : {false, true}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      SCOPED_TRACE(fmt::format("bucket view {}, {}", view, c10::toString(type)));
      torch::nn::Linear net(torch::nn::LinearOptions(2, 1).bias(false));
      DistributedDataParallel model(net, group,
                                    {.gradient_as_bucket_view = view, .gradient_dtype = type});
      for (int pass = 0; pass < 2; ++pass) {  // the second pass sends gradients during backward
        model.zero_grad();
        model(row.view({1, 2})).sum().backward();
        EXPECT_TRUE(net->weight.grad().view({2}).equal(type == at::kFloat ? mean : rounded))
            << net->weight.grad();
      }
    }
  }
}
TEST(DistributedDataParallel, SendsGradientsInAnotherType) {
  expect_all_well(start_ranks(2, "GradientsSentInAnotherType"));
}

RANK_BODY(DdpOptionsRefused) {
  const auto group = init();
  const auto expect_refused = [&](const std::string& words, auto net,
                                  const DistributedDataParallelOptions& options) {
    std::string found = "no refusal";
    try {
      DistributedDataParallel model(net, group, options);
    } catch (const ConfigError& error) {
      found = error.what();
    }
    EXPECT_NE(found.find(words), std::string::npos) << found;
  };
  expect_refused("is kFloat or kBFloat16, found Half", torch::nn::Linear(1, 1),
                 {.gradient_dtype = at::kHalf});
  std::optional<at::ScalarType> of_rank;
  if (group->rank() == 1) of_rank = at::kBFloat16;
  expect_refused("gradient_dtype as it is; rank 1 has", torch::nn::Linear(1, 1),
                 {.gradient_dtype = of_rank});
  struct WaveImpl : torch::nn::Module {
    WaveImpl() { wave = register_parameter("wave", at::ones({2}, at::kComplexFloat)); }
    at::Tensor forward(const at::Tensor& x) { return at::real(wave * x); }
    at::Tensor wave;
  };
  expect_refused("wave is complex", std::make_shared<WaveImpl>(), {.gradient_dtype = at::kFloat});
}
TEST(DistributedDataParallel, OptionsThatCannotBeHonouredAreRefused) {
  expect_all_well(start_ranks(2, "DdpOptionsRefused"));
}

TEST(DistributedDataParallel, NothingToTrainIsRefused) {
  EXPECT_THROW(DistributedDataParallel(torch::nn::Linear(1, 1), nullptr), ConfigError);
  const auto alone = init();
  torch::nn::Linear frozen(2, 2);
  for (at::Tensor& parameter : frozen->parameters()) parameter.requires_grad_(false);
  EXPECT_THROW(DistributedDataParallel(frozen, alone), ConfigError);
  EXPECT_THROW(DistributedDataParallel(torch::nn::Linear(1, 1), alone, {.bucket_cap_mb = 0}),
               ConfigError);
}

// A shared_ptr may hold the module as well. The hooks of the wrapped module are removed with the
// wrapper.
TEST(DistributedDataParallel, LeavesThePlainModuleBehind) {
  const auto net = std::make_shared<torch::nn::LinearImpl>(2, 1);
  {
    DistributedDataParallel model(net, init());
    model->forward(at::ones({1, 2})).sum().backward();
    EXPECT_TRUE(net->weight.grad().equal(at::ones({1, 2})));
    EXPECT_EQ(model.named_parameters().size(), 2U);
  }
  net->zero_grad();
  net->forward(at::ones({1, 2})).sum().backward();
  EXPECT_TRUE(net->weight.grad().equal(at::ones({1, 2})));
}

}  // namespace
}  // namespace convoy::detail
