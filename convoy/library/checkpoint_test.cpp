// SPDX-License-Identifier: Apache-2.0
//
// Ranks save under one strategy and others continue under another; the losses are the same as in an
// unbroken run.
#include "convoy/library/checkpoint.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/rmsprop.h>

#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/library/ddp.h"
#include "convoy/library/fsdp.h"
#include "convoy/library/network_test.h"
#include "files/temporary_folder.h"

namespace convoy::detail {
namespace {

using torch::optim::AdamWOptions;

// A module with a buffer that counts steps, and with a frozen part.
struct RunningImpl : torch::nn::Module {
  RunningImpl() {
    torch::manual_seed(3);
    body = register_module("body", torch::nn::Sequential(FsdpUnit(torch::nn::Linear(6, 11)),
                                                         torch::nn::Linear(11, 3)));
    frozen = register_parameter("frozen", at::randn({6, 6}), /*requires_grad=*/false);
    steps = register_buffer("steps", at::zeros({}, at::kLong));
  }
  at::Tensor forward(const at::Tensor& x) {
    if (is_training()) steps += 1;
    return body->forward(torch::tanh(x.mm(frozen))).square().mean();
  }
  torch::nn::Sequential body{nullptr};
  at::Tensor frozen, steps;
};
TORCH_MODULE(Running);

at::Tensor rows_of(const ProcessGroup& group, int64_t step) {
  torch::manual_seed(static_cast<uint64_t>(1000 + step));
  const at::Tensor rows = at::randn({12, 6});
  return rows.chunk(group.size())[static_cast<size_t>(group.rank())];
}

// Loads the checkpoint and trains until step `last`. Returns the losses of these steps, and saves
// at the end.
template <class Model, class Optimizer>
std::vector<double> go_on(ProcessGroup& group, CheckpointFolder& checkpoints, Running& running,
                          Model& model, Optimizer& optimizer, int64_t last) {
  const std::optional<Resumed> resumed = checkpoints.load(model, optimizer);
  std::vector<double> losses;
  for (int64_t step = resumed ? resumed->step : 0; step < last; ++step) {
    EXPECT_EQ(running->steps.item<int64_t>(), step);
    optimizer.zero_grad();
    at::Tensor loss = model(rows_of(group, step));
    loss.backward();
    optimizer.step();
    loss = loss.detach();
    group.all_reduce(loss, Reduce::Mean);
    losses.push_back(loss.item<double>());
  }
  if (resumed) {
    EXPECT_EQ(resumed->notes.at("way"), std::getenv("WAY_BEFORE"));
  }
  checkpoints.save(last, model, optimizer, {{"way", std::getenv("WAY")}});
  return losses;
}

std::vector<double> leg(const std::string& way, const std::string& folder, int64_t last) {
  const auto group = init();
  CheckpointFolder checkpoints(folder, group, 1);
  Running running;
  if (std::getenv("WAY_BEFORE") != nullptr) {  // values that the load must replace
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : running->parameters()) parameter.fill_(7);
  }
  const AdamWOptions options = AdamWOptions(0.02).weight_decay(0.1).amsgrad(true);
  if (way.starts_with("fsdp")) {
    const FullyShardedOptions options_of_way =
        way == "fsdp in rows" ? FullyShardedOptions{.ranks_that_share = 2, .keep_whole_below = 40}
                              : FullyShardedOptions{};
    FullyShardedDataParallel model(running, group, options_of_way);
    torch::optim::AdamW optimizer(model.parameters(), options);
    return go_on(*group, checkpoints, running, model, optimizer, last);
  }
  DistributedDataParallel model(running, group);
  std::vector<at::Tensor> trained;
  for (const at::Tensor& parameter : model.parameters())
    if (parameter.requires_grad()) trained.push_back(parameter);
  if (way == "zero") {
    ZeroOptimizer<torch::optim::AdamW> optimizer(trained, group, options);
    return go_on(*group, checkpoints, running, model, optimizer, last);
  }
  torch::optim::AdamW optimizer(trained, options);
  return go_on(*group, checkpoints, running, model, optimizer, last);
}

RANK_BODY(Leg) {
  const std::vector<double> losses =
      leg(std::getenv("WAY"), std::getenv("FOLDER"), std::atoll(std::getenv("LAST")));
  if (std::atoi(std::getenv("RANK")) == 0)
    std::ofstream(std::getenv("LOSSES"), std::ios::app) << io::Json(losses).dump() << "\n";
}

std::vector<double> losses_in(const std::filesystem::path& file) {
  std::istringstream lines(read_file(file));
  std::vector<double> losses;
  for (std::string line; std::getline(lines, line);)
    for (const io::Json& loss : io::parse_json(line, "losses"))
      losses.push_back(loss.get<double>());
  return losses;
}

struct Part {
  std::string way;
  int ranks;
};

std::vector<double> run(const std::vector<Part>& parts) {
  const testing::TemporaryFolder folder;
  std::map<std::string, std::string> environment = {{"FOLDER", folder.path() / "checkpoints"},
                                                    {"LOSSES", folder.path() / "losses"}};
  const int64_t steps = 12;
  for (size_t index = 0; index < parts.size(); ++index) {
    environment["WAY"] = parts[index].way;
    environment["LAST"] = std::to_string(steps * static_cast<int64_t>(index + 1) /
                                         static_cast<int64_t>(parts.size()));
    if (index > 0) environment["WAY_BEFORE"] = parts[index - 1].way;
    expect_all_well(start_ranks(parts[index].ranks, "Leg", {.environment = environment}));
  }
  return losses_in(folder.path() / "losses");
}

TEST(CheckpointFolder, GoesOnInAnyOtherWay) {
  const std::vector<double> wanted = run({{"ddp", 1}});
  ASSERT_EQ(wanted.size(), 12U);
  EXPECT_LT(wanted.back(), wanted.front());
  for (const std::vector<Part>& parts :
       {std::vector<Part>{{"fsdp", 2}, {"fsdp", 4}, {"fsdp", 3}, {"ddp", 1}},
        {{"ddp", 2}, {"zero", 3}, {"fsdp", 1}, {"zero", 2}},
        {{"fsdp in rows", 4}, {"fsdp", 3}, {"fsdp in rows", 2}, {"ddp", 1}}}) {
    const std::vector<double> found = run(parts);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t step = 0; step < wanted.size(); ++step)
      EXPECT_NEAR(found[step], wanted[step], 1e-5) << step;
  }
}

