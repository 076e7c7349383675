// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/sampler/likeliest_ids.h"
#include "convoy/model/kernels/sampler/penalised_logits.h"
#include "convoy/model/kernels/sampler/sampler_launch.h"
#include "convoy/model/kernels/sampler/sampler_ops.h"

namespace convoy::kernels {
namespace {

gpu::SampleRule device_rule(const SamplingRow& row, int64_t num_ids) {
  const SamplingRule& rule = row.rule;
  constexpr double kLargest = std::numeric_limits<float>::max();
  const double left_out = std::max(1.0 - rule.top_p, 0.0) / static_cast<double>(2 * num_ids);
  const double scale = rule.temperature == 0.0 ? 0.0 : std::numbers::log2e / rule.temperature;
  return {.uniform = row.uniform,
          .top_p = rule.top_p,
          .scale_for_base_2 = static_cast<float>(std::min(scale, kLargest)),
          .min_p = static_cast<float>(rule.min_p),
          .top_k = static_cast<uint32_t>(
              std::min<int64_t>(rule.top_k, std::numeric_limits<int32_t>::max())),
          .wants_logprob = row.wants_logprob ? 1u : 0u,
          .least_log2_weight = left_out > 0 ? static_cast<float>(std::log2(left_out)) : 0};
}

SamplingTables make_kernel_tables(std::span<const SamplingRow> rows, int64_t num_ids,
                                  device::Upload& upload) {
  std::vector<gpu::SampleRule> rules;
  rules.reserve(rows.size());
  for (const SamplingRow& row : rows) rules.push_back(device_rule(row, num_ids));
  SamplingTables tables = penalty_tables(rows, num_ids, upload);
  add_likeliest_tables(rows, upload, tables);
  tables.rules = upload.add(std::as_bytes(std::span<const gpu::SampleRule>(rules)));
  return tables;
}

PickedTokens pick_by_kernel(const at::Tensor& logits_RV, int64_t num_ids,
                            std::span<const SamplingRow> rows, const SamplingTables& tables,
                            const at::Tensor& unread_ids) {
  at::Tensor raw_RV = logits_RV;
  at::Tensor penalised_RV = raw_RV;
  if (tables.change_logits()) {
    raw_RV = raw_RV.to(at::kFloat).contiguous();
    penalised_RV = penalised_logits(raw_RV.narrow(1, 0, num_ids).contiguous(), tables, unread_ids);
  }
  const auto num_rows = static_cast<int64_t>(rows.size());
  const auto options = at::TensorOptions().device(logits_RV.device());
  PickedTokens picked{.next_ids_R = at::empty({num_rows}, options.dtype(at::kLong)),
                      .sampled_RS = at::empty({num_rows, 2}, options.dtype(at::kInt))};
  if (num_rows == 0) return picked;
  const bool vectors = fits_vectors({raw_RV}, raw_RV.stride(0)) &&
                       fits_vectors({penalised_RV}, penalised_RV.stride(0));
  const gpu::SampleLaunch launched = {
      .logits = raw_RV.const_data_ptr(),
      .penalised = penalised_RV.const_data_ptr(),
      .rules = static_cast<const gpu::SampleRule*>(tables.rules.const_data_ptr()),
      .sampled = static_cast<gpu::SampledId*>(picked.sampled_RS.mutable_data_ptr()),
      .next_ids = picked.next_ids_R.mutable_data_ptr<int64_t>(),
      .row_stride = raw_RV.stride(0),
      .penalised_stride = penalised_RV.stride(0),
      .rows = static_cast<uint32_t>(num_rows),
      .ids = static_cast<uint32_t>(num_ids),
      .columns = static_cast<uint32_t>(raw_RV.size(1)),
      .vectors = vectors};
  launch(raw_RV, kernel_name("sample", raw_RV.scalar_type()), static_cast<uint64_t>(num_rows),
         launched);
  picked.sampled_RS = with_likeliest(picked.sampled_RS, raw_RV, num_ids, tables);
  return picked;
}

}  // namespace

const SamplerOps kSamplerCuda = {make_kernel_tables, pick_by_kernel, /*reads_allowed_rows=*/false};

}  // namespace convoy::kernels
