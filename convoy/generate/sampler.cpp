// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/sampler.h"

#include <array>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"

namespace convoy::generate {
namespace {

// Uniform in [0, 1).
double draw(const SamplerConfig& config, const DrawPoint& point) {
  const std::array<uint64_t, 4> counters{config.seed, static_cast<uint64_t>(point.row),
                                         static_cast<uint64_t>(point.sample),
                                         static_cast<uint64_t>(point.position)};
  return static_cast<double>(mix_seed(counters) >> 11) * 0x1.0p-53;
}

}  // namespace

std::vector<int32_t> sample_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                                   const SamplerConfig& config,
                                   const std::vector<DrawPoint>& points) {
  std::vector<kernels::SamplingRow> rows;
  rows.reserve(points.size());
  for (const DrawPoint& point : points)
    rows.push_back({.rule = config.rule(), .uniform = draw(config, point)});
  std::vector<int32_t> tokens;
  tokens.reserve(points.size());
  for (const kernels::SampledToken& token : kernels::sample_tokens(logits_RV, num_ids, rows)) {
    const DrawPoint& point = points[tokens.size()];
    CONVOY_CHECK(token.id != kernels::kNoToken, NumericError,
                 "the model's logits are not finite (prompt {}, token {})", point.row,
                 point.position);
    tokens.push_back(static_cast<int32_t>(token.id));
  }
  return tokens;
}

}  // namespace convoy::generate
