// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/ops/autograd.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include "convoy/core/base/error.h"

namespace convoy::kernels {
namespace {

namespace autograd = torch::autograd;

class OpNode : public autograd::Node {
 public:
  explicit OpNode(Backward backward) : backward_(std::move(backward)) {
    for (const at::Tensor& input : backward_.inputs)
      add_next_edge(input.defined() && input.requires_grad() ? autograd::impl::gradient_edge(input)
                                                             : autograd::Edge());
    backward_.inputs.clear();
    // Values alone, which keep their version: an output among them would hold its own node.
    for (const at::Tensor& tensor : backward_.saved)
      saved_.emplace_back(tensor.defined() ? tensor.detach() : tensor, false);
    backward_.saved.clear();
  }

  std::string name() const override { return backward_.op; }

  autograd::variable_list apply(autograd::variable_list&& grads) override {
    CONVOY_INVARIANT(!at::GradMode::is_enabled(), "{} can be differentiated once", backward_.op);
    if (!grads[0].defined()) return autograd::variable_list(num_outputs());
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<at::Tensor> saved;
    for (const autograd::SavedVariable& variable : saved_) saved.push_back(variable.unpack());
    std::vector<bool> wanted;
    for (size_t index = 0; index < num_outputs(); ++index)
      wanted.push_back(task_should_compute_output(index));
    return backward_.gradients(grads[0].contiguous(), saved, wanted);
  }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (autograd::SavedVariable& variable : saved_) variable.reset_data();
  }

 private:
  Backward backward_;
  std::vector<autograd::SavedVariable> saved_;
};

}  // namespace

bool records_gradient(std::initializer_list<at::Tensor> inputs) {
  if (!at::GradMode::is_enabled()) return false;
  return std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& input) {
    return input.defined() && input.requires_grad();
  });
}

at::Tensor with_backward(const at::Tensor& output, Backward backward) {
  // A view that was made without recording must not join the graph of its base.
  at::Tensor result = output.detach();
  const std::shared_ptr<OpNode> node(new OpNode(std::move(backward)), autograd::deleteNode);
  autograd::set_history(result, node);
  return result;
}

}  // namespace convoy::kernels
