// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/quantized_weight/quantized_panels.h"

#include <array>

#include "convoy/base/error.h"

namespace convoy::kernels {
namespace {

constexpr float kLowestInt4 = -8.0f;
using Columns = std::array<float, kPanelColumns>;

// [O, N] -> [panels, N, 32], columns beyond O zero.
at::Tensor in_panels(const at::Tensor& of_ON) {
  const int64_t missing = round_up(of_ON.size(0), kPanelColumns) - of_ON.size(0);
  const at::Tensor whole = at::constant_pad_nd(of_ON, {0, 0, 0, missing});
  return whole.view({-1, kPanelColumns, of_ON.size(1)}).transpose(1, 2).contiguous();
}

Columns columns_at(const at::Tensor& of_PG, int64_t place) {
  Columns values;
  simd_kernels<at::BFloat16>().to_float(
      of_PG.const_data_ptr<at::BFloat16>() + place * kPanelColumns, values.data(), kPanelColumns);
  return values;
}

}  // namespace

QuantizedPanels::QuantizedPanels(const QuantizedWeight& weight)
    : format_(weight.format),
      dtype_(weight.dtype),
      inner_(weight.codes_OI.size(1)),
      columns_(weight.codes_OI.size(0)) {
  const at::Tensor codes = in_panels(weight.codes_OI);
  if (is_int8()) {
    codes_ = codes;
    scales_ = in_panels(weight.scales_OG);
    return;
  }
  const int64_t half = kPanelColumns / 2;
  codes_ = codes.narrow(2, 0, half).bitwise_or(codes.narrow(2, half, half) * 16);
  scales_ = in_panels(weight.scales_OG).to(at::kBFloat16);
  if (format_.weight == WeightFormat::Int4Zero)
    offsets_ = in_panels(weight.offsets_OG).to(at::kBFloat16);
}

int64_t QuantizedPanels::num_groups() const {
  return (inner_ + format_.group_inputs - 1) / format_.group_inputs;
}

template <class Element>
void QuantizedPanels::unpack_groups(int64_t panel, int64_t k, int64_t count, Element* to) const {
  const int64_t bytes_per_k = kPanelColumns / 2;
  const auto* codes = codes_.const_data_ptr<uint8_t>() + (panel * inner_ + k) * bytes_per_k;
  for (int64_t at = 0; at < count; at += format_.group_inputs) {
    const int64_t place = panel * num_groups() + (k + at) / format_.group_inputs;
    const Columns scales = columns_at(scales_, place);
    Columns offsets;
    if (offsets_.defined()) {
      offsets = columns_at(offsets_, place);
    } else {
      for (int64_t column = 0; column < kPanelColumns; ++column)
        offsets[column] = kLowestInt4 * scales[column];
    }
    simd_kernels<Element>().unpack_nibbles(codes + at * bytes_per_k, scales.data(), offsets.data(),
                                           std::min(format_.group_inputs, count - at),
                                           to + at * kPanelColumns);
  }
}

template <class Element>
void QuantizedPanels::unpack(int64_t column, int64_t k, const GemmShape& block, Element* to) const {
  const int64_t stride = panel_elements<Element>(block.k);
  const int64_t end = column + round_up(block.n, kPanelColumns);
  for (; column < end; column += kPanelColumns, to += stride) {
    const int64_t panel = column / kPanelColumns;
    if (is_int8())
      simd_kernels<Element>().unpack_bytes(
          codes_.const_data_ptr<int8_t>() + (panel * inner_ + k) * kPanelColumns,
          scales_.const_data_ptr<float>() + panel * kPanelColumns, block.k, to);
    else
      unpack_groups(panel, k, block.k, to);
  }
}

at::Tensor QuantizedPanels::values() const {
  const at::Tensor values_OI = at::empty({columns_, inner_}, dtype_);
  const at::Tensor panel_IC = at::empty({inner_, kPanelColumns});
  for (int64_t column = 0; column < columns_; column += kPanelColumns) {
    const int64_t width = std::min(kPanelColumns, columns_ - column);
    unpack(column, 0, {.m = 0, .n = width, .k = inner_}, panel_IC.mutable_data_ptr<float>());
    values_OI.narrow(0, column, width).copy_(panel_IC.narrow(1, 0, width).t());
  }
  return values_OI;
}

template void QuantizedPanels::unpack(int64_t, int64_t, const GemmShape&, float*) const;
template void QuantizedPanels::unpack(int64_t, int64_t, const GemmShape&, at::BFloat16*) const;

}  // namespace convoy::kernels
