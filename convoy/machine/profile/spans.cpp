// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/profile/spans.h"

#include <algorithm>

namespace convoy::profile {

Spans union_of(Spans spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& left, const Span& right) { return left.begin_ns < right.begin_ns; });
  Spans merged;
  for (const Span& span : spans) {
    if (span.length_ns() <= 0) continue;
    if (!merged.empty() && span.begin_ns <= merged.back().end_ns)
      merged.back().end_ns = std::max(merged.back().end_ns, span.end_ns);
    else
      merged.push_back(span);
  }
  return merged;
}

Spans intersection(const Spans& left, const Spans& right) {
  Spans common;
  for (size_t l = 0, r = 0; l < left.size() && r < right.size();) {
    const Span both = {.begin_ns = std::max(left[l].begin_ns, right[r].begin_ns),
                       .end_ns = std::min(left[l].end_ns, right[r].end_ns)};
    if (both.length_ns() > 0) common.push_back(both);
    if (left[l].end_ns < right[r].end_ns)
      ++l;
    else
      ++r;
  }
  return common;
}

Spans difference(const Spans& whole, const Spans& part) {
  Spans rest;
  size_t at = 0;
  for (Span span : whole) {
    while (at < part.size() && part[at].end_ns <= span.begin_ns) ++at;
    for (size_t cut = at; cut < part.size() && part[cut].begin_ns < span.end_ns; ++cut) {
      if (part[cut].begin_ns > span.begin_ns)
        rest.push_back({.begin_ns = span.begin_ns, .end_ns = part[cut].begin_ns});
      span.begin_ns = std::max(span.begin_ns, part[cut].end_ns);
    }
    if (span.length_ns() > 0) rest.push_back(span);
  }
  return rest;
}

int64_t length_ns(const Spans& spans) {
  int64_t sum = 0;
  for (const Span& span : spans) sum += span.length_ns();
  return sum;
}

}  // namespace convoy::profile
