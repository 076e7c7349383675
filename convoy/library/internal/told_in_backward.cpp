// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/told_in_backward.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>

#include <utility>

namespace convoy::detail {
namespace {

namespace autograd = torch::autograd;

class Passed : public autograd::Node {
 public:
  explicit Passed(std::function<void(bool)> reached) : reached_(std::move(reached)) {}

  autograd::variable_list apply(autograd::variable_list&& gradients) override {
    const bool makes_graph = at::GradMode::is_enabled();
    const at::NoGradGuard no_grad;
    reached_(makes_graph);
    return std::move(gradients);
  }

 private:
  std::function<void(bool)> reached_;
};

}  // namespace

void tell_in_backward(const std::vector<at::Tensor*>& tensors, std::function<void(bool)> reached) {
  if (!at::GradMode::is_enabled()) return;
  const std::shared_ptr<Passed> node(new Passed(std::move(reached)), autograd::deleteNode);
  std::vector<at::Tensor*> passing;
  for (at::Tensor* tensor : tensors) {
    if (!tensor->defined() || !tensor->requires_grad()) continue;
    node->add_next_edge(autograd::impl::gradient_edge(*tensor));
    passing.push_back(tensor);
  }
  for (at::Tensor* tensor : passing) {
    *tensor = tensor->detach();
    autograd::set_history(*tensor, node);
  }
}

int backward_pass() { return autograd::get_current_graph_task_id(); }

void at_end_of_backward(std::function<void()> done) {
  autograd::Engine::get_default_engine().queue_callback(std::move(done));
}

}  // namespace convoy::detail
