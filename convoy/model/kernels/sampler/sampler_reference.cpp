// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sampler/sampler_reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace convoy::kernels::reference {

std::vector<Share> shares_of_row(std::span<const double> given, const SamplingRule& rule,
                                 std::span<const int32_t> seen) {
  std::vector<double> logits(given.begin(), given.end());
  // In fp32, as transformers does: what is rounded here decides between neighbours.
  const auto penalty = static_cast<float>(rule.repetition_penalty);
  for (const int32_t id : seen) {
    const auto logit = static_cast<float>(given[id]);
    logits[id] = logit < 0 ? logit * penalty : logit / penalty;
  }
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
  const auto sum = [&] {
    double total = 0;
    for (const int64_t id : ids) total += weight(id);
    return total;
  };
  if (rule.top_k > 0 && rule.top_k < static_cast<int64_t>(ids.size())) ids.resize(rule.top_k);
  if (rule.top_p < 1.0) {
    const double total = sum();
    double nucleus = 0;
    size_t count = 0;
    while (count < ids.size() && (count == 0 || nucleus < rule.top_p * total))
      nucleus += weight(ids[count++]);
    ids.resize(count);
  }
  std::erase_if(ids, [&](int64_t id) { return weight(id) < rule.min_p; });
  std::sort(ids.begin(), ids.end());
  const double total = sum();
  std::vector<Share> shares;
  double before = 0;
  for (const int64_t id : ids) {
    before += weight(id) / total;
    shares.push_back({id, before});
  }
  return shares;
}

}  // namespace convoy::kernels::reference
