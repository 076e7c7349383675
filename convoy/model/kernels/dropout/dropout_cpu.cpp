// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/dropout/dropout_ops.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kWords = int64_t{1} << 32;

// The elements lie within one range of 2^32. The loop has no branches, so that it is vectorised.
template <class Element>
void drop_range(const Element* from, Element* to, const DropRule& rule, uint32_t high,
                uint32_t first, int64_t count) {
  for (int64_t at = 0; at < count; ++at) {
    const uint32_t hash = drop_hash(rule, first + static_cast<uint32_t>(at), high);
    const float factor = hash < rule.dropped_below ? 0.0f : rule.scale;
    to[at] = static_cast<Element>(static_cast<float>(from[at]) * factor);
  }
}

at::Tensor drop(const at::Tensor& x, const DropRule& rule) {
  at::Tensor y = at::empty(x.sizes(), x.options());
  with_element(x, "drop", [&](auto element) {
    using Element = decltype(element);
    const auto* from = x.const_data_ptr<Element>();
    auto* to = y.mutable_data_ptr<Element>();
    for_rows(x.numel(), 1, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t high = begin / kWords;
        const int64_t count = std::min(end, (high + 1) * kWords) - begin;
        drop_range(from + begin, to + begin, rule, static_cast<uint32_t>(high),
                   static_cast<uint32_t>(begin), count);
        begin += count;
      }
    });
  });
  return y;
}

}  // namespace

const DropoutOps kDropoutCpu = {drop};

}  // namespace convoy::kernels
