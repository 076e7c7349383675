// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/token_copy/token_copy_ops.h"

namespace convoy::kernels {
namespace {

void copy(const at::Tensor& source_TKE, int64_t begin, int64_t end, const at::Tensor& target_CKE,
          int64_t at) {
  target_CKE.narrow(0, at, end - begin).copy_(source_TKE.narrow(0, begin, end - begin));
}

}  // namespace

const TokenCopyOps kTokenCopyAten = {copy};

}  // namespace convoy::kernels
