// SPDX-License-Identifier: Apache-2.0
//
// Tests the library's sharding over ranks with simulated devices. The values equal the result of
// one process that computes all rows on its CPU.
#include <ATen/ATen.h>
#include <c10/util/accumulate.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/optim/adam.h>

#include "convoy/library/checkpoint.h"
#include "convoy/library/ddp.h"
#include "convoy/library/fsdp.h"
#include "convoy/library/process_group.h"
#include "convoy/library/zero.h"
#include "ranks/ranks.h"
#include "simulated_device/fake_nccl_hooks.h"
#include "simulated_device/simulated_device.h"

namespace convoy {
namespace {

constexpr int64_t kWidth = 8;
constexpr int kSteps = 4;

at::Tensor numbers(at::IntArrayRef shape, double factor, at::Device device) {
  return at::arange(c10::multiply_integers(shape), at::kFloat)
      .mul_(factor)
      .sin_()
      .mul_(0.5)
      .view(shape)
      .to(device);
}

struct LayerImpl : torch::nn::Module {
  LayerImpl(int number, double factor, at::Device device) {
    weight = register_parameter("weight", numbers({kWidth, kWidth}, factor + number, device));
    bias = register_parameter("bias", numbers({kWidth}, factor * 2, device),
                              /*requires_grad=*/number != 1);
  }
  at::Tensor forward(const at::Tensor& x) { return x + at::tanh(x.mm(weight) + bias); }
  at::Tensor weight, bias;
};
TORCH_MODULE(Layer);

// The module is made on its device, because LibTorch does not move modules between the CPU and a
// device of this kind.
struct StackImpl : torch::nn::Module {
  StackImpl(double factor, at::Device device) {
    layers = register_module("layers", torch::nn::ModuleList());
    for (int number = 0; number < 3; ++number)
      layers->push_back(FsdpUnit(Layer(number, factor, device)));
    head = register_parameter("head", numbers({kWidth, 3}, factor, device));
    scale = register_parameter("scale", at::ones({}, device));
    offset = register_buffer("offset", at::full({3}, factor, device));
    is_used = register_buffer("is_used", at::full({3}, true, at::device(device).dtype(at::kBool)));
  }
  at::Tensor forward(const at::Tensor& rows) {
    at::Tensor x = rows;
    for (const auto& layer : *layers) x = layer->as<FsdpUnitImpl<Layer>>()->forward(x);
    return (x.mm(head) + offset) * scale * is_used;
  }
  torch::nn::ModuleList layers;
  at::Tensor head, scale, offset, is_used;
};
TORCH_MODULE(Stack);

at::Tensor rows_of(int step) { return numbers({8, kWidth}, 0.3 + step, at::kCPU); }

at::Tensor loss_of(const at::Tensor& output) { return output.square().mean(); }

torch::optim::AdamOptions adam() { return torch::optim::AdamOptions(0.01); }

// The losses and the final weights of a single process on the CPU.
struct Wanted {
  std::vector<float> losses;
  std::vector<at::Tensor> weights;
};

Wanted wanted() {
  Stack stack(0.7, at::kCPU);
  torch::optim::Adam optimizer(stack->parameters(), adam());
  Wanted found;
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = loss_of(stack->forward(rows_of(step)));
    loss.backward();
    optimizer.step();
    found.losses.push_back(loss.item<float>());
  }
  for (const at::Tensor& weight : stack->parameters()) found.weights.push_back(weight.detach());
  return found;
}

std::shared_ptr<ProcessGroup> group_of_devices() {
  simulated::install(2);
  simulated::load_fake_nccl();
  return init({.timeout = std::chrono::seconds(60), .device = at::kPrivateUse1});
}

// The ranks begin with different values, and wrapping gives all of them the values of rank 0.
Stack own_stack(const ProcessGroup& group) {
  return Stack(group.is_leader() ? 0.7 : 0.1, group.device());
}

template <class Model, class Optimizer>
void expect_losses(ProcessGroup& group, Model& model, Optimizer& optimizer, int begin = 0) {
  const std::vector<float> losses = wanted().losses;
  for (int step = begin; step < kSteps; ++step) {
    optimizer.zero_grad();
    const int64_t own = 8 / group.size();
    const at::Tensor rows = rows_of(step).narrow(0, group.rank() * own, own).to(group.device());
    const at::Tensor loss = loss_of(model(rows));
    loss.backward();
    optimizer.step();
    const at::Tensor mean = loss.detach().clone();
    group.all_reduce(mean, Reduce::Mean);
    EXPECT_NEAR(mean.item<float>(), losses[static_cast<size_t>(step)], 1e-5) << "step " << step;
  }
}

void expect_weights(const std::vector<at::Tensor>& found) {
  const std::vector<at::Tensor> weights = wanted().weights;
  ASSERT_EQ(found.size(), weights.size());
  for (size_t index = 0; index < weights.size(); ++index)
    EXPECT_TRUE(at::allclose(found[index].cpu(), weights[index], 1e-4, 1e-5)) << index;
}

RANK_BODY(GroupOfDevices) {
  const auto group = group_of_devices();
  const at::Device device = group->device();
  ASSERT_EQ(device, simulated::device(group->rank()));
  for (const at::ScalarType type :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong}) {
    SCOPED_TRACE(c10::toString(type));
    const at::Tensor whole =
        at::arange(12, at::kFloat).view({4, 3}).add(group->rank()).to(type).to(device);
    at::Tensor strided = whole.t();
    group->all_reduce(strided);
    EXPECT_TRUE(whole.cpu().equal((2 * at::arange(12, at::kFloat).view({4, 3}) + 1).to(type)));
    at::Tensor column = whole.select(1, 1);
    column.fill_(group->rank());
    group->broadcast(column, 1);
    EXPECT_TRUE(column.cpu().eq(1).all().item<bool>());
    const at::Tensor gathered = group->all_gather(at::full({2}, group->rank(), whole.options()));
    EXPECT_TRUE(gathered.cpu().equal(at::tensor({0, 0, 1, 1}).view({2, 2}).to(type)));
  }
  const at::Tensor rows = at::arange(4, at::kFloat).view({2, 2}).add(group->rank()).to(device);
  EXPECT_TRUE(group->reduce_scatter(rows, Reduce::Mean)
                  .cpu()
                  .equal(at::tensor({0.5F, 1.5F}) + 2 * group->rank()));
  EXPECT_TRUE(group->reduce_scatter(rows, Reduce::Max)
                  .cpu()
                  .equal(at::tensor({1.0F, 2.0F}) + 2 * group->rank()));
  at::Tensor least = at::full({2}, 3.0 + group->rank(), device);
  group->all_reduce(least, Reduce::Min);
  EXPECT_TRUE(least.cpu().equal(at::full({2}, 3.0)));
  at::Tensor mean = at::full({5}, 0.0 + group->rank(), device);
  group->all_reduce(mean, Reduce::Mean);
  EXPECT_TRUE(mean.cpu().equal(at::full({5}, 0.5)));
  at::Tensor later = at::full({3}, 1.0 + group->rank(), device);
  Work sum = group->start_all_reduce(later);
  Work gather = group->start_all_gather(at::full({1}, 1.0 * group->rank(), device));
  EXPECT_TRUE(gather.wait().cpu().flatten().equal(at::tensor({0.0F, 1.0F})));
  EXPECT_TRUE(sum.wait().mul_(2).cpu().equal(at::full({3}, 6.0)));
  const auto alone = group->split(group->rank()), both = group->split(0);
  at::Tensor split = at::full({2}, 1.0 + group->rank(), device);
  alone->all_reduce(split);
  EXPECT_TRUE(split.cpu().equal(at::full({2}, 1.0 + group->rank())));
  both->all_reduce(split);
  EXPECT_TRUE(split.cpu().equal(at::full({2}, 3.0)));
  at::Tensor flags = at::full({3}, group->is_leader(), at::device(device).dtype(at::kBool));
  group->broadcast(flags);
  EXPECT_TRUE(flags.cpu().all().item<bool>());
  at::Tensor on_host = at::ones({2});
  group->all_reduce(on_host);
  EXPECT_TRUE(on_host.equal(at::full({2}, 2.0)));
  EXPECT_EQ(simulated::take_findings(), std::vector<std::string>());
}

