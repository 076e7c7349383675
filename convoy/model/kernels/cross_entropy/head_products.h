// SPDX-License-Identifier: Apache-2.0
//
// The parts of linear_cross_entropy that are the same on every device of LibTorch: its results, and
// its matrix products over chunks of rows, which bound the memory of logits.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "convoy/model/kernels/cross_entropy/linear_cross_entropy_ops.h"

namespace convoy::kernels {

// Allocates the requested gradients: the gradient of the hidden states without values, the gradient
// of the weight with zeros.
HeadLoss empty_head_loss(const at::Tensor& hidden_ND, const at::Tensor& weight_VD,
                         WantedGradients wanted);
// The same for a gradient of the weight that WideProducts::add_product() sums. If there are rows,
// this gradient is undefined until the first product.
HeadLoss head_loss_to_add(const at::Tensor& hidden_ND, const at::Tensor& weight_VD,
                          WantedGradients wanted);
// Allocates the losses without values.
LabelLosses empty_label_losses(const at::Tensor& hidden_ND);

// Products of two tensors of the model's type with sums and result in fp32.
struct WideProducts {
  at::Tensor (*multiply)(const at::Tensor& a, const at::Tensor& b);
  // An undefined sum becomes the product.
  void (*add_product)(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);
};

// The fastest products of the tensor's device.
const WideProducts& wide_products(const at::Tensor& tensor);

// Rows with logits in memory at the same time. The fp32 logits of a chunk take 256 MiB. Where the
// weight trains, the logits take at least as much memory as the weight's gradient, which is read
// and written for each chunk. A chunk has at most 4,096 rows, in whole tiles of a GPU's products.
struct LogitChunk {
  int64_t begin;  // first row of the chunk
  int64_t count;
  at::Tensor hidden_CD;
  at::Tensor labels_C;
  at::Tensor logits_CV;  // fp32; may be overwritten
};

// logit_cap * tanh(logits / logit_cap) by LibTorch's ops, in the memory of fp32 logits.
at::Tensor capped_by_ops(const at::Tensor& logits, double logit_cap);

// Calls `body` for every chunk in turn, with logits in the head's form.
void for_logit_chunks(const at::Tensor& hidden_ND, const OutputHead& head,
                      const at::Tensor& labels_N, WantedGradients wanted,
                      const std::function<void(LogitChunk& chunk)>& body);

}  // namespace convoy::kernels
