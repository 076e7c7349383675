// SPDX-License-Identifier: Apache-2.0
//
// Code that is written for a plain module works on a sharded module, or is refused with the name of
// its fault.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/lbfgs.h>
#include <torch/serialize.h>

#include <limits>
#include <sstream>

#include "convoy/core/base/error.h"
#include "convoy/library/fsdp.h"
#include "convoy/library/internal/module_tree.h"
#include "convoy/library/network_test.h"

namespace convoy::detail {
namespace {

using torch::nn::Linear;

torch::nn::Sequential small_network() {
  torch::manual_seed(1);
  return torch::nn::Sequential(Linear(4, 4), torch::nn::Tanh(), Linear(4, 1));
}

at::Tensor rows_of(int rank, int64_t step = 0) {
  torch::manual_seed(static_cast<uint64_t>(100 + rank + 10 * step));
  return at::randn({6, 4});
}

std::string refusal_of(const std::function<void()>& use) {
  try {
    use();
  } catch (const Error& error) {
    return error.sentence();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "no refusal";
}

void expect_refused(const char* what, const std::string& words, const std::function<void()>& use) {
  const std::string refusal = refusal_of(use);
  EXPECT_NE(refusal.find(words), std::string::npos) << what << ": " << refusal;
}

RANK_BODY(NaturalUses) {
  const auto group = init();
  torch::nn::Sequential net = small_network();
  torch::optim::SGD made_before(net->parameters(), 0.1);
  FullyShardedDataParallel model(net, group);
  torch::optim::SGD made_after(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::optim::Adam adam(net->parameters(), 0.1);
  torch::optim::LBFGS whole_gradients(model.parameters(), torch::optim::LBFGSOptions());
  const auto pass = [&] {
    const at::Tensor loss = 100 * model(rows_of(group->rank())).square().mean();
    loss.backward();
    return loss;
  };
  const std::string name = "0.weight is sharded";
  std::stringstream file;
  pass();
  for (torch::optim::Optimizer* optimizer :
       std::initializer_list<torch::optim::Optimizer*>{&made_before, &made_after, &adam})
    expect_refused("optimizer of the module", name, [&] { optimizer->step(); });
  expect_refused("clip of the module", name,
                 [&] { torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0); });
  for (const double norm : {2.0, 1.0, std::numeric_limits<double>::infinity()})
    expect_refused("clip of the pieces", "clip_grad_norm()",
                   [&] { torch::nn::utils::clip_grad_norm_(model.parameters(), 1.0, norm); });
  expect_refused("save of the module", name, [&] { torch::save(net, file); });
  expect_refused("save of a part", "2.weight is sharded",
                 [&] { torch::save(net->ptr<torch::nn::LinearImpl>(2), file); });
  expect_refused("save of parameters", name, [&] { torch::save(net->parameters(), file); });
  // A layer reads its bias before its weight.
  expect_refused("forward", "0.bias is sharded", [&] { net->forward(rows_of(0)); });
  expect_refused("a part", "2.bias is sharded",
                 [&] { net->ptr<torch::nn::LinearImpl>(2)->forward(rows_of(0)); });
  expect_refused("a figure", name, [&] { net->parameters()[0].sum(); });
  expect_refused("a regularizer", "aten::norm", [&] { model.parameters().at(0).norm(); });
  expect_refused("LBFGS", "not LBFGS", [&] { whole_gradients.step(pass); });
}
TEST(NaturalCode, IsRefusedByNameWhereItWouldBeWrong) {
  expect_all_well(start_ranks(2, "NaturalUses"));
}

// This body ends as the main() of a program does.
RANK_BODY(EndsByRefusal) {
  std::_Exit(run_rank([] {
    const auto group = init();
    torch::nn::Sequential net = small_network();
    FullyShardedDataParallel model(net, group);
    net->forward(rows_of(0));
  }));
}
TEST(NaturalCode, EndsAsAnErrorOfConfiguration) {
  for (const auto& result : start_ranks(2, "EndsByRefusal")) {
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_NE(result.output.find("0.bias is sharded"), std::string::npos) << result.output;
  }
}

struct UnitsImpl : torch::nn::Module {
  UnitsImpl() {
    first = register_module("first", FsdpUnit(Linear(4, 4)));
    second = register_module("second", FsdpUnit(Linear(4, 1)));
  }
  at::Tensor forward(const at::Tensor& x) { return second(at::tanh(first(x))); }
  FsdpUnit<Linear> first{nullptr}, second{nullptr};
};
TORCH_MODULE(Units);

RANK_BODY(UnitsAlone) {
  const auto group = init();
  Units net;
  FullyShardedDataParallel model(net, group);
  expect_refused("forward", "first is a unit of a sharded module", [&] { net(rows_of(0)); });
  at::Tensor inside;
  model.with_whole_parameters([&] { inside = net(rows_of(0)).detach(); });
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::allclose(inside, model(rows_of(0))));
}
TEST(NaturalCode, ModuleOfUnitsIsCalledByItsWrapper) {
  expect_all_well(start_ranks(2, "UnitsAlone"));
}

RANK_BODY(ChangedParameters) {
  const auto group = init();
  torch::nn::Sequential net = small_network();
  net->parameters()[3].requires_grad_(false);
  std::stringstream plain;
  torch::save(net, plain);
  FullyShardedDataParallel model(net, group);
  net->parameters()[3].requires_grad_(true);
  expect_refused("unfrozen", "2.bias requires grad", [&] { model(rows_of(0)); });
  net->parameters()[3].requires_grad_(false);
  net->parameters()[0].requires_grad_(false);
  expect_refused("frozen", "0.weight was frozen", [&] { model(rows_of(0)); });
  net->parameters()[0].requires_grad_(true);
  expect_refused("written", "were written within with_whole_parameters()", [&] {
    model.with_whole_parameters([&] {
      const at::NoGradGuard no_grad;
      for (at::Tensor& parameter : net->parameters()) parameter.zero_();
    });
  });
  model.with_whole_parameters([] {});
  expect_refused("loaded", "was given other memory",
                 [&] { model.with_whole_parameters([&] { torch::load(net, plain); }); });
}
TEST(NaturalCode, ChangesThatWouldBeLostAreRefused) {
  expect_all_well(start_ranks(2, "ChangedParameters"));
}

RANK_BODY(SavedWhole) {
  const auto group = init();
  torch::nn::Sequential net = small_network(), back = small_network();
  FullyShardedDataParallel model(net, group);
  for (at::Tensor& value : model.parameters()) value.detach().mul_(2);
  std::stringstream file;
  model.with_whole_parameters([&] { torch::save(net, file); });
  torch::load(back, file);
  torch::nn::Sequential first = small_network();
  for (size_t index = 0; index < 4; ++index)
    EXPECT_TRUE(at::equal(back->parameters()[index], 2 * first->parameters()[index])) << index;
}
TEST(NaturalCode, SaveWithinWholeParametersIsAPlainModules) {
  expect_all_well(start_ranks(2, "SavedWhole"));
}

// Compares the steps of a wrapped network with the steps of the same network alone on the rows of
// all ranks.
template <class Net, class Loss>
void expect_steps_of_one_process(ProcessGroup& group, const std::function<Net()>& make, Loss loss,
                                 bool zero_by_module = false) {
  Net net = make(), alone = make();
  FullyShardedDataParallel model(net, std::shared_ptr<ProcessGroup>(&group, [](auto*) {}));
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  std::map<std::string, at::Tensor> parameters;  // a tied parameter by its first name
  std::vector<at::Tensor> unique;
  for (const nn::NamedTensor& each : parameters_of(*alone.ptr())) {
    parameters[each.name] = each.value;
    unique.push_back(each.value);
  }
  torch::optim::SGD reference(unique, 0.1);
  for (int64_t step = 0; step < 4; ++step) {
    zero_by_module ? net->zero_grad() : model.zero_grad();
    reference.zero_grad();
    loss(model, group.rank(), step).backward();
    for (int rank = 0; rank < group.size(); ++rank)
      (loss(alone, rank, step) / group.size()).backward();
    optimizer.step();
    reference.step();
  }
  const at::NoGradGuard no_grad;
  for (const ShardView& shard : model.shards()) {
    const at::Tensor wanted = parameters.at(shard.name)
                                  .flatten()
                                  .slice(0, shard.begin, shard.begin + shard.value.numel());
    EXPECT_TRUE(at::allclose(shard.value, wanted, 1e-4, 1e-5)) << shard.name << "\n"
                                                               << shard.value << "\n"
                                                               << wanted;
  }
}

constexpr auto kSquare = [](auto& model, int rank, int64_t step) {
  return model->forward(rows_of(rank, step)).square().mean();
};

RANK_BODY(ZeroedByModule) {
  const auto group = init();
  expect_steps_of_one_process<torch::nn::Sequential>(*group, small_network, kSquare,
                                                     /*zero_by_module=*/true);
}
TEST(NaturalCode, ZeroGradOfTheModuleClearsThePieces) {
  expect_all_well(start_ranks(2, "ZeroedByModule"));
}

struct HeadImpl : torch::nn::Module {
  explicit HeadImpl(at::Tensor shared) {
    weight = register_parameter("weight", std::move(shared));
    bias = register_parameter("bias", at::zeros({11}));
  }
  at::Tensor forward(const at::Tensor& x) { return at::linear(x, weight, bias); }
  at::Tensor weight, bias;
};
TORCH_MODULE(Head);

struct TiedImpl : torch::nn::Module {
  TiedImpl() {
    const torch::nn::Embedding table(11, 4);
    words = register_module("words", FsdpUnit(table));
    block = register_module("block", FsdpUnit(Linear(4, 4)));
    head = register_module("head", FsdpUnit(Head(table->weight)));
  }
  at::Tensor forward(const at::Tensor& ids) { return head(at::tanh(block(words(ids)))); }
  FsdpUnit<torch::nn::Embedding> words{nullptr};
  FsdpUnit<Linear> block{nullptr};
  FsdpUnit<Head> head{nullptr};
};
TORCH_MODULE(Tied);

RANK_BODY(TiedOverUnits) {
  const auto group = init();
  const auto make = [] {
    torch::manual_seed(1);
    return Tied();
  };
  expect_steps_of_one_process<Tied>(*group, make, [](auto& model, int rank, int64_t step) {
    torch::manual_seed(static_cast<uint64_t>(70 + rank + 10 * step));
    const at::Tensor ids = at::randint(11, {8}, at::kLong);
    return torch::nn::functional::cross_entropy(model->forward(ids), ids);
  });
}
TEST(NaturalCode, WeightTiedOverUnitsIsTrained) {
  expect_all_well(start_ranks(2, "TiedOverUnits"));
  expect_all_well(start_ranks(3, "TiedOverUnits"));
}

// As in WGAN-GP, there are forward passes before and after this one, and a single backward pass for
// all of them.
RANK_BODY(GradientPenalty) {
  const auto group = init();
  const auto penalty = [](auto& model, int rank, int64_t step) {
    const at::Tensor before = model->forward(rows_of(rank, step + 50)).mean();
    at::Tensor x = rows_of(rank, step).requires_grad_();
    const at::Tensor output = model->forward(x);
    const at::Tensor gradient = torch::autograd::grad({output.sum()}, {x}, {}, true, true)[0];
    const at::Tensor after = model->forward(rows_of(rank, step + 90)).mean();
    return before - after + (gradient.norm(2, 1) - 1).square().mean();
  };
  const auto units = [] {
    torch::manual_seed(1);
    return Units();
  };
  expect_steps_of_one_process<Units>(*group, units, penalty);
  expect_steps_of_one_process<torch::nn::Sequential>(*group, small_network, penalty);
  Units net;
  FullyShardedDataParallel model(net, group);
  expect_refused("gradients with a graph", "cannot be differentiated again", [&] {
    model(rows_of(0)).square().mean().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  });
}
TEST(NaturalCode, GradientPenaltyIsThatOfOneProcess) {
  expect_all_well(start_ranks(2, "GradientPenalty"));
}

// The ranks may choose different layers of the same size, whose gathers would succeed and mix up
// the layers.
struct ChoosingImpl : torch::nn::Module {
  ChoosingImpl() {
    for (const char* name : {"left", "right"})
      layers.push_back(register_module(name, FsdpUnit(Linear(4, 4))));
    head = register_module("head", FsdpUnit(Linear(4, 1)));
  }
  at::Tensor forward(const at::Tensor& x, int choice) {
    return head(layers[static_cast<size_t>(choice)](x));
  }
  std::vector<FsdpUnit<Linear>> layers;
  FsdpUnit<Linear> head{nullptr};
};
TORCH_MODULE(Choosing);

RANK_BODY(DifferentUnits) {
  std::_Exit(run_rank([] {
    const auto group = init({.timeout = std::chrono::seconds(20)});
    FullyShardedDataParallel model(Choosing(), group);
    for (int step = 0; step < 3; ++step) model(rows_of(0), step % 2).sum().backward();
    const int choice = group->rank() == 2 ? 1 : 0;
    if (std::getenv("CONVOY_TEST_TRAINS") != nullptr) {
      model(rows_of(0), choice).sum().backward();
    } else {
      const at::NoGradGuard no_grad;
      model(rows_of(0), choice);
    }
    std::fputs("nothing was noticed\n", stderr);
  }));
}
TEST(NaturalCode, RanksInDifferentUnitsOfOneSizeAreNamed) {
  for (const bool trains : {false, true}) {
    testing::RankStart start;
    if (trains) start.environment["CONVOY_TEST_TRAINS"] = "1";
    for (const auto& result : start_ranks(3, "DifferentUnits", start)) {
      EXPECT_EQ(result.exit_code, 13) << result.output;
      EXPECT_NE(result.output.find("rank 0 uses left where rank 2 uses right"), std::string::npos)
          << result.output;
    }
  }
}

// The ranks choose units of different sizes, for which Gloo would end the process by a signal.
RANK_BODY(UnitsThatDoNotFit) {
  std::_Exit(run_rank([] {
    const auto group = init({.timeout = std::chrono::seconds(20)});
    struct BothImpl : torch::nn::Module {
      BothImpl() {
        small = register_module("small", FsdpUnit(Linear(4, 4)));
        large = register_module("large", FsdpUnit(Linear(4, 900)));
      }
      at::Tensor forward(const at::Tensor& x, bool first) { return first ? small(x) : large(x); }
      FsdpUnit<Linear> small{nullptr}, large{nullptr};
    };
    FullyShardedDataParallel model(std::make_shared<BothImpl>(), group);
    model(rows_of(0), group->rank() == 0).sum().backward();
  }));
}
TEST(NaturalCode, RanksInUnitsOfOtherSizesAreNamed) {
  for (const auto& result : start_ranks(2, "UnitsThatDoNotFit")) {
    EXPECT_EQ(result.exit_code, 13) << result.output;
    EXPECT_NE(result.output.find("rank 0 uses small where rank 1 uses large"), std::string::npos)
        << result.output;
  }
}

struct ComplexImpl : torch::nn::Module {
  ComplexImpl() {
    wave = register_parameter("wave", at::randn({4, 3}, at::kComplexFloat));
    fine = register_parameter("fine", at::randn({3}, at::kComplexDouble));
    real = register_parameter("real", at::randn({3}));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor waves = x.to(at::kComplexFloat).mm(wave) * fine;
    return (at::view_as_real(waves).square().sum(-1).sqrt() * real).to(at::kFloat);
  }
  at::Tensor wave, fine, real;
};
TORCH_MODULE(Complex);

RANK_BODY(ComplexParameters) {
  const auto group = init();
  const auto make = [] {
    torch::manual_seed(1);
    return Complex();
  };
  expect_steps_of_one_process<Complex>(*group, make, kSquare);
  Complex net;
  FullyShardedDataParallel model(net, group);
  model(rows_of(group->rank())).square().mean().backward();
  double square = 0;
  for (const at::Tensor& value : model.parameters())
    square += at::abs(at::zeros_like(value) + value.grad()).square().sum().item<double>();
  at::Tensor sum = at::full({}, square, at::kDouble);
  group->all_reduce(sum);
  EXPECT_NEAR(model.clip_grad_norm(1e9), std::sqrt(sum.item<double>()), 1e-4);
}
TEST(NaturalCode, ComplexParametersAreTrained) {
  expect_all_well(start_ranks(2, "ComplexParameters"));
}

}  // namespace
}  // namespace convoy::detail
