// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight_ops.h"
#include "convoy/model/kernels/bitsandbytes_weight/code_tables.h"

namespace convoy::kernels {
namespace {

at::Tensor table_of(CodeType type, const at::Tensor& like) {
  const NibbleTable& numbers = type == CodeType::Nf4 ? nf4_table() : fp4_table();
  return at::tensor(at::ArrayRef<float>(numbers)).to(like.device());
}

// Repeats the numbers of the blocks, fp32 [n], for each element of their blocks: [numel].
at::Tensor by_element(const at::Tensor& of_block, int64_t block, int64_t numel) {
  return of_block.unsqueeze(1).expand({-1, block}).reshape({-1}).narrow(0, 0, numel);
}

at::Tensor block_absmax(const BitsandbytesWeight& weight) {
  if (!weight.format.nested) return weight.absmax;
  const int64_t blocks = weight.absmax.numel();
  const at::Tensor numbers = weight.nested_table.index_select(0, weight.absmax.to(at::kLong));
  return numbers.mul_(by_element(weight.nested_absmax, kNestedBlock, blocks))
      .add_(weight.nested_offset);
}

at::Tensor decode(const BitsandbytesWeight& weight, at::ScalarType dtype) {
  if (weight.format.type == CodeType::Int8)
    return weight.codes.to(at::kFloat).mul_(weight.absmax.unsqueeze(1)).mul_(kInt8Step).to(dtype);
  const at::Tensor codes = weight.codes.view({-1}).to(at::kInt);
  const at::Tensor nibbles = at::stack({codes.bitwise_right_shift(4), codes.bitwise_and(15)}, 1);
  const at::Tensor values = table_of(weight.format.type, codes)
                                .index_select(0, nibbles.view({-1}))
                                .narrow(0, 0, weight.numel());
  return values.mul_(by_element(block_absmax(weight), weight.format.block, weight.numel()))
      .to(dtype)
      .view(weight.shape);
}

}  // namespace

const BitsandbytesWeightOps kBitsandbytesWeightAten = {decode};

}  // namespace convoy::kernels
