// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/paged_attention/paged_attention_cpu.h"

#include "convoy/model/kernels/paged_attention/paged_attention_ops.h"
#include "convoy/model/kernels/paged_attention/paged_layout.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels {
namespace {

PagedCache make_cache(const PagedShape& shape, const at::TensorOptions& model,
                      CacheElement element) {
  PagedCache cache{.shape = shape, .element = element, .dtype = model.dtype().toScalarType()};
  const bool quantised = element == CacheElement::Int8;
  const at::TensorOptions stored = quantised ? model.dtype(at::kChar) : model;
  const auto make = [&](const auto& layout) {
    cache.keys = at::empty({shape.num_blocks, shape.num_kv_heads, layout.key_elements()}, stored);
    cache.values =
        at::empty({shape.num_blocks, shape.num_kv_heads, layout.value_elements()}, stored);
  };
  with_element(at::empty({0}, model), "paged_attention", [&](auto of_model) {
    quantised ? make(PagedLayout<int8_t>(shape)) : make(PagedLayout<decltype(of_model)>(shape));
  });
  if (!quantised) return cache;
  for (at::Tensor* part : {&cache.key_scales, &cache.value_scales})
    *part = at::empty({shape.num_blocks, shape.num_kv_heads, shape.block_tokens},
                      model.dtype(at::kFloat));
  return cache;
}

}  // namespace

const PagedAttentionOps kPagedAttentionCpu = {make_cache, paged::store,
                                              transform_and_store_in_steps, paged::attend};

}  // namespace convoy::kernels
