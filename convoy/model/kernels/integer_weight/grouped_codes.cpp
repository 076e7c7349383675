// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/integer_weight/grouped_codes.h"

#include <ATen/ATen.h>

#include <bit>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/integer_weight/grouped_codes_launch.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kWordCodes = 8;
constexpr int64_t kVectorCodes = 32;
// Outputs that are converted at a time. Codes are widened to int32 meanwhile, so a whole weight
// would take too much memory.
constexpr int64_t kOutputsAtOnce = 4096;

at::Tensor words_of(const at::Tensor& codes_OI) {
  const int64_t missing = (kVectorCodes - codes_OI.size(1) % kVectorCodes) % kVectorCodes;
  const at::Tensor raised = at::constant_pad_nd(codes_OI, {0, missing})
                                .to(at::kInt)
                                .add_(8)
                                .view({codes_OI.size(0), -1, kWordCodes});
  at::Tensor words = at::zeros({raised.size(0), raised.size(1)}, raised.options());
  for (int64_t place = 0; place < kWordCodes; ++place)
    words.bitwise_or_(
        raised.select(2, place).bitwise_left_shift(at::Scalar(place / 2 * 4 + place % 2 * 16)));
  return words;
}

}  // namespace

GroupedCodes::GroupedCodes(const IntegerWeight& weight)
    : inputs(weight.codes_OI.size(1)), group_inputs(weight.format.group_inputs) {
  CONVOY_INVARIANT(weight.format.weight != WeightFormat::Int8, "grouped codes have 4 bits");
  std::vector<at::Tensor> words;
  const int64_t outputs = weight.codes_OI.size(0);
  for (int64_t output = 0; output < outputs; output += kOutputsAtOnce)
    words.push_back(
        words_of(weight.codes_OI.narrow(0, output, std::min(kOutputsAtOnce, outputs - output))));
  words_OW = at::cat(words);
  const at::Tensor offsets_OG =
      weight.offsets_OG.defined() ? weight.offsets_OG : at::zeros_like(weight.scales_OG);
  scales_OG2 = at::stack({weight.scales_OG, offsets_OG}, 2).to(at::kBFloat16);
}

at::Tensor GroupedCodes::decode(at::ScalarType dtype) const {
  const at::Tensor values = at::empty({words_OW.size(0), inputs}, words_OW.options().dtype(dtype));
  const gpu::DecodeGroupsLaunch launched = {
      .words = static_cast<const uint32_t*>(words_OW.const_data_ptr()),
      .scales = static_cast<const uint32_t*>(scales_OG2.const_data_ptr()),
      .values = values.mutable_data_ptr(),
      .count = static_cast<uint64_t>(values.numel()),
      .num_vectors = inputs % kWordCodes == 0 ? vectors_of({values}) : 0,
      .inputs = static_cast<uint64_t>(inputs),
      .row_words = static_cast<uint64_t>(words_OW.size(1)),
      .groups = static_cast<uint64_t>(scales_OG2.size(1)),
      .group_bits = static_cast<uint64_t>(std::countr_zero(static_cast<uint64_t>(group_inputs)))};
  launch(values, kernel_name("decode_groups", dtype),
         blocks_for_elements(values.numel(), elements_per_vector(values)), launched);
  return values;
}

}  // namespace convoy::kernels
