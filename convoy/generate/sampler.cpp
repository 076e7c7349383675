// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"

namespace convoy::generate {
namespace {

int32_t most_likely(std::span<const float> logits) {
  CONVOY_INVARIANT(!logits.empty(), "no logits");
  size_t best = 0;
  bool is_number = true;
  for (size_t i = 0; i < logits.size(); ++i) {
    is_number = is_number && !std::isnan(logits[i]);
    if (logits[i] > logits[best]) best = i;
  }
  CONVOY_CHECK(is_number && std::isfinite(logits[best]), NumericError,
               "the model's logits are not finite");
  return static_cast<int32_t>(best);
}

// Uniform in [0, 1).
double draw(const SamplerConfig& config, const DrawPoint& point) {
  const std::array<uint64_t, 4> counters{config.seed, static_cast<uint64_t>(point.row),
                                         static_cast<uint64_t>(point.sample),
                                         static_cast<uint64_t>(point.position)};
  return static_cast<double>(mix_seed(counters) >> 11) * 0x1.0p-53;
}

// Token ids from the most likely one down, sorted only as far as asked: a vocabulary has 10^5 entries, a nucleus few.
class Ranking {
 public:
  explicit Ranking(std::span<const float> logits) : logits_(logits), ids_(logits.size()) {
    std::iota(ids_.begin(), ids_.end(), 0);
  }
  int32_t at(size_t rank) {
    if (rank >= sorted_) sort_to(std::min(ids_.size(), std::max<size_t>(64, 4 * rank)));
    return ids_[rank];
  }

 private:
  void sort_to(size_t count) {
    const auto begin = ids_.begin() + static_cast<ptrdiff_t>(sorted_);
    std::partial_sort(begin, ids_.begin() + static_cast<ptrdiff_t>(count), ids_.end(),
                      [this](int32_t a, int32_t b) {
                        return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
                      });
    sorted_ = count;
  }

  std::span<const float> logits_;
  std::vector<int32_t> ids_;
  size_t sorted_ = 0;
};

}  // namespace

int32_t sample_token(std::span<const float> logits, const SamplerConfig& config,
                     const DrawPoint& point) {
  const int32_t best = most_likely(logits);
  if (config.temperature == 0.0) return best;
  // Relative to the best token, so that no temperature overflows.
  const auto weight = [&](int32_t id) {
    return std::exp((static_cast<double>(logits[id]) - static_cast<double>(logits[best])) /
                    config.temperature);
  };
  const size_t kept =
      config.top_k > 0 ? std::min(logits.size(), static_cast<size_t>(config.top_k)) : logits.size();
  const bool keeps_all = kept == logits.size();
  Ranking ranking(logits);
  double total = 0;
  for (size_t i = 0; i < kept; ++i) {
    total += weight(keeps_all ? static_cast<int32_t>(i) : ranking.at(i));
  }
  double rest = draw(config, point);
  if (keeps_all && config.top_p >= 1.0) {  // no order is needed
    rest *= total;
    for (size_t i = 0; i < kept; ++i) {
      rest -= weight(static_cast<int32_t>(i));
      if (rest < 0) return static_cast<int32_t>(i);
    }
    return best;
  }
  double nucleus = 0;
  size_t count = 0;
  while (count < kept && (count == 0 || nucleus < config.top_p * total)) {
    nucleus += weight(ranking.at(count++));
  }
  rest *= nucleus;
  for (size_t i = 0; i + 1 < count; ++i) {
    rest -= weight(ranking.at(i));
    if (rest < 0) return ranking.at(i);
  }
  return ranking.at(count - 1);
}

}  // namespace convoy::generate
