// SPDX-License-Identifier: Apache-2.0
//
// All rows together, each by its own rule. The rules travel in one copy. Rows are sorted only where
// a row is cut by count or share; the result of the other rows is the same to the bit either way.
#include <algorithm>
#include <cmath>

#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/sampler/penalised_logits.h"
#include "convoy/model/kernels/sampler/sampler_ops.h"

namespace convoy::kernels {
namespace {

class Batch {
 public:
  Batch(const at::Tensor& logits_RV, int64_t num_ids, std::span<const SamplingRow> rows)
      : rows_(rows),
        device_(logits_RV.device()),
        raw_RV_(logits_RV.narrow(1, 0, num_ids).to(at::kFloat)) {}

  at::Tensor pick() const {
    const at::Tensor values_RV = penalised_logits(raw_RV_, rows_);
    at::Tensor usable_R = raw_RV_.amax({1}).isfinite();
    if (!values_RV.is_same(raw_RV_)) usable_R.logical_and_(values_RV.amax({1}).isfinite());
    const bool all_draw = every_row([](const SamplingRule& rule) { return rule.temperature != 0; });
    const bool none_draws =
        every_row([](const SamplingRule& rule) { return rule.temperature == 0; });
    at::Tensor ids_R = all_draw ? at::Tensor() : values_RV.argmax(1);
    if (!none_draws) {
      const at::Tensor rules_R6 = rules();
      const at::Tensor drawn_R = draw(values_RV, rules_R6);
      ids_R = all_draw ? drawn_R : at::where(rules_R6.select(1, kDraws).gt(0), drawn_R, ids_R);
    }
    return ids_R.masked_fill(usable_R.logical_not(), kNoToken);
  }

  // log(softmax) of the logits as they came.
  at::Tensor logprobs() const { return raw_RV_.log_softmax(1); }

 private:
  // Columns of rules().
  enum Rule : int64_t { kTemperature, kCount, kShare, kMinP, kUniform, kDraws, kRules };

  template <class Holds>
  bool every_row(const Holds& holds) const {
    return std::all_of(rows_.begin(), rows_.end(),
                       [&](const SamplingRow& row) { return holds(row.rule); });
  }

  at::Tensor rules() const {
    std::vector<double> values;
    for (const SamplingRow& row : rows_) {
      const SamplingRule& rule = row.rule;
      const bool draws = rule.temperature != 0.0;
      values.push_back(draws ? rule.temperature : 1.0);
      values.push_back(static_cast<double>(rule.top_k == 0 ? raw_RV_.size(1) : rule.top_k));
      // A share that is reached but for the rounding of the sums is reached.
      values.push_back(rule.top_p < 1 ? rule.top_p * (1 - 1e-12) : INFINITY);
      values.push_back(rule.min_p);
      values.push_back(row.uniform);
      values.push_back(draws ? 1.0 : 0.0);
    }
    return device::to_device<double>(values, device_).view({-1, kRules});
  }

  // Rows without temperature in a batch with one draw too; their result is not used.
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
  at::Device device_;
  at::Tensor raw_RV_;
};

void note_logprobs(const at::Tensor& logprobs_RV, std::span<const SamplingRow> rows,
                   std::vector<SampledToken>& tokens) {
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!rows[row].wants_logprob || tokens[row].id == kNoToken) continue;
    const at::Tensor of_row = logprobs_RV.select(0, static_cast<int64_t>(row));
    tokens[row].logprob = of_row[tokens[row].id].item<float>();
    auto [sorted, order] = of_row.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true);
    sorted = sorted.narrow(0, 0, rows[row].num_likeliest).cpu();
    order = order.narrow(0, 0, rows[row].num_likeliest).cpu();
    for (int64_t at = 0; at < rows[row].num_likeliest; ++at) {
      const float logprob = sorted.const_data_ptr<float>()[at];
      if (std::isfinite(logprob))
        tokens[row].likeliest.push_back({order.const_data_ptr<int64_t>()[at], logprob});
    }
  }
}

std::vector<SampledToken> sample(const at::Tensor& logits_RV, int64_t num_ids,
                                 std::span<const SamplingRow> rows) {
  const Batch batch(logits_RV, num_ids, rows);
  const at::Tensor ids_R = batch.pick().cpu();
  std::vector<SampledToken> tokens(rows.size());
  bool wanted = false;
  for (size_t row = 0; row < rows.size(); ++row) {
    tokens[row].id = ids_R.const_data_ptr<int64_t>()[row];
    wanted = wanted || rows[row].wants_logprob;
  }
  if (wanted) note_logprobs(batch.logprobs(), rows, tokens);
  return tokens;
}

}  // namespace

bool penalises(std::span<const SamplingRow> rows) {
  return std::any_of(rows.begin(), rows.end(), [](const SamplingRow& row) {
    return row.rule.repetition_penalty != 1.0 && !row.seen_ids.empty();
  });
}

at::Tensor penalised_logits(const at::Tensor& logits_RV, std::span<const SamplingRow> rows) {
  std::vector<int64_t> places;
  std::vector<float> penalties;
  const int64_t num_ids = logits_RV.size(1);
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].rule.repetition_penalty == 1.0) continue;
    for (const int32_t id : rows[row].seen_ids) {
      if (id >= num_ids) continue;
      places.push_back(static_cast<int64_t>(row) * num_ids + id);
      penalties.push_back(static_cast<float>(rows[row].rule.repetition_penalty));
    }
  }
  if (places.empty()) return logits_RV;
  const at::Tensor places_N = device::to_device<int64_t>(places, logits_RV.device());
  const at::Tensor penalties_N = device::to_device<float>(penalties, logits_RV.device());
  const at::Tensor before_N = logits_RV.flatten().index_select(0, places_N);
  const at::Tensor after_N =
      at::where(before_N.lt(0), before_N.mul(penalties_N), before_N.div(penalties_N));
  return logits_RV.flatten().index_copy(0, places_N, after_N).view(logits_RV.sizes());
}

const SamplerOps kSamplerAten = {sample};

}  // namespace convoy::kernels
