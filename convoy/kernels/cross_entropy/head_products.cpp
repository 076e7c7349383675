// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/cross_entropy/head_products.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kLogitsPerChunk = 1 << 26;
constexpr int64_t kMostRows = 4096;

constexpr WideProducts kWidened = {[](const at::Tensor& a, const at::Tensor& b) {
                                     return at::mm(a.to(at::kFloat), b.to(at::kFloat));
                                   },
                                   [](at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
                                     sum.addmm_(a.to(at::kFloat), b.to(at::kFloat));
                                   }};

// cuBLAS writes fp32 from bf16 operands: no widened copy of the weight is made.
constexpr WideProducts kMixed = {[](const at::Tensor& a, const at::Tensor& b) {
                                   return a.scalar_type() == at::kFloat ? at::mm(a, b)
                                                                        : at::mm(a, b, at::kFloat);
                                 },
                                 [](at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
                                   if (a.scalar_type() == at::kFloat)
                                     sum.addmm_(a, b);
                                   else
                                     sum.add_(at::mm(a, b, at::kFloat));
                                 }};

}  // namespace

int64_t logit_rows_per_chunk(int64_t vocab) {
  return std::clamp<int64_t>(kLogitsPerChunk / std::max<int64_t>(vocab, 1), 1, kMostRows);
}

const WideProducts& wide_products(const at::Tensor& tensor) {
  return tensor.is_cuda() ? kMixed : kWidened;
}

}  // namespace convoy::kernels
