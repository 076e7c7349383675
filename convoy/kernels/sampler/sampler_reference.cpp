// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/sampler/sampler_reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace convoy::kernels::reference {

std::vector<Share> shares_of_row(std::span<const double> logits, const SamplingRule& rule) {
  if (std::any_of(logits.begin(), logits.end(), [](double x) { return std::isnan(x); })) return {};
  std::vector<int64_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
  const double highest = logits[ids.front()];
  if (!std::isfinite(highest)) return {};
  if (rule.temperature == 0) return {{ids.front(), 1.0}};
  const auto weight = [&](int64_t id) {
    return std::exp((logits[id] - highest) / rule.temperature);
  };
  if (rule.top_k > 0 && rule.top_k < static_cast<int64_t>(ids.size())) ids.resize(rule.top_k);
  double total = 0;
  for (const int64_t id : ids) total += weight(id);
  if (rule.top_p < 1.0) {
    double nucleus = 0;
    size_t count = 0;
    while (count < ids.size() && (count == 0 || nucleus < rule.top_p * total))
      nucleus += weight(ids[count++]);
    ids.resize(count);
    total = nucleus;
  } else if (ids.size() == logits.size()) {
    std::sort(ids.begin(), ids.end());
  }
  std::vector<Share> shares;
  double sum = 0;
  for (const int64_t id : ids) {
    sum += weight(id) / total;
    shares.push_back({id, sum});
  }
  return shares;
}

}  // namespace convoy::kernels::reference
