// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/sampler.h"

#include <array>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/device/transfer.h"

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
  std::vector<double> draws;
  draws.reserve(points.size());
  for (const DrawPoint& point : points) draws.push_back(draw(config, point));
  const at::Tensor uniform_R = device::to_device<double>(draws, logits_RV.device());
  const at::Tensor ids_R =
      kernels::sample_tokens(logits_RV, num_ids, config.rule(), uniform_R).cpu();
  std::vector<int32_t> tokens;
  tokens.reserve(points.size());
  const auto* ids = ids_R.const_data_ptr<int64_t>();
  for (size_t row = 0; row < points.size(); ++row) {
    CONVOY_CHECK(ids[row] != kernels::kNoToken, NumericError,
                 "the model's logits are not finite (prompt {}, token {})", points[row].row,
                 points[row].position);
    tokens.push_back(static_cast<int32_t>(ids[row]));
  }
  return tokens;
}

}  // namespace convoy::generate
