// SPDX-License-Identifier: Apache-2.0
//
// The gated delta rule on CPUs. Forward goes token by token: a panel of columns of a state fits the
// nearest cache, where two passes over it per token cost no more than the products of chunks would
// (arXiv 2412.06464), and no number depends on how tokens are cut into passes. Backward goes by
// tiles of tokens, whose products are matrices. Tasks are heads of rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <type_traits>
#include <vector>

#include "convoy/model/kernels/gated_delta_rule/gated_delta_rule_ops.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels::delta_rule {

inline constexpr int64_t kTile = kPanelColumns;  // tokens: a tile transposed is one panel

struct Shape {
  int64_t heads = 0;
  int64_t key_heads = 0;
  int64_t key_features = 0;    // E
  int64_t value_features = 0;  // F
  int64_t panels = 0;          // a state in groups of kPanelColumns columns

  explicit Shape(const DeltaRuleTensors& inputs)
      : heads(inputs.v_THF.size(1)),
        key_heads(inputs.k_TKE.size(1)),
        key_features(inputs.k_TKE.size(2)),
        value_features(inputs.v_THF.size(2)),
        panels(round_up(value_features, kPanelColumns) / kPanelColumns) {}

  int64_t group() const { return heads / key_heads; }
  int64_t panel_state() const { return key_features * kPanelColumns; }
  int64_t head_state() const { return panels * panel_state(); }  // floats, in panels
  // Columns of panel `panel` that there are.
  int64_t columns_of(int64_t panel) const {
    return std::min(kPanelColumns, value_features - panel * kPanelColumns);
  }
};

// Tokens [begin, begin + count) of the batch.
struct TokenRange {
  int64_t begin = 0;
  int64_t count = 0;
};

// Rows with tokens, the longest first, so that threads end together.
std::vector<int64_t> rows_by_length(const RowIndex& rows);

// Vectors [count, E] of one head divided by their length sqrt(sum of squares + 1e-6), times
// `scale`; `inverse_lengths` [count] may be null.
template <class Element>
void unit_vectors(const at::Tensor& x_TKE, TokenRange tokens, int64_t head, float scale,
                  float* to_TE, float* inverse_lengths);
float query_scale(const Shape& shape);  // 1 / sqrt(E)

// Panel `panel` of one head of values or gradients as floats [count, kPanelColumns] `to_stride`
// apart; 0 in columns that there are not.
template <class Element>
void read_panel(const at::Tensor& x_THF, TokenRange tokens, int64_t head, int64_t panel, float* to,
                int64_t to_stride);
template <class Element>
void write_panel(const float* from, int64_t from_stride, TokenRange tokens, int64_t head,
                 int64_t panel, const at::Tensor& x_THF);

// A panel of one head as rows of floats.
template <class Float>
struct PanelRows {
  Float* first = nullptr;
  int64_t stride = 0;  // from token to token
};
// Whether panels are read and written where they lie: fp32 with all columns.
template <class Element>
bool lies_as_floats(const at::Tensor& x_THF, int64_t panel) {
  return std::is_same_v<Element, float> && (panel + 1) * kPanelColumns <= x_THF.size(2);
}
// The panel where it lies, or its copy in `copy` [count, kPanelColumns].
template <class Element>
PanelRows<const float> panel_rows(const at::Tensor& x_THF, TokenRange tokens, int64_t head,
                                  int64_t panel, float* copy);

// `states_RHEF` undefined: every row begins with zeros, and its last state is dropped. Otherwise
// row r takes and replaces states[slots[r]].
at::Tensor run_forward(const DeltaRuleTensors& inputs, const RowIndex& rows,
                       const at::Tensor& states_SHEF, const std::vector<int64_t>& slots);
// `grad_THF` is contiguous.
DeltaRuleTensors run_backward(const at::Tensor& grad_THF, const DeltaRuleTensors& inputs,
                              const RowIndex& rows);

}  // namespace convoy::kernels::delta_rule
