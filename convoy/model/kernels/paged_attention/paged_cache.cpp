// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/paged_attention/paged_cache.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/paged_attention/paged_attention_ops.h"

namespace convoy::kernels {

PagedCache make_paged_cache(const PagedShape& shape, const at::TensorOptions& model,
                            CacheElement element) {
  CONVOY_INVARIANT(shape.num_blocks >= 0 && shape.num_kv_heads > 0 && shape.head_dim > 0 &&
                       shape.block_tokens > 0 && shape.block_tokens % kBlockTokensStep == 0,
                   "a paged cache needs heads, features, and blocks of a multiple of {} tokens, "
                   "found {} heads, {} features, {} tokens",
                   kBlockTokensStep, shape.num_kv_heads, shape.head_dim, shape.block_tokens);
  const at::ScalarType dtype = model.dtype().toScalarType();
  CONVOY_INVARIANT(dtype == at::kFloat || dtype == at::kBFloat16,
                   "a paged cache needs a model in fp32 or bf16, found {}", c10::toString(dtype));
  const at::NoGradGuard no_grad;
  return paged_attention_ops(model.device()).make_cache(shape, model, element);
}

int64_t paged_block_bytes(const PagedShape& shape, const at::TensorOptions& model,
                          CacheElement element) {
  PagedShape one = shape;
  one.num_blocks = 1;
  const PagedCache cache = make_paged_cache(one, model, element);
  int64_t bytes = 0;
  for (const at::Tensor& part : {cache.keys, cache.values, cache.key_scales, cache.value_scales}) {
    if (part.defined()) bytes += static_cast<int64_t>(part.nbytes());
  }
  return bytes;
}

}  // namespace convoy::kernels
