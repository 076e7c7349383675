// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/piece_tensor.h"

#include <ATen/core/boxing/KernelFunction.h>
#include <torch/library.h>

#include "convoy/core/base/error.h"

namespace convoy::detail {
namespace {

// A dispatch key that LibTorch reserves for code outside of it and does not use itself.
constexpr c10::DispatchKey kPiece = c10::DispatchKey::Fake;

void refuse(const c10::OperatorHandle& op, c10::Stack*) {
  throw ConfigError(
      fmt::format("{} of the tensors of FullyShardedDataParallel::parameters() is not that of the "
                  "whole parameters: each rank holds other pieces",
                  op.schema().name()),
      {.hint = "clip gradients by the wrapper's clip_grad_norm() in place of "
               "torch::nn::utils::clip_grad_norm_; take an optimizer that treats each element by "
               "itself, not LBFGS; for figures of your own add up squares over ranks"});
}

void keep_piece(const c10::OperatorHandle& op, c10::DispatchKeySet keys, c10::Stack* stack) {
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kPiece), stack);
  stack->back() = as_piece(stack->back().toTensor());
}

struct PieceOperators {
  PieceOperators()
      : all(torch::Library::IMPL, "_", kPiece, __FILE__, __LINE__),
        aten(torch::Library::IMPL, "aten", kPiece, __FILE__, __LINE__) {
    all.fallback(torch::CppFunction::makeFallthrough());
    for (const char* name :
         {"norm.Scalar", "norm.ScalarOpt_dtype", "norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype",
          "linalg_vector_norm", "_foreach_norm.Scalar", "max", "amax", "aminmax", "cat", "dot",
          "vdot"})
      aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&refuse>());
    aten.impl("abs", torch::CppFunction::makeFromBoxedFunction<&keep_piece>());
  }
  torch::Library all;
  torch::Library aten;
};

}  // namespace

at::Tensor as_piece(const at::Tensor& values) {
  static const PieceOperators registered;
  at::Tensor piece =
      at::detail::make_tensor<at::TensorImpl>(at::TensorImpl::VIEW, at::Storage(values.storage()),
                                              values.key_set().add(kPiece), values.dtype());
  piece.unsafeGetTensorImpl()->set_sizes_and_strides(values.sizes(), values.strides(),
                                                     values.storage_offset());
  return piece;
}

}  // namespace convoy::detail
