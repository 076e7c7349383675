// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/sampler/penalised_logits.h"
#include "convoy/model/kernels/sampler/sampler_launch.h"
#include "convoy/model/kernels/sampler/sampler_ops.h"

namespace convoy::kernels {
namespace {

gpu::SampleRule device_rule(const SamplingRow& row) {
  const SamplingRule& rule = row.rule;
  constexpr double kLargest = std::numeric_limits<float>::max();
  const double scale = rule.temperature == 0.0 ? 0.0 : std::numbers::log2e / rule.temperature;
  return {.uniform = row.uniform,
          .top_p = rule.top_p,
          .scale_for_base_2 = static_cast<float>(std::min(scale, kLargest)),
          .min_p = static_cast<float>(rule.min_p),
          .top_k = static_cast<uint32_t>(
              std::min<int64_t>(rule.top_k, std::numeric_limits<int32_t>::max())),
          .wants_logprob = row.wants_logprob ? 1u : 0u};
}

at::Tensor upload(std::span<const SamplingRow> rows, at::Device device) {
  static_assert(sizeof(gpu::SampleRule) % sizeof(int64_t) == 0);
  std::vector<int64_t> words;
  for (const SamplingRow& row : rows) {
    const auto of_row =
        std::bit_cast<std::array<int64_t, sizeof(gpu::SampleRule) / sizeof(int64_t)>>(
            device_rule(row));
    words.insert(words.end(), of_row.begin(), of_row.end());
  }
  return device::to_device<int64_t>(words, device);
}

std::vector<SampledToken> sample(const at::Tensor& logits_RV, int64_t num_ids,
                                 std::span<const SamplingRow> rows) {
  // The most likely ids of a row are for people to look at: sorting is fast enough.
  const bool wants_likeliest = std::any_of(
      rows.begin(), rows.end(), [](const SamplingRow& row) { return row.num_likeliest > 0; });
  if (wants_likeliest) return kSamplerAten.sample(logits_RV, num_ids, rows);
  at::Tensor raw_RV = logits_RV.narrow(1, 0, num_ids);
  at::Tensor penalised_RV = raw_RV;
  if (penalises(rows)) {
    raw_RV = raw_RV.to(at::kFloat).contiguous();
    penalised_RV = penalised_logits(raw_RV, rows);
  }
  const auto num_rows = static_cast<int64_t>(rows.size());
  const at::Tensor rules = upload(rows, logits_RV.device());
  const at::Tensor sampled =
      at::empty({num_rows, 2}, at::TensorOptions().dtype(at::kInt).device(logits_RV.device()));
  const bool vectors = fits_vectors({raw_RV, penalised_RV}, raw_RV.stride(0));
  const gpu::SampleLaunch launched = {
      .logits = raw_RV.const_data_ptr(),
      .penalised = penalised_RV.const_data_ptr(),
      .rules = static_cast<const gpu::SampleRule*>(rules.const_data_ptr()),
      .sampled = static_cast<gpu::SampledId*>(sampled.mutable_data_ptr()),
      .row_stride = raw_RV.stride(0),
      .rows = static_cast<uint32_t>(num_rows),
      .ids = static_cast<uint32_t>(num_ids),
      .vectors = vectors};
  launch(raw_RV, kernel_name("sample", raw_RV.scalar_type()), static_cast<uint64_t>(num_rows),
         launched);
  const at::Tensor found = sampled.cpu();
  const auto* const ids = static_cast<const gpu::SampledId*>(found.const_data_ptr());
  std::vector<SampledToken> tokens(rows.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    tokens[row].id = ids[row].id < 0 ? kNoToken : ids[row].id;
    tokens[row].logprob = ids[row].logprob;
  }
  return tokens;
}

}  // namespace

const SamplerOps kSamplerCuda = {sample};

}  // namespace convoy::kernels
