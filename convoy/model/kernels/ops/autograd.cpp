// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/ops/autograd.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <unordered_map>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::kernels {
namespace {

namespace autograd = torch::autograd;

class Recomputed;

// A tensor that is kept for backward, or the function that computes it again.
class Kept {
 public:
  explicit Kept(const at::Tensor& tensor);

  at::Tensor value();
  void release();

 private:
  // Saves the tensor without its node: an output that was saved with its node would keep it alive.
  autograd::SavedVariable variable_;
  std::shared_ptr<Recomputed> recomputed_;  // null: the variable holds it
  // The sizes, strides and offset of this tensor in the recomputed output.
  std::vector<int64_t> sizes_, strides_;
  int64_t offset_ = 0;
};

// Used by the threads that run backward.
class Recomputed {
 public:
  Recomputed(const std::vector<at::Tensor>& from, RecomputedOutputs::Function function)
      : function_(std::move(function)) {
    for (const at::Tensor& tensor : from) from_.emplace_back(tensor);
  }
  void add_use() { ++uses_; }
  // Returns the output, which is computed for the first use and kept until the last use took it.
  at::Tensor take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!value_.defined()) {
      std::vector<at::Tensor> from;
      for (Kept& kept : from_) from.push_back(kept.value());
      value_ = function_(from);
    }
    at::Tensor taken = value_;
    if (++taken_ < uses_) return taken;
    taken_ = 0;
    value_.reset();
    return taken;
  }

 private:
  std::mutex mutex_;
  std::vector<Kept> from_;
  RecomputedOutputs::Function function_;
  at::Tensor value_;
  int64_t uses_ = 0;
  int64_t taken_ = 0;
};

thread_local RecomputedOutputs::Outputs* recomputed_outputs = nullptr;

}  // namespace

// Outputs by their memory. Each entry holds its tensor, so that no other tensor gets the memory.
struct RecomputedOutputs::Outputs {
  struct Output {
    at::Tensor tensor;
    std::shared_ptr<Recomputed> recomputed;
  };
  std::unordered_map<const c10::StorageImpl*, Output> by_memory;

  std::shared_ptr<Recomputed> find(const at::Tensor& tensor) const {
    if (!tensor.has_storage()) return nullptr;
    const auto found = by_memory.find(tensor.storage().unsafeGetStorageImpl());
    return found == by_memory.end() ? nullptr : found->second.recomputed;
  }
};

RecomputedOutputs::RecomputedOutputs()
    : own_(std::make_unique<Outputs>()), before_(std::exchange(recomputed_outputs, own_.get())) {}

RecomputedOutputs::~RecomputedOutputs() { recomputed_outputs = before_; }

void RecomputedOutputs::add(const at::Tensor& output, const std::vector<at::Tensor>& from,
                            Function again) {
  if (recomputed_outputs == nullptr) return;
  recomputed_outputs->by_memory.emplace(
      output.storage().unsafeGetStorageImpl(),
      Outputs::Output{output.detach(), std::make_shared<Recomputed>(from, std::move(again))});
}

bool RecomputedOutputs::contain(const at::Tensor& tensor) {
  return recomputed_outputs != nullptr && recomputed_outputs->find(tensor) != nullptr;
}

namespace {

Kept::Kept(const at::Tensor& tensor) {
  if (tensor.defined() && recomputed_outputs != nullptr)
    recomputed_ = recomputed_outputs->find(tensor);
  if (recomputed_ == nullptr) {
    variable_ = autograd::SavedVariable(tensor.defined() ? tensor.detach() : tensor, false);
    return;
  }
  recomputed_->add_use();
  sizes_ = tensor.sizes().vec();
  strides_ = tensor.strides().vec();
  offset_ = tensor.storage_offset();
}

at::Tensor Kept::value() {
  return recomputed_ == nullptr ? variable_.unpack()
                                : recomputed_->take().as_strided(sizes_, strides_, offset_);
}

void Kept::release() {
  variable_.reset_data();
  recomputed_.reset();
}

class OpNode : public autograd::Node {
 public:
  explicit OpNode(JointBackward backward) : backward_(std::move(backward)) {
    for (const at::Tensor& input : backward_.inputs)
      add_next_edge(input.defined() && input.requires_grad() ? autograd::impl::gradient_edge(input)
                                                             : autograd::Edge());
    backward_.inputs.clear();
    for (const at::Tensor& tensor : backward_.saved) saved_.emplace_back(tensor);
    backward_.saved.clear();
  }

  std::string name() const override { return backward_.op; }

  autograd::variable_list apply(autograd::variable_list&& grads) override {
    CONVOY_INVARIANT(!at::GradMode::is_enabled(), "{} can be differentiated once", backward_.op);
    if (std::none_of(grads.begin(), grads.end(), [](const auto& grad) { return grad.defined(); }))
      return autograd::variable_list(num_outputs());
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<at::Tensor> saved;
    for (Kept& kept : saved_) saved.push_back(kept.value());
    std::vector<bool> wanted;
    for (size_t index = 0; index < num_outputs(); ++index)
      wanted.push_back(task_should_compute_output(index));
    return backward_.gradients(grads, saved, wanted);
  }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Kept& kept : saved_) kept.release();
  }

 private:
  JointBackward backward_;
  std::vector<Kept> saved_;
};

}  // namespace

bool records_gradient(std::initializer_list<at::Tensor> inputs) {
  if (!at::GradMode::is_enabled()) return false;
  return std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& input) {
    return input.defined() && input.requires_grad();
  });
}

at::Tensor with_backward(const at::Tensor& output, Backward backward) {
  JointBackward joint{
      .op = backward.op,
      .inputs = std::move(backward.inputs),
      .saved = std::move(backward.saved),
      .gradients = [gradients = std::move(backward.gradients)](const std::vector<at::Tensor>& grads,
                                                               const std::vector<at::Tensor>& saved,
                                                               const std::vector<bool>& wanted) {
        return gradients(grads[0].contiguous(), saved, wanted);
      }};
  return with_backward(std::vector{output}, std::move(joint))[0];
}

std::vector<at::Tensor> with_backward(const std::vector<at::Tensor>& outputs,
                                      JointBackward backward) {
  const std::shared_ptr<OpNode> node(new OpNode(std::move(backward)), autograd::deleteNode);
  std::vector<at::Tensor> results;
  for (const at::Tensor& output : outputs) {
    // A view that was made without recording must not join the graph of its base.
    results.push_back(output.detach());
    autograd::set_history(results.back(), node);
  }
  return results;
}

}  // namespace convoy::kernels
