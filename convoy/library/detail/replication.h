// SPDX-License-Identifier: Apache-2.0
//
// Implements DistributedDataParallel for any type of module.
#pragma once

#include <torch/nn/module.h>
#include <torch/ordered_dict.h>

#include <memory>
#include <string>
#include <vector>

#include "convoy/library/detail/sharing.h"

namespace convoy {

struct DistributedDataParallelOptions;

namespace detail {

class Replication : public Sharing {
 public:
  Replication(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group,
              const DistributedDataParallelOptions& options);
  ~Replication() override;

  void before_forward();
  void set_synchronised(bool synchronised) override;
  bool synchronised() const override;
  void broadcast_buffers();
  ProcessGroup& group() override;
  std::vector<ShardView> stored_shards() override;
  torch::OrderedDict<std::string, torch::Tensor> buffers() override;
  bool replicated() const override { return true; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail
}  // namespace convoy
