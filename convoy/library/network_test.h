// SPDX-License-Identifier: Apache-2.0
//
// Has the network of tests/golden/library/make_golden.py, its initial weights and its rows.
#pragma once

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/library/fsdp.h"
#include "convoy/library/process_group.h"
#include "convoy/machine/device/stored_tensor.h"
#include "ranks/ranks.h"

namespace convoy::detail {

using testing::expect_all_well;
using testing::start_ranks;

constexpr int64_t kInputs = 12;
constexpr int64_t kWidth = 24;
constexpr int64_t kClasses = 5;
constexpr int64_t kSteps = 20;

struct BlockImpl : torch::nn::Module {
  BlockImpl()
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})))),
        up(register_module("up", torch::nn::Linear(kWidth, 2 * kWidth))),
        down(register_module("down", torch::nn::Linear(2 * kWidth, kWidth))) {}
  at::Tensor forward(const at::Tensor& x) { return x + down(torch::tanh(up(norm(x)))); }
  torch::nn::LayerNorm norm;
  torch::nn::Linear up, down;
};
TORCH_MODULE(Block);

struct NetworkImpl : torch::nn::Module {
  NetworkImpl()
      : input(register_module("input", torch::nn::Linear(kInputs, kWidth))),
        norm(register_module("norm", torch::nn::BatchNorm1d(kWidth))),
        blocks(register_module("blocks", torch::nn::ModuleList())),
        head(register_module("head", torch::nn::Linear(kWidth, kClasses))) {
    for (int block = 0; block < 3; ++block) blocks->push_back(FsdpUnit(Block()));
  }
  at::Tensor forward(const at::Tensor& rows) {
    at::Tensor x = torch::relu(norm(input(rows)));
    for (const auto& block : *blocks) x = block->as<FsdpUnitImpl<Block>>()->forward(x);
    return head(x);
  }
  torch::nn::Linear input;
  torch::nn::BatchNorm1d norm;
  torch::nn::ModuleList blocks;
  torch::nn::Linear head;
};
TORCH_MODULE(Network);

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) / "tests/golden/library";
}

struct Golden {
  io::SafetensorsFile file{golden_folder() / "network.safetensors"};
  at::Tensor rows = tensor("rows");      // [steps, rows, inputs]
  at::Tensor labels = tensor("labels");  // [steps, rows]

  at::Tensor tensor(const std::string& name) const {
    return device::copy_to_tensor(file.require(name));
  }
  void load_into(Network& network) const {
    const at::NoGradGuard no_grad;
    const auto copy = [&](const auto& named) {
      for (const auto& item : named) {
        std::string name = item.key();
        if (const size_t unit = name.find(".module"); unit != std::string::npos)
          name.erase(unit, 7);
        at::Tensor(item.value()).copy_(tensor(name));
      }
    };
    copy(network->named_parameters());
    copy(network->named_buffers());
  }
  static std::vector<double> curve(const std::string& name) {
    const io::Json golden =
        io::parse_json(read_file(golden_folder() / "golden.json"), "golden.json");
    return golden.at("curves").at(name).get<std::vector<double>>();
  }
};

inline at::Tensor loss_of(const at::Tensor& output, const at::Tensor& labels) {
  return torch::nn::functional::cross_entropy(output, labels);
}

// Returns the mean losses over all ranks for the steps of the golden run. `step` clips the
// gradients and steps the optimizer.
template <class Model, class ZeroGrad, class Step>
std::vector<double> curve_of(ProcessGroup& group, Model& model, int64_t micro_batches,
                             ZeroGrad zero_grad, Step step) {
  const Golden golden;
  std::vector<double> losses;
  for (int64_t at = 0; at < kSteps; ++at) {
    const int64_t own = golden.rows.size(1) / group.size();
    const auto rows = golden.rows[at].narrow(0, group.rank() * own, own).chunk(micro_batches);
    const auto labels = golden.labels[at].narrow(0, group.rank() * own, own).chunk(micro_batches);
    zero_grad();
    at::Tensor sum = at::zeros({});
    for (size_t micro = 0; micro < rows.size(); ++micro) {
      const NoSync unsynchronised = model.no_sync(micro + 1 < rows.size());
      const at::Tensor loss =
          loss_of(model(rows[micro]), labels[micro]) / static_cast<double>(micro_batches);
      loss.backward();
      sum += loss.detach();
    }
    step();
    group.all_reduce(sum, Reduce::Mean);
    losses.push_back(sum.item<double>());
  }
  return losses;
}

inline void expect_curve(const std::vector<double>& found, const std::string& name) {
  const std::vector<double> wanted = Golden::curve(name);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t step = 0; step < wanted.size(); ++step)
    EXPECT_NEAR(found[step], wanted[step], 1e-5) << name << ", step " << step;
}

// Each rank begins with different weights, and the wrapper's constructor gives all ranks the
// weights of rank 0.
inline Network golden_network(ProcessGroup& group) {
  torch::manual_seed(static_cast<uint64_t>(group.rank()));
  Network network;
  if (group.rank() == 0) Golden().load_into(network);
  return network;
}

}  // namespace convoy::detail
