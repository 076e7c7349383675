// SPDX-License-Identifier: Apache-2.0
//
// Implements FullyShardedDataParallel for any type of module.
#pragma once

#include <torch/nn/module.h>
#include <torch/ordered_dict.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convoy/library/detail/fsdp_unit.h"
#include "convoy/library/detail/sharing.h"

namespace convoy {

struct FullyShardedOptions;

namespace detail {

class Sharding : public Sharing {
 public:
  Sharding(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group,
           const FullyShardedOptions& options);
  ~Sharding() override;

  const UnitCore& rest();  // unit of the parameters that no FsdpUnit holds
  void begin_forward();
  void watch_backward(const std::vector<torch::Tensor*>& outputs);
  void with_whole_parameters(const std::function<void()>& body);
  double clip_grad_norm(double max_norm);
  void set_synchronised(bool synchronised) override;
  bool synchronised() const override;
  ProcessGroup& group() override;
  std::vector<ShardView> shards();  // only the shards that train
  std::vector<ShardView> stored_shards() override;
  torch::OrderedDict<std::string, torch::Tensor> buffers() override;
  bool replicated() const override { return false; }
  bool writes_shards() const override;
  void after_load() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail
}  // namespace convoy
