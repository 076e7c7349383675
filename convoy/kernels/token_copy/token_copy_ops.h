// SPDX-License-Identifier: Apache-2.0
//
// Each device implements this function to keep keys and values.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convoy::kernels {

struct TokenCopyOps {
  // Tokens begin .. end of source_TKE to target_CKE from token `at` on. Both contiguous, of one
  // dtype and on one device.
  void (*copy)(const at::Tensor& source_TKE, int64_t begin, int64_t end,
               const at::Tensor& target_CKE, int64_t at);
};

extern const TokenCopyOps kTokenCopyCpu;
extern const TokenCopyOps kTokenCopyAten;  // any device

}  // namespace convoy::kernels
