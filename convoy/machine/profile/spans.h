// SPDX-License-Identifier: Apache-2.0
//
// Sets of moments, as spans of nanoseconds that neither overlap nor touch, in order.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::profile {

struct Span {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t length_ns() const { return end_ns - begin_ns; }
  bool operator==(const Span&) const = default;
};

using Spans = std::vector<Span>;

// The union of spans in any order, which may overlap or be empty.
Spans union_of(Spans spans);
// The moments that are in both sets.
Spans intersection(const Spans& left, const Spans& right);
// The moments in `whole` that are not in `part`.
Spans difference(const Spans& whole, const Spans& part);
int64_t length_ns(const Spans& spans);

}  // namespace convoy::profile