RANK_BODY(Replicas) {
  const auto group = group_of_devices();
  for (const bool view : {false, true}) {
    for (const double bucket_cap_mb : {25.0, 0.0001}) {
      SCOPED_TRACE(fmt::format("bucket view {}, {} MiB", view, bucket_cap_mb));
      DistributedDataParallel model(
          own_stack(*group), group,
          {.bucket_cap_mb = bucket_cap_mb, .gradient_as_bucket_view = view});
      torch::optim::Adam optimizer(model.parameters(), adam());
      expect_losses(*group, model, optimizer);
      expect_weights(model.parameters());
    }
  }
  EXPECT_EQ(simulated::take_findings(), std::vector<std::string>());
}

RANK_BODY(LocalGradients) {
  const auto group = group_of_devices();
  DistributedDataParallel model(own_stack(*group), group);
  const at::Tensor rows = rows_of(0).narrow(0, 4 * group->rank(), 4).to(group->device());
  {
    const NoSync unsynchronised = model.no_sync();
    loss_of(model(rows)).backward();
  }
  loss_of(model(rows)).backward();
  Stack plain(0.7, at::kCPU);
  (2 * loss_of(plain->forward(rows_of(0)))).backward();
  EXPECT_TRUE(at::allclose(model.module()->head.grad().cpu(), plain->head.grad(), 1e-5, 1e-6));
  EXPECT_EQ(simulated::take_findings(), std::vector<std::string>());
}

