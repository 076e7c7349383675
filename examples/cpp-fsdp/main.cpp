// SPDX-License-Identifier: Apache-2.0
//
// A stack of blocks that no rank holds whole: parameters, gradients and optimizer states are shared by all ranks.
//   convoy launch --ranks 2 -- cpp_fsdp
#include <convoy/convoy.h>
#include <torch/torch.h>

#include <cstdio>

constexpr int64_t kWidth = 64;

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    up = register_module("up", torch::nn::Linear(kWidth, 4 * kWidth));
    down = register_module("down", torch::nn::Linear(4 * kWidth, kWidth));
  }
  torch::Tensor forward(torch::Tensor x) { return x + down(torch::gelu(up(norm(x)))); }
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear up{nullptr}, down{nullptr};
};
TORCH_MODULE(Block);

torch::nn::Sequential network() {
  torch::nn::Sequential net(torch::nn::Linear(8, kWidth));
  for (int block = 0; block < 6; ++block) net->push_back(convoy::FsdpUnit(Block()));
  net->push_back(convoy::FsdpUnit(torch::nn::Linear(kWidth, 1)));
  return net;
}

void train() {
  const auto group = convoy::init();
  torch::manual_seed(group->rank());  // other rows on every rank; the weights become rank 0's
  const auto rows = torch::randn({256, 8});
  const auto wanted = rows.sin().sum(1, /*keepdim=*/true);

  auto net = network();
  convoy::FullyShardedDataParallel model(net, group, {.ranks_that_share = group->local_size()});
  torch::optim::AdamW optimizer(model.parameters(), 2e-3);
  for (int step = 1; step <= 60; ++step) {
    optimizer.zero_grad();
    auto loss = torch::mse_loss(model(rows), wanted);
    loss.backward();
    model.clip_grad_norm(1.0);
    optimizer.step();
    auto mean = loss.detach();
    group->all_reduce(mean, convoy::Reduce::Mean);
    if (group->is_leader() && step % 20 == 0)
      std::printf("step %d loss %.4f\n", step, mean.item<float>());
  }
  model.with_whole_parameters([&] {
    if (group->is_leader()) torch::save(net, "network.pt");
  });
}

int main() { return convoy::run_rank(train); }
