// SPDX-License-Identifier: Apache-2.0
#include "convoy/nn/recompute.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/ivalue.h>

#include <mutex>
#include <utility>

namespace convoy::nn {
namespace {

at::Tensor generator_state() {
  auto generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const at::Tensor& state) {
  auto generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

// Puts the generator back to where it was, so that running again draws nothing from later steps.
class GeneratorStateGuard {
 public:
  explicit GeneratorStateGuard(const at::Tensor& state) : before_(generator_state()) {
    set_generator_state(state);
  }
  ~GeneratorStateGuard() { set_generator_state(before_); }
  GeneratorStateGuard(const GeneratorStateGuard&) = delete;
  GeneratorStateGuard& operator=(const GeneratorStateGuard&) = delete;

 private:
  at::Tensor before_;
};

struct Recording : torch::CustomClassHolder {
  TensorFunction function;
  at::Tensor generator_state;
  bool x_requires_grad = false;
};

struct RecomputeFunction : torch::autograd::Function<RecomputeFunction> {
  // `anchor` requires grad, so that the output does even where x does not (the first block of a model whose embedding
  // is frozen).
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& /*anchor*/,
                            const c10::intrusive_ptr<Recording>& recording) {
    context->save_for_backward({x});
    context->saved_data["recording"] = c10::IValue::make_capsule(recording);
    recording->generator_state = generator_state();
    return recording->function(x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto capsule = context->saved_data["recording"].toCapsule();
    const auto& recording = static_cast<const Recording&>(*capsule);
    at::Tensor x = context->get_saved_variables()[0].detach();
    x.requires_grad_(recording.x_requires_grad);
    {
      const GeneratorStateGuard as_in_forward(recording.generator_state);
      const at::AutoGradMode record_graph(true);
      const at::Tensor output = recording.function(x);
      torch::autograd::backward({output}, {gradients[0]});
    }
    return {x.grad(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor recompute_in_backward(const at::Tensor& x, TensorFunction function) {
  auto recording = c10::make_intrusive<Recording>();
  recording->function = std::move(function);
  recording->x_requires_grad = x.requires_grad();
  const at::Tensor anchor = at::empty({0}, x.options()).requires_grad_(true);
  return RecomputeFunction::apply(x, anchor, recording);
}

}  // namespace convoy::nn
