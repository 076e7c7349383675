// SPDX-License-Identifier: Apache-2.0
//
// One process with a replica of the module and a thread for each device; the CPU may be named
// several times. The replicas stay from step to step. For one process per device, which is faster,
// see DistributedDataParallel.
//
//   convoy::DataParallel model(net, {torch::kCPU, torch::kCPU});
//   auto loss = torch::nll_loss(model(rows), labels);   // rows are dealt to the replicas
//   loss.backward();                                    // .grad of net's parameters
#pragma once

#include <torch/types.h>

#include <utility>
#include <vector>

#include "convoy/library/detail/module_parts.h"
#include "convoy/library/detail/replicas.h"

namespace convoy {

// `Holder`: a module holder (as TORCH_MODULE defines them) or a shared_ptr to a module that can be
// cloned (torch::nn::Cloneable). Use it on one thread.
template <class Holder>
class DataParallel {
 public:
  // The module must be on the first device. Throws ConfigError without a device.
  DataParallel(Holder module, std::vector<torch::Device> devices)
      : module_(std::move(module)), replicas_(detail::module_pointer(module_), devices) {}

  // Calls forward() of every replica on its share of the rows. Tensor arguments [rows, ...] are cut
  // along their first dimension; all other arguments are copied. Returns the result of the
  // replicas, with tensors joined along the first dimension. A number per replica, such as a loss,
  // becomes a row of the result. With fewer rows than replicas, some replicas do nothing. The
  // module's buffers get the values of the first replica's buffers. Blocks. Throws the error of the
  // first replica that fails, and ConfigError when tensors differ in their rows or there are none.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    return replicas_.template forward<detail::ModuleOf<Holder>>(
        std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }
  DataParallel* operator->() { return this; }

  const Holder& module() const { return module_; }
  std::vector<torch::Tensor> parameters() const { return module_->parameters(); }
  void zero_grad(bool set_to_none = true) { module_->zero_grad(set_to_none); }
  void train(bool on = true) { replicas_.train(on); }
  void eval() { train(false); }
  bool is_training() const { return module_->is_training(); }

 private:
  Holder module_;
  detail::Replicas replicas_;
};

}  // namespace convoy
