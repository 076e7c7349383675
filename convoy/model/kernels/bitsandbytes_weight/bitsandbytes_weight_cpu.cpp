// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include <algorithm>

#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_reader.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight_ops.h"
#include "convoy/model/kernels/bitsandbytes_weight/code_tables.h"
#include "convoy/model/kernels/simd/element.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {

template <class Element>
BitsandbytesReader<Element>::BitsandbytesReader(const BitsandbytesWeight& weight)
    : format_(weight.format), width_(weight.shape.back()) {
  codes_ = static_cast<const uint8_t*>(weight.codes.const_data_ptr());
  if (format_.type != CodeType::Int8)
    table_ = (format_.type == CodeType::Nf4 ? nf4_table() : fp4_table()).data();
  if (!format_.nested) {
    absmax_ = weight.absmax.const_data_ptr<float>();
    return;
  }
  absmax_codes_ = weight.absmax.const_data_ptr<uint8_t>();
  nested_absmax_ = weight.nested_absmax.const_data_ptr<float>();
  nested_table_ = weight.nested_table.const_data_ptr<float>();
  nested_offset_ = *weight.nested_offset.const_data_ptr<float>();
}

template <class Element>
float BitsandbytesReader<Element>::block_absmax(int64_t block) const {
  if (!format_.nested) return absmax_[block];
  return nested_table_[absmax_codes_[block]] * nested_absmax_[block / kNestedBlock] +
         nested_offset_;
}

template <class Element>
void BitsandbytesReader<Element>::read_nibbles(int64_t first, int64_t count, Element* to) const {
  const auto decode = simd_kernels<Element>().decode_nibbles;
  const int64_t end = first + count;
  while (first < end) {
    const int64_t block = first / format_.block;
    const int64_t here = std::min(end, (block + 1) * format_.block) - first;
    decode(codes_, first, {table_, block_absmax(block)}, to, here);
    first += here;
    to += here;
  }
}

template <class Element>
void BitsandbytesReader<Element>::read(const Area& area, Element* to, int64_t stride) const {
  for (int64_t row = area.row; row < area.row + area.rows; ++row, to += stride) {
    const int64_t first = row * width_ + area.column;
    if (format_.type == CodeType::Int8)
      simd_kernels<Element>().decode_bytes(reinterpret_cast<const int8_t*>(codes_) + first,
                                           absmax_[row], to, area.columns);
    else
      read_nibbles(first, area.columns, to);
  }
}

template class BitsandbytesReader<float>;
template class BitsandbytesReader<at::BFloat16>;

namespace {

at::Tensor decode(const BitsandbytesWeight& weight, at::ScalarType dtype) {
  at::Tensor values = at::empty(weight.shape, at::TensorOptions().dtype(dtype));
  if (values.numel() == 0) return values;
  with_element(values, "bitsandbytes_weight", [&](auto element) {
    using Element = decltype(element);
    const BitsandbytesReader<Element> reader(weight);
    const int64_t width = weight.shape.back();
    for_rows(values.numel() / width, width, [&](int64_t begin, int64_t end) {
      reader.read({begin, 0, end - begin, width},
                  values.mutable_data_ptr<Element>() + begin * width, width);
    });
  });
  return values;
}

}  // namespace

const BitsandbytesWeightOps kBitsandbytesWeightCpu = {decode};

}  // namespace convoy::kernels
