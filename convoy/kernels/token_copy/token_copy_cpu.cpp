// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "convoy/kernels/token_copy/token_copy_ops.h"

namespace convoy::kernels {
namespace {

void copy(const at::Tensor& source_TKE, int64_t begin, int64_t end, const at::Tensor& target_CKE,
          int64_t at) {
  const auto token_bytes =
      static_cast<size_t>(target_CKE.stride(0)) * static_cast<size_t>(target_CKE.element_size());
  std::memcpy(
      static_cast<char*>(target_CKE.mutable_data_ptr()) + static_cast<size_t>(at) * token_bytes,
      static_cast<const char*>(source_TKE.const_data_ptr()) +
          static_cast<size_t>(begin) * token_bytes,
      static_cast<size_t>(end - begin) * token_bytes);
}

}  // namespace

const TokenCopyOps kTokenCopyCpu = {copy};

}  // namespace convoy::kernels
