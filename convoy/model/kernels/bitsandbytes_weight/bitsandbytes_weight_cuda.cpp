// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight_launch.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight_ops.h"
#include "convoy/model/kernels/bitsandbytes_weight/code_tables.h"
#include "convoy/model/kernels/cuda/launch.h"

namespace convoy::kernels {
namespace {

gpu::DecodeLaunch launch_of(const BitsandbytesWeight& weight, const at::Tensor& values) {
  gpu::DecodeLaunch launched = {.codes = static_cast<const uint8_t*>(weight.codes.const_data_ptr()),
                                .absmax = weight.absmax.const_data_ptr(),
                                .values = values.mutable_data_ptr(),
                                .count = static_cast<uint64_t>(values.numel()),
                                .num_vectors = vectors_of({values}),
                                .width = static_cast<uint64_t>(weight.shape.back())};
  if (weight.format.type == CodeType::Int8) {
    // All values of a vector must share one absmax.
    if (weight.shape.back() % elements_per_vector(values) != 0) launched.num_vectors = 0;
    return launched;
  }
  launched.block_bits =
      static_cast<uint32_t>(std::countr_zero(static_cast<uint64_t>(weight.format.block)));
  const NibbleTable& table = weight.format.type == CodeType::Nf4 ? nf4_table() : fp4_table();
  std::copy(table.begin(), table.end(), launched.table);
  if (!weight.format.nested) return launched;
  launched.nested_absmax = weight.nested_absmax.const_data_ptr<float>();
  launched.nested_offset = weight.nested_offset.const_data_ptr<float>();
  launched.nested_table = weight.nested_table.const_data_ptr<float>();
  return launched;
}

at::Tensor decode(const BitsandbytesWeight& weight, at::ScalarType dtype) {
  const at::Tensor values = at::empty(weight.shape, weight.codes.options().dtype(dtype));
  if (values.numel() == 0) return values;
  const bool bytes = weight.format.type == CodeType::Int8;
  launch(values, kernel_name(bytes ? "decode_bytes" : "decode_nibbles", dtype),
         blocks_for_elements(values.numel(), elements_per_vector(values)),
         launch_of(weight, values));
  return values;
}

}  // namespace

const BitsandbytesWeightOps kBitsandbytesWeightCuda = {decode};

}  // namespace convoy::kernels
