// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"

#include <ATen/ATen.h>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight_ops.h"
#include "convoy/model/kernels/bitsandbytes_weight/code_tables.h"

namespace convoy::kernels {
namespace {

int64_t divide_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

}  // namespace

const char* code_type_name(CodeType type) {
  return type == CodeType::Nf4 ? "nf4" : type == CodeType::Fp4 ? "fp4" : "int8";
}

int64_t BitsandbytesWeight::numel() const { return c10::multiply_integers(shape); }

std::vector<BitsandbytesWeight::Part> BitsandbytesWeight::parts() const {
  if (format.type == CodeType::Int8) return {{"", &codes}, {".absmax", &absmax}};
  std::vector<Part> list{{"", &codes}, {".absmax", &absmax}};
  if (format.nested) {
    list.push_back({".nested_absmax", &nested_absmax});
    list.push_back({".nested_offset", &nested_offset});
  }
  return list;
}

int64_t BitsandbytesWeight::num_bytes() const {
  int64_t bytes = 0;
  for (const Part& part : parts()) bytes += static_cast<int64_t>(part.tensor->nbytes());
  return bytes;
}

BitsandbytesWeight BitsandbytesWeight::to(at::Device device) const {
  BitsandbytesWeight moved = *this;
  for (at::Tensor* part : {&moved.codes, &moved.absmax, &moved.nested_absmax, &moved.nested_offset,
                           &moved.nested_table})
    if (part->defined()) *part = part->to(device);
  return moved;
}

BitsandbytesWeight declare_bitsandbytes_weight(const BitsandbytesFormat& format,
                                               at::IntArrayRef shape, at::ScalarType dtype,
                                               const at::TensorOptions& options) {
  BitsandbytesWeight weight;
  weight.format = format;
  weight.shape = shape.vec();
  weight.dtype = dtype;
  const int64_t blocks = divide_up(weight.numel(), format.block);
  if (format.type == CodeType::Int8) {
    weight.codes = at::empty(shape, options.dtype(at::kChar));
    weight.absmax = at::empty({shape.at(0)}, options.dtype(at::kFloat));
    return weight;
  }
  weight.codes = at::empty({divide_up(weight.numel(), 2), 1}, options.dtype(at::kByte));
  weight.absmax = at::empty({blocks}, options.dtype(format.nested ? at::kByte : at::kFloat));
  if (!format.nested) return weight;
  weight.nested_absmax = at::empty({divide_up(blocks, kNestedBlock)}, options.dtype(at::kFloat));
  weight.nested_offset = at::empty({1}, options.dtype(at::kFloat));
  weight.nested_table = dynamic_map(DynamicMap::Signed);
  if (options.device().type() != at::kMeta)
    weight.nested_table = weight.nested_table.to(options.device());
  return weight;
}

at::Tensor decode_weight(const BitsandbytesWeight& weight, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  if (dtype == at::kHalf) return decode_weight(weight, at::kFloat).to(at::kHalf);
  return bitsandbytes_weight_ops(weight.codes.device()).decode(weight, dtype);
}

}  // namespace convoy::kernels
