// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/integer_weight/integer_weight.h"

#include <limits>

#include "convoy/core/base/error.h"

namespace convoy::kernels {
namespace {

constexpr double kLargestInt8 = 127.0;
constexpr double kLowestInt4 = -8.0;
constexpr double kLargestInt4 = 7.0;
// This many rows are widened at a time: a head of a large vocabulary is never widened as a whole.
constexpr int64_t kRowsAtOnce = 4096;

struct Parts {
  at::Tensor codes_OI;
  at::Tensor scales_OG;
  at::Tensor offsets_OG;
};

// 1 / scale, 0 for a group of zeros.
at::Tensor steps_per_unit(const at::Tensor& scales) {
  return scales.reciprocal().masked_fill_(scales.eq(0), 0.0);
}

at::Tensor round_to_bf16(const at::Tensor& values) {
  return values.to(at::kBFloat16).to(at::kFloat);
}

Parts to_int8(const at::Tensor& wide_OI) {
  const at::Tensor scales = wide_OI.abs().amax({1}, true).div_(kLargestInt8);
  const at::Tensor codes = wide_OI.mul(steps_per_unit(scales))
                               .round_()
                               .clamp_(-kLargestInt8, kLargestInt8)
                               .to(at::kChar);
  return {codes, scales, {}};
}

// Groups of the inputs, the last one filled up with its own last value.
at::Tensor in_groups(const at::Tensor& wide_OI, int64_t group) {
  const int64_t missing = (group - wide_OI.size(1) % group) % group;
  at::Tensor whole = wide_OI;
  if (missing > 0)
    whole = at::cat(
        {wide_OI, wide_OI.narrow(1, wide_OI.size(1) - 1, 1).expand({wide_OI.size(0), missing})}, 1);
  return whole.view({wide_OI.size(0), -1, group});
}

Parts to_int4(const at::Tensor& wide_OI, const IntegerFormat& format) {
  const at::Tensor groups = in_groups(wide_OI, format.group_inputs);
  at::Tensor scales;
  at::Tensor offsets;
  if (format.weight == WeightFormat::Int4Zero) {
    const at::Tensor lowest = groups.amin({2}, true);
    scales = round_to_bf16(groups.amax({2}, true).sub_(lowest).div_(kLargestInt4 - kLowestInt4));
    offsets = round_to_bf16(lowest - scales * kLowestInt4);
  } else {
    // The value that is largest by magnitude takes the lowest code, which has no positive
    // counterpart.
    const at::Tensor place = groups.abs().argmax(2, true);
    scales = round_to_bf16(groups.gather(2, place).div_(kLowestInt4));
  }
  const at::Tensor moved = offsets.defined() ? groups.sub(offsets) : groups;
  const at::Tensor codes =
      moved.mul(steps_per_unit(scales)).round_().clamp_(kLowestInt4, kLargestInt4);
  return {
      codes.to(at::kChar).view({wide_OI.size(0), -1}).narrow(1, 0, wide_OI.size(1)).contiguous(),
      scales.squeeze(2), offsets.defined() ? offsets.squeeze(2) : offsets};
}

}  // namespace

at::Tensor IntegerWeight::values() const {
  const at::Tensor steps = codes_OI.to(at::kFloat);
  if (format.weight == WeightFormat::Int8) return steps.mul_(scales_OG);
  const auto by_input = [&](const at::Tensor& of_OG) {
    return of_OG.repeat_interleave(format.group_inputs, 1).narrow(1, 0, codes_OI.size(1));
  };
  steps.mul_(by_input(scales_OG));
  return offsets_OG.defined() ? steps.add_(by_input(offsets_OG)) : steps;
}

at::Tensor rounded_activations(const at::Tensor& x_TI) {
  constexpr int64_t kBlock = 32;
  const int64_t inputs = x_TI.size(1);
  const at::Tensor blocks =
      at::constant_pad_nd(x_TI.to(at::kFloat), {0, (kBlock - inputs % kBlock) % kBlock})
          .view({x_TI.size(0), -1, kBlock});
  const at::Tensor most = blocks.abs().amax({2}, true);
  at::Tensor scales = most.div(kLargestInt8);
  const at::Tensor vanishes = scales.lt(std::numeric_limits<float>::min());
  scales.masked_fill_(most.isfinite().logical_not(), NAN).masked_fill_(vanishes, 0.0);
  const at::Tensor steps = most.reciprocal().mul_(kLargestInt8).masked_fill_(vanishes, 0.0);
  return blocks.mul(steps).round_().mul_(scales).flatten(1).narrow(1, 0, inputs);
}

IntegerWeight quantize_weight(const at::Tensor& weight_OI, const IntegerFormat& format) {
  CONVOY_INVARIANT(
      weight_OI.dim() == 2 && weight_OI.numel() > 0 &&
          (weight_OI.scalar_type() == at::kFloat || weight_OI.scalar_type() == at::kBFloat16),
      "quantize_weight needs fp32 or bf16 [O, I]");
  const int64_t group = format.group_inputs;
  if (format.weight != WeightFormat::Int8 && group != 32 && group != 64 && group != 128)
    throw ConfigError(
        fmt::format("int4 weights need groups of 32, 64 or 128 inputs, found {}", group),
        {.hint = "take --weights int8"});
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> codes, scales, offsets;
  for (int64_t row = 0; row < weight_OI.size(0); row += kRowsAtOnce) {
    const at::Tensor wide_OI =
        weight_OI.narrow(0, row, std::min(kRowsAtOnce, weight_OI.size(0) - row)).to(at::kFloat);
    if (!wide_OI.isfinite().all().item<bool>())
      throw DataError("a weight that is not finite cannot be quantised",
                      {.hint = "fetch the model again: it holds NaN or infinity"});
    const Parts parts =
        format.weight == WeightFormat::Int8 ? to_int8(wide_OI) : to_int4(wide_OI, format);
    codes.push_back(parts.codes_OI);
    scales.push_back(parts.scales_OG);
    if (parts.offsets_OG.defined()) offsets.push_back(parts.offsets_OG);
  }
  return {.format = format,
          .dtype = weight_OI.scalar_type(),
          .codes_OI = at::cat(codes),
          .scales_OG = at::cat(scales),
          .offsets_OG = offsets.empty() ? at::Tensor() : at::cat(offsets)};
}

}  // namespace convoy::kernels
