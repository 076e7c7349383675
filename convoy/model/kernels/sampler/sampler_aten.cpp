// SPDX-License-Identifier: Apache-2.0
//
// Samples all rows together, each by its own rule; one copy brings all rules. If any row has top-k
// or top-p, all rows are sorted; the result of the other rows is the same to the bit either way.
#include <algorithm>
#include <cmath>

#include "convoy/model/kernels/sampler/likeliest_ids.h"
#include "convoy/model/kernels/sampler/penalised_logits.h"
#include "convoy/model/kernels/sampler/sampler_ops.h"

namespace convoy::kernels {
namespace {

// Columns of the table of rules.
enum Rule : int64_t { kTemperature, kCount, kShare, kMinP, kUniform, kDraws, kRules };

SamplingTables make_aten_tables(std::span<const SamplingRow> rows, int64_t num_ids,
                                device::Upload& upload) {
  std::vector<double> values;
  for (const SamplingRow& row : rows) {
    const SamplingRule& rule = row.rule;
    const bool draws = rule.temperature != 0.0;
    values.push_back(draws ? rule.temperature : 1.0);
    values.push_back(static_cast<double>(rule.top_k == 0 ? num_ids : rule.top_k));
    // A share that the sum misses only by rounding counts as reached.
    values.push_back(rule.top_p < 1 ? rule.top_p * (1 - 1e-12) : INFINITY);
    values.push_back(rule.min_p);
    values.push_back(row.uniform);
    values.push_back(draws ? 1.0 : 0.0);
  }
  SamplingTables tables = penalty_tables(rows, num_ids, upload);
  add_likeliest_tables(rows, upload, tables);
  tables.rules = upload.add(values).view({-1, kRules});
  return tables;
}

class Batch {
 public:
  Batch(const at::Tensor& logits_RV, int64_t num_ids, std::span<const SamplingRow> rows,
        const SamplingTables& tables)
      : rows_(rows), tables_(tables), raw_RV_(logits_RV.narrow(1, 0, num_ids).to(at::kFloat)) {}

  at::Tensor pick(const at::Tensor& unread_ids) const {
    const at::Tensor values_RV = penalised_logits(raw_RV_, tables_, unread_ids);
    at::Tensor usable_R = raw_RV_.amax({1}).isfinite();
    if (!values_RV.is_same(raw_RV_)) usable_R.logical_and_(values_RV.amax({1}).isfinite());
    const bool all_draw = every_row([](const SamplingRule& rule) { return rule.temperature != 0; });
    const bool none_draws =
        every_row([](const SamplingRule& rule) { return rule.temperature == 0; });
    at::Tensor ids_R = all_draw ? at::Tensor() : values_RV.argmax(1);
    if (!none_draws) {
      const at::Tensor& rules_R6 = tables_.rules;
      const at::Tensor drawn_R = draw(values_RV, rules_R6);
      ids_R = all_draw ? drawn_R : at::where(rules_R6.select(1, kDraws).gt(0), drawn_R, ids_R);
    }
    return ids_R.masked_fill(usable_R.logical_not(), kNoToken);
  }

 private:
  template <class Holds>
  bool every_row(const Holds& holds) const {
    return std::all_of(rows_.begin(), rows_.end(),
                       [&](const SamplingRow& row) { return holds(row.rule); });
  }

  // In a batch with one draw, rows without temperature draw too; their result is not used.
  at::Tensor draw(const at::Tensor& values_RV, const at::Tensor& rules_R6) const {
    const auto column = [&](Rule rule) { return rules_R6.narrow(1, rule, 1); };
    const at::Tensor wide_RV = values_RV.to(at::kDouble);
    const bool none_is_cut = every_row([&](const SamplingRule& rule) {
      return rule.temperature == 0 ||
             (rule.top_p >= 1 && (rule.top_k == 0 || rule.top_k >= wide_RV.size(1)));
    });
    if (!none_is_cut) return place_of(cut_weights(wide_RV, column), column(kUniform));
    at::Tensor weights_RV = wide_RV.sub(wide_RV.amax({1}, true)).div_(column(kTemperature)).exp_();
    if (!every_row([](const SamplingRule& rule) { return rule.min_p == 0; }))
      weights_RV.masked_fill_(weights_RV.lt(column(kMinP)), 0);
    return place_of(weights_RV, column(kUniform));
  }

  template <class Column>
  static at::Tensor cut_weights(const at::Tensor& wide_RV, const Column& column) {
    auto [sorted_RV, order_RV] = wide_RV.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
    const at::Tensor scaled_RV =
        sorted_RV.sub(sorted_RV.narrow(1, 0, 1)).div_(column(kTemperature));
    const at::Tensor rank_V = at::arange(wide_RV.size(1), scaled_RV.options());
    at::Tensor weights_RV = scaled_RV.exp().masked_fill_(rank_V.ge(column(kCount)), 0);
    const at::Tensor before_RV = weights_RV.cumsum(1).sub_(weights_RV);
    const at::Tensor left_out = before_RV.ge(column(kShare).mul(weights_RV.sum({1}, true)))
                                    .logical_or(weights_RV.lt(column(kMinP)));
    weights_RV = weights_RV.masked_fill(left_out, 0);
    return at::zeros_like(weights_RV).scatter_(1, order_RV, weights_RV);
  }

  // The first id of each row whose cumulative weight lies above its share of the whole.
  static at::Tensor place_of(const at::Tensor& weights_RV, const at::Tensor& uniform_R1) {
    const int64_t num_ids = weights_RV.size(1);
    const at::Tensor sums_RV = weights_RV.cumsum(1);
    const at::Tensor wanted_R1 = uniform_R1 * sums_RV.narrow(1, num_ids - 1, 1);
    const at::Tensor ids_V = at::arange(num_ids, weights_RV.options().dtype(at::kInt));
    const at::Tensor last_R = ids_V.mul(weights_RV.gt(0)).amax({1});
    return at::minimum(sums_RV.le(wanted_R1).sum(1), last_R);
  }

  std::span<const SamplingRow> rows_;
  const SamplingTables& tables_;
  at::Tensor raw_RV_;
};

PickedTokens pick_by_aten(const at::Tensor& logits_RV, int64_t num_ids,
                          std::span<const SamplingRow> rows, const SamplingTables& tables,
                          const at::Tensor& unread_ids) {
  const Batch batch(logits_RV, num_ids, rows, tables);
  const at::Tensor ids_R = batch.pick(unread_ids);
  PickedTokens picked;
  picked.next_ids_R = ids_R.clamp_min(0);
  const auto any = [&](auto holds) { return std::any_of(rows.begin(), rows.end(), holds); };
  at::Tensor logprobs_R = at::zeros(ids_R.sizes(), ids_R.options().dtype(at::kFloat));
  if (any([](const SamplingRow& row) { return row.wants_logprob; })) {
    logprobs_R = logits_RV.to(at::kFloat)
                     .log_softmax(1)
                     .gather(1, picked.next_ids_R.unsqueeze(1))
                     .squeeze(1);
  }
  picked.sampled_RS = with_likeliest(at::stack({ids_R.to(at::kInt), logprobs_R.view(at::kInt)}, 1),
                                     logits_RV, num_ids, tables);
  return picked;
}

}  // namespace

const SamplerOps kSamplerAten = {make_aten_tables, pick_by_aten, /*reads_allowed_rows=*/false};

}  // namespace convoy::kernels
