// SPDX-License-Identifier: Apache-2.0
//
// Decodes parts of a coded weight [O, I] on the CPU. Copies nothing: the weight's tensors outlive
// it. Thread-safe.
#pragma once

#include <cstdint>

#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"

namespace convoy::kernels {

template <class Element>
class BitsandbytesReader {
 public:
  explicit BitsandbytesReader(const BitsandbytesWeight& weight);

  struct Area {
    int64_t row = 0;
    int64_t column = 0;
    int64_t rows = 0;
    int64_t columns = 0;
  };
  // `stride`: elements from row to row of `to`.
  void read(const Area& area, Element* to, int64_t stride) const;

 private:
  void read_nibbles(int64_t first, int64_t count, Element* to) const;
  float block_absmax(int64_t block) const;

  BitsandbytesFormat format_;
  int64_t width_;
  const float* table_ = nullptr;  // for codes of 4 bits
  const uint8_t* codes_ = nullptr;
  const float* absmax_ = nullptr;
  const uint8_t* absmax_codes_ = nullptr;  // when scales are nested
  const float* nested_absmax_ = nullptr;
  const float* nested_table_ = nullptr;
  float nested_offset_ = 0;
};

}  // namespace convoy::kernels
