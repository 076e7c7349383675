// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sampler/sampler.h"

#include <algorithm>
#include <bit>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/sampler/allowed_logits.h"
#include "convoy/model/kernels/sampler/sampler_ops.h"

namespace convoy::kernels {
namespace {

void check_row(const SamplingRow& row, int64_t num_ids) {
  const SamplingRule& rule = row.rule;
  CONVOY_INVARIANT(rule.temperature >= 0 && rule.top_k >= 0 && rule.top_p > 0 && rule.min_p >= 0 &&
                       rule.min_p <= 1 && rule.repetition_penalty > 0,
                   "pick_tokens needs temperature and top_k from 0, top_p and "
                   "repetition_penalty above 0, min_p from 0 to 1, found {}, {}, {}, {}, {}",
                   rule.temperature, rule.top_k, rule.top_p, rule.repetition_penalty, rule.min_p);
  CONVOY_INVARIANT(row.uniform >= 0 && row.uniform < 1,
                   "pick_tokens needs a number from 0 to below 1, found {}", row.uniform);
  CONVOY_INVARIANT(row.num_likeliest >= 0 && row.num_likeliest <= num_ids,
                   "pick_tokens needs 0 to {} likeliest ids, found {}", num_ids, row.num_likeliest);
  if (!row.changes_logits()) return;
  CONVOY_INVARIANT(row.answer_begin <= row.seen_ids.size(),
                   "pick_tokens needs an answer among {} seen ids, found one that begins at {}",
                   row.seen_ids.size(), row.answer_begin);
  CONVOY_INVARIANT(
      std::all_of(row.biases.begin(), row.biases.end(),
                  [&](const LogitBias& one) { return one.id >= 0 && one.id < num_ids; }),
      "pick_tokens needs biases of ids from 0 to {}", num_ids - 1);
  CONVOY_INVARIANT(
      std::all_of(row.seen_ids.begin(), row.seen_ids.end(), [](int32_t id) { return id >= 0; }),
      "pick_tokens needs seen ids from 0");
}

}  // namespace

SamplingTables make_sampling_tables(std::span<const SamplingRow> rows, int64_t num_ids,
                                    device::Upload& upload) {
  for (const SamplingRow& row : rows) check_row(row, num_ids);
  return sampler_ops(upload.device()).make_tables(rows, num_ids, upload);
}

void add_allowed_ids(std::span<const SamplingRow> rows, device::Upload& upload,
                     SamplingTables& tables) {
  if (!sampler_ops(upload.device()).reads_allowed_rows) add_allowed_tables(rows, upload, tables);
}

PickedTokens pick_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                         std::span<const SamplingRow> rows, const SamplingTables& tables,
                         const at::Tensor& unread_ids) {
  CONVOY_INVARIANT(
      logits_RV.scalar_type() == at::kFloat || logits_RV.scalar_type() == at::kBFloat16,
      "pick_tokens needs fp32 or bf16, found {}", c10::toString(logits_RV.scalar_type()));
  CONVOY_INVARIANT(logits_RV.dim() == 2 && logits_RV.stride(1) == 1,
                   "pick_tokens needs [R, V] logits with contiguous rows");
  CONVOY_INVARIANT(num_ids > 0 && num_ids <= logits_RV.size(1),
                   "pick_tokens needs 1 to {} ids, found {}", logits_RV.size(1), num_ids);
  CONVOY_INVARIANT(static_cast<int64_t>(rows.size()) == logits_RV.size(0),
                   "pick_tokens needs {} rows, found {}", logits_RV.size(0), rows.size());
  const at::NoGradGuard no_grad;
  return sampler_ops(logits_RV.device())
      .pick(allowed_logits(logits_RV, tables), num_ids, rows, tables, unread_ids);
}

std::vector<SampledToken> read_tokens(const at::Tensor& sampled_RS) {
  const int64_t pairs = sampled_RS.size(1) / 2;
  const auto* pair = sampled_RS.const_data_ptr<int32_t>();
  const auto logprob = [&pair] { return std::bit_cast<float>(pair[1]); };
  std::vector<SampledToken> tokens(static_cast<size_t>(sampled_RS.size(0)));
  for (SampledToken& token : tokens) {
    token.id = pair[0];
    token.logprob = logprob();
    pair += 2;
    for (int64_t likeliest = 1; likeliest < pairs; ++likeliest, pair += 2)
      if (pair[0] != kNoToken) token.likeliest.push_back({pair[0], logprob()});
  }
  return tokens;
}

std::vector<SampledToken> sample_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                                        std::span<const SamplingRow> rows) {
  device::Upload upload(logits_RV.device());
  SamplingTables tables = make_sampling_tables(rows, num_ids, upload);
  add_allowed_ids(rows, upload, tables);
  upload.send();
  return read_tokens(pick_tokens(logits_RV, num_ids, rows, tables).sampled_RS.cpu());
}

}  // namespace convoy::kernels
