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
#include <ctime>

#include "convoy/library/ddp.h"

namespace {

constexpr int64_t kWarmUp = 5;  // steps, in which buckets are laid out

double at_fraction(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(fraction * static_cast<double>(values.size()))];
}

// The processor time of all threads of this process.
double processor_ms() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

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
  double loss_value = 0, processor_begin_ms = 0;
  for (int64_t step = 0; step < steps; ++step) {
    if (step == kWarmUp) processor_begin_ms = processor_ms();
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
  const double step_processor_ms =
      (processor_ms() - processor_begin_ms) / static_cast<double>(steps - kWarmUp);
  steps_ms.erase(steps_ms.begin(), steps_ms.begin() + kWarmUp);
  if (group->is_leader())
    std::printf(
        "{\"step_ms\": %.4f, \"fast_step_ms\": %.4f, \"processor_ms\": %.4f, \"loss\": %.8f}\n",
        at_fraction(steps_ms, 0.5), at_fraction(steps_ms, 0.1), step_processor_ms, loss_value);
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
