// SPDX-License-Identifier: Apache-2.0
//
// A small network learns to distinguish two spirals, on any number of ranks:
//   convoy launch --ranks 2 -- cpp_ddp      or      torchrun --nproc-per-node 2 --no-python cpp_ddp
#include <convoy/convoy.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdio>

struct NetImpl : torch::nn::Module {
  NetImpl() {
    first = register_module("first", torch::nn::Linear(2, 64));
    norm = register_module("norm", torch::nn::BatchNorm1d(64));
    second = register_module("second", torch::nn::Linear(64, 64));
    last = register_module("last", torch::nn::Linear(64, 2));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(norm(first(x)));
    return last(torch::relu(second(x)));
  }
  torch::nn::Linear first{nullptr}, second{nullptr}, last{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Net);

struct Spirals : torch::data::Dataset<Spirals> {
  explicit Spirals(int64_t rows) {
    torch::manual_seed(0);  // the same rows on every rank
    labels = torch::arange(rows) % 2;
    const auto angle = 6 * torch::rand({rows});
    const auto turned = angle + M_PI * labels;
    points = torch::stack({angle * turned.cos(), angle * turned.sin()}, 1) / 3;
  }
  torch::data::Example<> get(size_t row) override { return {points[row], labels[row]}; }
  std::optional<size_t> size() const override { return points.size(0); }
  torch::Tensor points, labels;
};

void train() {
  const auto group = convoy::init();
  auto spirals = Spirals(2000).map(torch::data::transforms::Stack<>());
  convoy::DistributedSampler sampler(2000, *group);
  const auto loader = torch::data::make_data_loader(spirals, sampler, 100 / group->size());
  convoy::DistributedDataParallel model(Net(), group);
  torch::optim::Adam optimizer(model.parameters(), 5e-3);
  for (int epoch = 0; epoch < 15; ++epoch) {
    sampler.set_epoch(epoch);
    auto right = torch::zeros({});
    for (const auto& batch : *loader) {
      optimizer.zero_grad();
      const auto scores = model(batch.data);
      torch::cross_entropy_loss(scores, batch.target).backward();
      optimizer.step();
      right += (scores.argmax(1) == batch.target).sum();
    }
    group->all_reduce(right);
    if (group->is_leader())
      std::printf("epoch %2d  %4.1f %% right\n", epoch + 1, right.item<float>() / 20);
  }
}

int main() { return convoy::run_rank(train); }
