// SPDX-License-Identifier: Apache-2.0
//
// Data-parallel training of plain LibTorch tensors: each rank sees its own half of the rows, gradients are summed while
// backward runs, and the ranks stay equal. Started once per rank with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as
// torchrun sets them; run.sh does it for two.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/comm/environment.h"
#include "convoy/comm/group.h"
#include "convoy/optim/adamw.h"
#include "convoy/parallel/strategy.h"
#include "convoy/settings/train_settings.h"

namespace {

constexpr int64_t kRows = 256;  // of all ranks
constexpr int64_t kInputs = 8;
constexpr int64_t kHidden = 32;
constexpr int kSteps = 200;

struct Network {
  at::Tensor w1_IH = at::randn({kInputs, kHidden}) / 3;
  at::Tensor b1_H = at::zeros({kHidden});
  at::Tensor w2_HO = at::randn({kHidden, 1}) / 6;

  at::Tensor operator()(const at::Tensor& x_NI) const {
    return at::tanh(at::addmm(b1_H, x_NI, w1_IH)).mm(w2_HO);
  }
  convoy::nn::Unit unit() const {
    convoy::nn::Unit whole{.name = "network"};
    whole.trained = {{"w1", w1_IH}, {"b1", b1_H}, {"w2", w2_HO}};
    for (auto& parameter : whole.trained) parameter.value.requires_grad_(true);
    return whole;
  }
};

void train() {
  const auto environment = convoy::comm::read_rank_environment();
  const auto group = convoy::comm::join_group(environment, std::chrono::seconds(60));
  const convoy::settings::ParallelSettings settings;  // auto: ddp with more than one rank
  const auto strategy = convoy::parallel::make_strategy(settings, *group);

  at::manual_seed(1);  // the same rows on every rank, of which each takes its share
  const at::Tensor x_NI = at::randn({kRows, kInputs});
  const at::Tensor y_NO = at::sin(x_NI.sum(1, /*keepdim=*/true));
  const int64_t share = kRows / group->size();
  const at::Tensor mine_NI = x_NI.narrow(0, group->rank() * share, share);
  const at::Tensor wanted_NO = y_NO.narrow(0, group->rank() * share, share);

  at::manual_seed(2 + static_cast<uint64_t>(group->rank()));  // prepare() makes the ranks equal
  const Network network;
  strategy->prepare({network.unit()});
  std::vector<convoy::optim::OptimizedParameter> optimized;
  for (const convoy::parallel::ParameterShard& shard : strategy->shards())
    optimized.push_back(
        {.name = shard.name, .value = shard.value.detach(), .gradient = shard.gradient});
  convoy::optim::AdamW adamw({}, optimized);

  for (int step = 1; step <= kSteps; ++step) {
    strategy->begin_micro_batch(convoy::parallel::MicroBatch::Last);
    // Divided by the rows of all ranks, so the sum of gradients is that of the whole batch.
    at::Tensor loss = (network(mine_NI) - wanted_NO).square().sum() / kRows;
    loss.backward();
    strategy->finish_gradients();
    adamw.step(1e-2);
    strategy->finish_step();
    if (step % 50 == 0 || step == 1) {
      at::Tensor total = loss.detach().clone();
      group->all_reduce_sum(total);
      if (group->rank() == 0) fmt::print("step {:3} loss {:.4f}\n", step, total.item<float>());
    }
  }
  std::fflush(stdout);
  at::Tensor sum = network.w1_IH.detach().sum();
  const auto sums = group->all_gather_bytes(fmt::format("{:a}", sum.item<float>()));
  for (const std::string& other : sums)
    if (other != sums.front()) throw convoy::StateError("the ranks have drifted apart");
  if (group->rank() == 0) fmt::print("{} ranks, equal weights\n", group->size());
}

}  // namespace

int main() {
  try {
    train();
    return 0;
  } catch (const convoy::Error& error) {
    fmt::print(stderr, "{}\n", error.sentence());
    return static_cast<int>(error.code());
  }
}
