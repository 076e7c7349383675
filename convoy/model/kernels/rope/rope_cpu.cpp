// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/rope/rope_ops.h"
#include "convoy/model/kernels/simd/element.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

at::Tensor rotate(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                  const at::Tensor& positions_T, float direction) {
  const int64_t tokens = x_THE.size(0);
  const int64_t heads = x_THE.size(1);
  const int64_t half = x_THE.size(2) / 2;
  at::Tensor y_THE = at::empty(x_THE.sizes(), x_THE.options());
  const float* cos = cos_PE.const_data_ptr<float>();
  const float* sin = sin_PE.const_data_ptr<float>();
  const int64_t* positions = positions_T.const_data_ptr<int64_t>();
  with_element(x_THE, "rope", [&](auto element) {
    using Element = decltype(element);
    const auto* from = x_THE.const_data_ptr<Element>();
    auto* to = y_THE.mutable_data_ptr<Element>();
    for_rows(tokens, heads * 2 * half, [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        const int64_t table = positions[token] * half;
        for (int64_t head = 0; head < heads; ++head) {
          simd_kernels<Element>().rotate(from + token * x_THE.stride(0) + head * x_THE.stride(1),
                                         cos + table, sin + table,
                                         to + (token * heads + head) * 2 * half, half, direction);
        }
      }
    });
  });
  return y_THE;
}

}  // namespace

const RopeOps kRopeCpu = {rotate, rotate_one_by_one<rotate>};

}  // namespace convoy::kernels
