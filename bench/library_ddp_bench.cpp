// SPDX-License-Identifier: Apache-2.0
//
// One rank of bench/library_ddp.py: steps of convoy::DistributedDataParallel on a multilayer
// perceptron. library_ddp_bench WIDTH DEPTH ROWS STEPS; rank 0 prints a JSON line.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "convoy/library/distributed_data_parallel.h"

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(int64_t width, int64_t depth, int64_t rows, int64_t steps) {
  const auto group = convoy::init();
  torch::manual_seed(0);
  torch::nn::Sequential net;
  for (int64_t layer = 0; layer < depth; ++layer) {
    net->push_back(torch::nn::Linear(width, width));
    net->push_back(torch::nn::ReLU());
  }
  convoy::DistributedDataParallel model(net, group);
  torch::optim::SGD optimizer(model.parameters(), 1e-3);
  torch::manual_seed(static_cast<uint64_t>(1 + group->rank()));
  const torch::Tensor x = torch::randn({rows, width});
  std::vector<double> steps_ms;
  double loss_value = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    optimizer.zero_grad();
    const torch::Tensor loss = model(x).square().mean();
    loss.backward();
    optimizer.step();
    loss_value = loss.item<double>();
    steps_ms.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  steps_ms.erase(steps_ms.begin(), steps_ms.begin() + 5);  // the first ones lay out buckets
  if (group->is_leader())
    std::printf("{\"step_ms\": %.4f, \"loss\": %.8f}\n", median(steps_ms), loss_value);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: library_ddp_bench WIDTH DEPTH ROWS STEPS\n");
    return 2;
  }
  return convoy::run_rank([&] {
    measure(std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4]));
  });
}
