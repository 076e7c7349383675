// SPDX-License-Identifier: Apache-2.0
//
// A weight of Int4 or Int4Zero as the kernels of GPUs read it: 4 bits a code, scale and offset of a
// group side by side. Copies share the memory.
#pragma once

#include "convoy/model/kernels/integer_weight/integer_weight.h"

namespace convoy::kernels {

struct GroupedCodes {
  explicit GroupedCodes(const IntegerWeight& weight);

  // [O, I] in fp32 or bf16: the values of the weight, rounded once.
  at::Tensor decode(at::ScalarType dtype) const;

  int64_t inputs;
  int64_t group_inputs;
  // int32: codes + 8 of eight inputs. The code of input 2n begins at bit 4n, the code of input 2n +
  // 1 at bit 4n + 16. An output has a multiple of four words.
  at::Tensor words_OW;
  at::Tensor scales_OG2;  // bf16
};

}  // namespace convoy::kernels
