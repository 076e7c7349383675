// SPDX-License-Identifier: Apache-2.0
//
// Ops whose backward is written by hand, as nodes of LibTorch's graph. One class of node for all of
// them: torch::autograd::Function is a template with which each unit with an op takes ten seconds
// to compile, and it copies its arguments into a dictionary at every call.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

namespace convoy::kernels {

// Would autograd record an op over these inputs?
bool records_gradient(std::initializer_list<at::Tensor> inputs);

struct Backward {
  const char* op;                  // named in errors
  std::vector<at::Tensor> inputs;  // undefined ones are allowed
  std::vector<at::Tensor> saved;   // kept until backward has run; the output may be among them
  // Gradients of `inputs` in their order; gradients that are not requested may be undefined. `grad`
  // is contiguous. Called without recording, on the thread of the inputs' device.
  std::function<std::vector<at::Tensor>(const at::Tensor& grad,
                                        const std::vector<at::Tensor>& saved,
                                        const std::vector<bool>& wanted)>
      gradients;
};

// While such an object lives, ops recorded on its thread do not keep the outputs that are added to
// the object: computing them costs little beside a product. Backward computes such an output again,
// once for all ops that need it.
class RecomputedOutputs {
 public:
  RecomputedOutputs();
  ~RecomputedOutputs();
  RecomputedOutputs(const RecomputedOutputs&) = delete;
  RecomputedOutputs& operator=(const RecomputedOutputs&) = delete;

  // Call it with the output of an op before the op is recorded; again(from) computes the output.
  // Without a RecomputedOutputs on the thread nothing happens.
  using Function = std::function<at::Tensor(const std::vector<at::Tensor>& from)>;
  static void add(const at::Tensor& output, const std::vector<at::Tensor>& from, Function again);
  // Is `tensor` an output that was added on this thread?
  static bool contain(const at::Tensor& tensor);

  struct Outputs;

 private:
  std::unique_ptr<Outputs> own_;
  Outputs* before_;
};

// `output`, which was computed without recording, as the result of an op with this backward.
// Differentiable once: a second derivative throws StateError.
at::Tensor with_backward(const at::Tensor& output, Backward backward);

// The same for an op with several outputs. `grads`: gradients of the outputs in their order. Some,
// but not all, may be undefined because nothing came back; they need not be contiguous.
struct JointBackward {
  const char* op;
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> saved;
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& grads,
                                        const std::vector<at::Tensor>& saved,
                                        const std::vector<bool>& wanted)>
      gradients;
};
std::vector<at::Tensor> with_backward(const std::vector<at::Tensor>& outputs,
                                      JointBackward backward);

}  // namespace convoy::kernels
