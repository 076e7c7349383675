// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/sampler.h"

#include <array>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear.h"

namespace convoy::generate {
namespace {

// Uniform in [0, 1).
double draw(const DrawPoint& point) {
  const std::array<uint64_t, 4> counters{point.source.seed, static_cast<uint64_t>(point.source.row),
                                         point.source.sample,
                                         static_cast<uint64_t>(point.position)};
  return static_cast<double>(mix_seed(counters) >> 11) * 0x1.0p-53;
}

bool wants_likeliest_alone(const DrawPoint& point) {
  return point.sampling.temperature == 0 && point.sampling.repetition_penalty == 1 &&
         !point.wants_logprob;
}

}  // namespace

void check_sampling(const Sampling& sampling) {
  const auto demand = [](bool holds, const char* key, const char* wanted, auto found) {
    if (!holds)
      throw ConfigError(fmt::format("{} must be {}, found {}", key, wanted, found), {.key = key});
  };
  demand(sampling.temperature >= 0, "temperature", "0 or above", sampling.temperature);
  demand(sampling.top_k >= 0, "top_k", "0 or above", sampling.top_k);
  demand(sampling.top_p > 0 && sampling.top_p <= 1, "top_p", "above 0 and at most 1",
         sampling.top_p);
  demand(sampling.min_p >= 0 && sampling.min_p <= 1, "min_p", "from 0 to 1", sampling.min_p);
  demand(sampling.repetition_penalty > 0, "repetition_penalty", "above 0",
         sampling.repetition_penalty);
}

std::vector<kernels::SampledToken> sample_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                                                 const std::vector<DrawPoint>& points) {
  std::vector<kernels::SamplingRow> rows;
  rows.reserve(points.size());
  for (const DrawPoint& point : points)
    rows.push_back({.rule = point.sampling,
                    .uniform = draw(point),
                    .seen_ids = point.seen_ids,
                    .wants_logprob = point.wants_logprob});
  return kernels::sample_tokens(logits_RV, num_ids, rows);
}

std::vector<kernels::SampledToken> next_tokens(const nn::Linear& head, const at::Tensor& hidden_RD,
                                               int64_t num_ids,
                                               const std::vector<DrawPoint>& points) {
  std::vector<int64_t> likeliest;
  std::vector<int64_t> drawn;
  std::vector<DrawPoint> drawn_points;
  for (size_t row = 0; row < points.size(); ++row) {
    if (wants_likeliest_alone(points[row]) && !head.trains()) {
      likeliest.push_back(static_cast<int64_t>(row));
    } else {
      drawn.push_back(static_cast<int64_t>(row));
      drawn_points.push_back(points[row]);
    }
  }
  const auto of = [&](const std::vector<int64_t>& rows) {
    return rows.size() == points.size()
               ? hidden_RD
               : hidden_RD.index_select(0, device::to_device<int64_t>(rows, hidden_RD.device()));
  };
  std::vector<kernels::SampledToken> tokens(points.size());
  if (!likeliest.empty()) {
    const at::Tensor ids = head.frozen().argmax(of(likeliest), num_ids).cpu();
    for (size_t at = 0; at < likeliest.size(); ++at)
      tokens[likeliest[at]].id = ids.const_data_ptr<int64_t>()[at];
  }
  if (drawn.empty()) return tokens;
  std::vector<kernels::SampledToken> picked =
      sample_tokens(head.forward(of(drawn)), num_ids, drawn_points);
  for (size_t at = 0; at < drawn.size(); ++at) tokens[drawn[at]] = std::move(picked[at]);
  return tokens;
}

}  // namespace convoy::generate