// Runs on one rank. Optimizers have different states, and some states are saved before they exist.
template <class Optimizer, class Options>
void expect_same_after_load(const Options& options, int steps_before) {
  const testing::TemporaryFolder folder;
  const auto group = init();
  torch::nn::Linear net(4, 3), other(4, 3);
  DistributedDataParallel model(net, group), other_model(other, group);
  Optimizer optimizer(model.parameters(), options),
      other_optimizer(other_model.parameters(), options);
  const auto step = [&](auto& wrapped, auto& stepping, int64_t number) {
    stepping.zero_grad();
    torch::manual_seed(static_cast<uint64_t>(number));
    wrapped(at::randn({5, 4})).square().sum().backward();
    stepping.step();
  };
  for (int64_t number = 0; number < steps_before; ++number) step(model, optimizer, number);
  optimizer.param_groups()[0].options().set_lr(0.0125);
  CheckpointFolder checkpoints(folder.path() / "checkpoints", group);
  checkpoints.save(steps_before, model, optimizer);
  ASSERT_EQ(checkpoints.load(other_model, other_optimizer)->step, steps_before);
  EXPECT_EQ(other_optimizer.param_groups()[0].options().get_lr(), 0.0125);
  for (int64_t number = 10; number < 13; ++number) {
    step(model, optimizer, number);
    step(other_model, other_optimizer, number);
  }
  EXPECT_TRUE(net->weight.equal(other->weight));
  EXPECT_TRUE(net->bias.equal(other->bias));
}

TEST(CheckpointFolder, KeepsWhatEveryOptimizerRemembers) {
  for (const int steps_before : {0, 3}) {
    expect_same_after_load<torch::optim::Adam>(torch::optim::AdamOptions(0.1), steps_before);
    expect_same_after_load<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9),
                                              steps_before);
    expect_same_after_load<torch::optim::RMSprop>(
        torch::optim::RMSpropOptions(0.1).momentum(0.5).centered(true), steps_before);
  }
}

// The pieces of all ranks become the file that Python's safetensors wrote of the same state_dict.
RANK_BODY(Exports) {
  const auto group = init();
  CheckpointFolder checkpoints(std::getenv("FOLDER"), group);
  const std::filesystem::path file = std::getenv("FILE");
  const auto export_of = [&](auto&& model, int64_t step) {
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    checkpoints.save(step, model, optimizer, {{"best", "0.5"}});
    if (group->is_leader()) checkpoints.export_model(file);
    group->barrier();
    const Golden golden;
    const io::SafetensorsFile exported(file);
    EXPECT_EQ(exported.tensors().size() + 2, golden.file.tensors().size());  // rows, labels
    for (const io::TensorView& found : exported.tensors()) {
      const io::TensorView& wanted = golden.file.require(found.name);
      EXPECT_EQ(found.dtype, wanted.dtype) << found.name;
      EXPECT_EQ(found.shape, wanted.shape) << found.name;
      EXPECT_TRUE(std::ranges::equal(found.bytes, wanted.bytes)) << found.name;
    }
    EXPECT_EQ(exported.metadata().at("step"), std::to_string(step));
    EXPECT_EQ(io::parse_json(exported.metadata().at("notes"), "notes").at("best"), "0.5");
    group->barrier();
  };
  EXPECT_THROW(checkpoints.export_model(file), CheckpointError);
  export_of(FullyShardedDataParallel(golden_network(*group), group), 3);
  export_of(DistributedDataParallel(golden_network(*group), group), 4);
}
TEST(CheckpointFolder, ExportsTheFileOfPythonsStateDict) {
  const testing::TemporaryFolder folder;
  expect_all_well(start_ranks(3, "Exports",
                              {.environment = {{"FOLDER", folder.path() / "checkpoints"},
                                               {"FILE", folder.path() / "model.safetensors"}}}));
}

TEST(CheckpointFolder, RefusesWhatDoesNotFit) {
  const testing::TemporaryFolder folder;
  const auto group = init();
  torch::nn::Linear net(4, 3), wider(5, 3);
  DistributedDataParallel model(net, group), other(wider, group);
  torch::optim::SGD optimizer(model.parameters(), 0.1), other_optimizer(other.parameters(), 0.1);
  CheckpointFolder checkpoints(folder.path(), group);
  EXPECT_FALSE(checkpoints.load(model, optimizer));
  checkpoints.save(1, model, optimizer);
  try {
    checkpoints.load(other, other_optimizer);
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_NE(
        std::string(error.what()).find("holds weight of shape [3, 4], the model needs [3, 5]"),
        std::string::npos)
        << error.what();
  }
  EXPECT_THROW(checkpoints.save(2, model, other_optimizer), ConfigError);
}

}  // namespace
}  // namespace convoy::detail