RANK_BODY(Zero) {
  const auto group = group_of_devices();
  DistributedDataParallel model(own_stack(*group), group);
  ZeroOptimizer<torch::optim::Adam> optimizer(model.parameters(), group, adam());
  expect_losses(*group, model, optimizer);
  expect_weights(model.parameters());
  EXPECT_EQ(simulated::take_findings(), std::vector<std::string>());
}

void expect_shards(const std::shared_ptr<ProcessGroup>& group, const FullyShardedOptions& options) {
  FullyShardedDataParallel model(own_stack(*group), group, options);
  for (const at::Tensor& piece : model.parameters())
    EXPECT_EQ(piece.is_cpu(), options.offload != Offload::None);
  torch::optim::Adam optimizer(model.parameters(), adam());
  expect_losses(*group, model, optimizer);
  EXPECT_GT(model.clip_grad_norm(1e-3), 1e-3);
  EXPECT_NEAR(model.clip_grad_norm(1e9), 1e-3, 1e-5);
  model.with_whole_parameters([&] {
    std::vector<at::Tensor> whole;
    for (const at::Tensor& parameter : model.module()->parameters()) whole.push_back(parameter);
    expect_weights(whole);
  });
  EXPECT_EQ(simulated::take_findings(), std::vector<std::string>());
}

RANK_BODY(Shards) {
  const auto group = group_of_devices();
  expect_shards(group, {});
  for (const Offload offload : {Offload::None, Offload::Optimizer, Offload::Parameters})
    for (const int64_t keep_whole_below : {0, 20, 1 << 20}) {
      SCOPED_TRACE(
          fmt::format("offload {}, whole below {}", static_cast<int>(offload), keep_whole_below));
      expect_shards(group, {.reshard_after_forward = keep_whole_below == 20,
                            .offload = offload,
                            .ranks_that_share = keep_whole_below == 20 ? 1 : 0,
                            .keep_whole_below = keep_whole_below});
    }
}

