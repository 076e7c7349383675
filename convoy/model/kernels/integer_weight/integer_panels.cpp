// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/integer_weight/integer_panels.h"

#include "convoy/model/kernels/simd/element.h"
#include "convoy/model/kernels/simd/panel_memory.h"

namespace convoy::kernels {
namespace {

at::Tensor kept(const at::Tensor& panels, at::ScalarType dtype) {
  return empty_panels(panels.sizes(), dtype).copy_(panels);
}

// [O, N] -> [panels, N, 32], columns beyond O zero.
at::Tensor in_panels(const at::Tensor& of_ON) {
  const int64_t missing = round_up(of_ON.size(0), kPanelColumns) - of_ON.size(0);
  const at::Tensor whole = at::constant_pad_nd(of_ON, {0, 0, 0, missing});
  return whole.view({-1, kPanelColumns, of_ON.size(1)}).transpose(1, 2).contiguous();
}

// Joins the codes of `per_word` inputs to a word, in which the code at `place` begins at bit
// shift(place). One output panel at a time, because codes are widened to int32.
template <class Shift>
at::Tensor in_words(const at::Tensor& codes_OI, int64_t per_word, int32_t mask,
                    const Shift& shift) {
  const int64_t inner = round_up(codes_OI.size(1), per_word);
  const int64_t panels = round_up(codes_OI.size(0), kPanelColumns) / kPanelColumns;
  at::Tensor words = empty_panels({panels, inner / per_word, kPanelColumns}, at::kInt);
  for (int64_t panel = 0; panel < panels; ++panel) {
    const int64_t first = panel * kPanelColumns;
    const at::Tensor codes_OI_part =
        codes_OI.narrow(0, first, std::min(kPanelColumns, codes_OI.size(0) - first));
    const at::Tensor padded =
        at::constant_pad_nd(codes_OI_part, {0, inner - codes_OI.size(1)}).to(at::kInt);
    const at::Tensor codes =
        in_panels(padded).view({-1, per_word, kPanelColumns}).bitwise_and(mask);
    at::Tensor joined = at::zeros({inner / per_word, kPanelColumns}, at::kInt);
    for (int64_t place = 0; place < per_word; ++place)
      joined.bitwise_or_(codes.select(1, place).bitwise_left_shift(at::Scalar(shift(place))));
    words.select(0, panel).copy_(joined);
  }
  return words;
}

}  // namespace

IntegerPanels::IntegerPanels(const IntegerWeight& weight)
    : format_(weight.format),
      dtype_(weight.dtype),
      inner_(weight.codes_OI.size(1)),
      columns_(weight.codes_OI.size(0)),
      num_groups_((inner_ + group_inputs() - 1) / group_inputs()),
      words_per_panel_(round_up(inner_, codes_per_word()) / codes_per_word() * kPanelColumns),
      words_(is_int8()
                 ? in_words(weight.codes_OI, 4, 0xff, [](int64_t place) { return 8 * place; })
                 : in_words(weight.codes_OI, 8, 0xf,
                            [](int64_t place) { return 4 * (place / 2) + 16 * (place % 2); })),
      scales_(kept(in_panels(weight.scales_OG), is_int8() ? at::kFloat : at::kBFloat16)),
      codes_(reinterpret_cast<const uint32_t*>(words_.const_data_ptr<int32_t>())),
      scale_values_(scales_.const_data_ptr()) {
  if (!weight.offsets_OG.defined()) return;
  offsets_ = kept(in_panels(weight.offsets_OG), at::kBFloat16);
  offset_values_ = offsets_.const_data_ptr<at::BFloat16>();
}

at::Tensor IntegerPanels::group_sums(const at::Tensor& a_MK) const {
  if (!offsets_.defined() || rounds_rows()) return {};
  const at::Tensor sums_MG = at::empty({a_MK.size(0), num_groups_}, at::kFloat);
  with_element(a_MK, "integer_weight", [&](auto element) {
    using Element = decltype(element);
    const auto& loops = simd_kernels<Element>();
    const auto* rows = a_MK.const_data_ptr<Element>();
    auto* sums = sums_MG.mutable_data_ptr<float>();
    for_rows(a_MK.size(0), inner_, [&, stride = a_MK.stride(0)](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        loops.group_sums(rows + row * stride, inner_, group_inputs(), sums + row * num_groups_);
    });
  });
  return sums_MG;
}

at::Tensor IntegerPanels::rounded_rows(const at::Tensor& a_MK) const {
  if (!rounds_rows()) return {};
  const int64_t blocks = blocks_per_row();
  const at::Tensor rounded =
      at::empty({a_MK.size(0), blocks * static_cast<int64_t>(sizeof(RoundedBlock))}, at::kByte);
  with_element(a_MK, "integer_weight", [&](auto element) {
    using Element = decltype(element);
    const IntegerDots<Element>& loops = integer_dots<Element>();
    const auto round = is_int8() ? loops.round_for_bytes : loops.round_for_nibbles;
    const auto* rows = a_MK.const_data_ptr<Element>();
    auto* to = reinterpret_cast<RoundedBlock*>(rounded.mutable_data_ptr<uint8_t>());
    for_rows(a_MK.size(0), inner_, [&, stride = a_MK.stride(0)](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        round(rows + row * stride, inner_, to + row * blocks);
    });
  });
  return rounded;
}

template <class Element>
void IntegerPanels::multiply(const Rows<Element>& rows, int64_t column, int64_t columns, float* c,
                             int64_t stride_c, bool accumulate, Scratch& scratch) const {
  const auto& loops = simd_kernels<Element>();
  const auto& dots = integer_dots<Element>();
  const ByteRows rounded{rows.rounded, blocks_per_row()};
  const int64_t panel = column / kPanelColumns;
  const CodedView codes{codes_ + panel * words_per_panel_, words_per_panel_};
  const int64_t first_scale = panel * num_groups_ * kPanelColumns;
  const GemmShape shape{rows.count, columns, inner_};
  if (is_int8()) {
    scratch.resize(rows.count * stride_c);
    if (rounds_rows())
      dots.multiply_bytes(rounded, codes, {}, scratch.data(), stride_c, shape, false);
    else
      loops.multiply_bytes(rows.a, rows.stride_a, codes, scratch.data(), stride_c, shape, false);
    return loops.add_scaled(scratch.data(), static_cast<const float*>(scale_values_) + first_scale,
                            c, stride_c, rows.count, round_up(columns, kPanelColumns), accumulate);
  }
  NibbleGroups groups{.scales = static_cast<const at::BFloat16*>(scale_values_) + first_scale,
                      .panel_stride = num_groups_ * kPanelColumns,
                      .inputs = group_inputs()};
  if (offset_values_ != nullptr) {
    groups.offsets = offset_values_ + first_scale;
    groups.row_sums = rows.group_sums;
    groups.row_sums_stride = num_groups_;
  }
  if (rounds_rows())
    return dots.multiply_nibbles(rounded, codes, groups, c, stride_c, shape, accumulate);
  loops.multiply_nibbles(rows.a, rows.stride_a, codes, groups, c, stride_c, shape, accumulate);
}

at::Tensor IntegerPanels::values() const {
  const at::Tensor values_OI = at::empty({columns_, inner_}, dtype_);
  std::vector<float> codes(inner_ * kPanelColumns);
  const auto unpack =
      is_int8() ? simd_kernels<float>().unpack_bytes : simd_kernels<float>().unpack_nibbles;
  const auto by_k = [&](const at::Tensor& of_PGC, int64_t panel) {
    return of_PGC.select(0, panel)
        .to(at::kFloat)
        .repeat_interleave(group_inputs(), 0)
        .narrow(0, 0, inner_);
  };
  for (int64_t panel = 0; panel * kPanelColumns < columns_; ++panel) {
    unpack(codes_ + panel * words_per_panel_, inner_, codes.data());
    at::Tensor values_IC =
        at::from_blob(codes.data(), {inner_, kPanelColumns}).mul(by_k(scales_, panel));
    if (offsets_.defined()) values_IC.add_(by_k(offsets_, panel));
    const int64_t width = std::min(kPanelColumns, columns_ - panel * kPanelColumns);
    values_OI.narrow(0, panel * kPanelColumns, width).copy_(values_IC.narrow(1, 0, width).t());
  }
  return values_OI;
}

template void IntegerPanels::multiply(const Rows<float>&, int64_t, int64_t, float*, int64_t, bool,
                                      Scratch&) const;
template void IntegerPanels::multiply(const Rows<at::BFloat16>&, int64_t, int64_t, float*, int64_t,
                                      bool, Scratch&) const;

}  // namespace convoy::kernels
