// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/gated_delta_rule/delta_rule_heads.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace convoy::kernels::delta_rule {

std::vector<int64_t> rows_by_length(const RowIndex& rows) {
  std::vector<int64_t> order;
  for (int64_t row = 0; row < rows.num_rows(); ++row)
    if (rows.length(row) > 0) order.push_back(row);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return rows.length(a) > rows.length(b); });
  return order;
}

float query_scale(const Shape& shape) {
  return 1.0f / std::sqrt(static_cast<float>(shape.key_features));
}

template <class Element>
void unit_vectors(const at::Tensor& x_TKE, TokenRange tokens, int64_t head, float scale,
                  float* to_TE, float* inverse_lengths) {
  constexpr float kEpsilon = 1e-6f;
  const int64_t features = x_TKE.size(2), stride = x_TKE.stride(0);
  const Element* from =
      x_TKE.const_data_ptr<Element>() + tokens.begin * stride + head * x_TKE.stride(1);
  const auto& loops = simd_kernels<float>();
  for (int64_t token = 0; token < tokens.count; ++token, from += stride, to_TE += features) {
    const float* floats = to_TE;
    if constexpr (std::is_same_v<Element, float>)
      floats = from;
    else
      simd_kernels<Element>().to_float(from, to_TE, features);
    const float inverse = 1.0f / std::sqrt(loops.dot(floats, floats, features) + kEpsilon);
    loops.round_row(floats, to_TE, features, inverse * scale);
    if (inverse_lengths != nullptr) inverse_lengths[token] = inverse;
  }
}

template <class Element>
void read_panel(const at::Tensor& x_THF, TokenRange tokens, int64_t head, int64_t panel, float* to,
                int64_t to_stride) {
  const int64_t stride = x_THF.stride(0), first = panel * kPanelColumns;
  const int64_t columns = std::min(kPanelColumns, x_THF.size(2) - first);
  const Element* from =
      x_THF.const_data_ptr<Element>() + tokens.begin * stride + head * x_THF.stride(1) + first;
  for (int64_t token = 0; token < tokens.count; ++token, from += stride, to += to_stride) {
    simd_kernels<Element>().to_float(from, to, columns);
    std::fill(to + columns, to + kPanelColumns, 0.0f);
  }
}

template <class Element>
PanelRows<const float> panel_rows(const at::Tensor& x_THF, TokenRange tokens, int64_t head,
                                  int64_t panel, float* copy) {
  if (lies_as_floats<Element>(x_THF, panel))
    return {x_THF.const_data_ptr<float>() + tokens.begin * x_THF.stride(0) +
                head * x_THF.stride(1) + panel * kPanelColumns,
            x_THF.stride(0)};
  read_panel<Element>(x_THF, tokens, head, panel, copy, kPanelColumns);
  return {copy, kPanelColumns};
}

template <class Element>
void write_panel(const float* from, int64_t from_stride, TokenRange tokens, int64_t head,
                 int64_t panel, const at::Tensor& x_THF) {
  const int64_t stride = x_THF.stride(0), first = panel * kPanelColumns;
  const int64_t columns = std::min(kPanelColumns, x_THF.size(2) - first);
  Element* to =
      x_THF.mutable_data_ptr<Element>() + tokens.begin * stride + head * x_THF.stride(1) + first;
  for (int64_t token = 0; token < tokens.count; ++token, from += from_stride, to += stride)
    simd_kernels<Element>().round_row(from, to, columns, 1.0f);
}

#define CONVOY_DELTA_RULE_OF(Element)                                                         \
  template void unit_vectors<Element>(const at::Tensor&, TokenRange, int64_t, float, float*,  \
                                      float*);                                                \
  template void read_panel<Element>(const at::Tensor&, TokenRange, int64_t, int64_t, float*,  \
                                    int64_t);                                                 \
  template PanelRows<const float> panel_rows<Element>(const at::Tensor&, TokenRange, int64_t, \
                                                      int64_t, float*);                       \
  template void write_panel<Element>(const float*, int64_t, TokenRange, int64_t, int64_t,     \
                                     const at::Tensor&);
CONVOY_DELTA_RULE_OF(float)
CONVOY_DELTA_RULE_OF(c10::BFloat16)
#undef CONVOY_DELTA_RULE_OF

}  // namespace convoy::kernels::delta_rule