// Takes two steps and saves a checkpoint; a new model then continues from it.
template <class Make>
void save_and_go_on(const std::shared_ptr<ProcessGroup>& group, const std::string& folder,
                    Make make) {
  CheckpointFolder checkpoints(std::filesystem::path(std::getenv("CHECKPOINTS")) / folder, group);
  {
    auto [model, optimizer] = make();
    for (int step = 0; step < 2; ++step) {
      optimizer->zero_grad();
      loss_of((*model)(rows_of(step).narrow(0, 4 * group->rank(), 4).to(group->device())))
          .backward();
      optimizer->step();
    }
    checkpoints.save(2, *model, *optimizer, {{"left", "2"}});
  }
  auto [model, optimizer] = make();
  const auto resumed = checkpoints.load(*model, *optimizer);
  ASSERT_TRUE(resumed.has_value());
  EXPECT_EQ(resumed->step, 2);
  EXPECT_EQ(resumed->notes.at("left"), "2");
  expect_losses(*group, *model, *optimizer, 2);
}

RANK_BODY(Saved) {
  const auto group = group_of_devices();
  save_and_go_on(group, "replicas", [&] {
    auto model = std::make_unique<DistributedDataParallel<Stack>>(own_stack(*group), group);
    auto optimizer = std::make_unique<torch::optim::Adam>(model->parameters(), adam());
    return std::pair(std::move(model), std::move(optimizer));
  });
  save_and_go_on(group, "zero", [&] {
    auto model = std::make_unique<DistributedDataParallel<Stack>>(own_stack(*group), group);
    auto optimizer =
        std::make_unique<ZeroOptimizer<torch::optim::Adam>>(model->parameters(), group, adam());
    return std::pair(std::move(model), std::move(optimizer));
  });
  for (const auto& [folder, options] : std::vector<std::pair<std::string, FullyShardedOptions>>{
           {"shards", {}},
           {"offloaded", {.offload = Offload::Parameters}},
           {"kept",
            {.offload = Offload::Optimizer, .ranks_that_share = 1, .keep_whole_below = 20}}})
    save_and_go_on(group, folder, [&, &options = options] {
      auto model =
          std::make_unique<FullyShardedDataParallel<Stack>>(own_stack(*group), group, options);
      auto optimizer = std::make_unique<torch::optim::Adam>(model->parameters(), adam());
      return std::pair(std::move(model), std::move(optimizer));
    });
  EXPECT_EQ(simulated::take_findings(), std::vector<std::string>());
}

// One rank on a CPU loads checkpoints that devices saved.
RANK_BODY(LoadedByACpu) {
  const auto group = init();
  for (const char* const folder : {"replicas", "zero", "shards", "offloaded", "kept"}) {
    SCOPED_TRACE(folder);
    CheckpointFolder checkpoints(std::filesystem::path(std::getenv("CHECKPOINTS")) / folder, group);
    DistributedDataParallel model(Stack(0.1, at::kCPU), group);
    torch::optim::Adam optimizer(model.parameters(), adam());
    ASSERT_TRUE(checkpoints.load(model, optimizer).has_value());
    expect_losses(*group, model, optimizer, 2);
    expect_weights(model.parameters());
  }
}

TEST(LibraryOnDevices, AGroupCarriesEveryType) {
  testing::expect_all_well(testing::start_ranks(2, "GroupOfDevices"));
}
TEST(LibraryOnDevices, ReplicasTrainAsOneProcess) {
  testing::expect_all_well(testing::start_ranks(2, "Replicas"));
}
TEST(LibraryOnDevices, NoSyncAddsUpOnTheRank) {
  testing::expect_all_well(testing::start_ranks(2, "LocalGradients"));
}
TEST(LibraryOnDevices, AZeroOptimizerTrainsAsOneProcess) {
  testing::expect_all_well(testing::start_ranks(2, "Zero"));
}
TEST(LibraryOnDevices, ShardsTrainAsOneProcess) {
  testing::expect_all_well(testing::start_ranks(2, "Shards"));
}
TEST(LibraryOnDevices, CheckpointsGoOnThereAndOnACpu) {
  const testing::TemporaryFolder folder;
  const testing::RankStart start{.environment = {{"CHECKPOINTS", folder.path().string()}}};
  testing::expect_all_well(testing::start_ranks(2, "Saved", start));
  testing::expect_all_well(testing::start_ranks(1, "LoadedByACpu", start));
}

}  // namespace
}  // namespace convoy
