// SPDX-License-Identifier: Apache-2.0
//
// By sorting each row: a GPU does that fast. All rows together, each by its own rule.
#include <algorithm>
#include <cmath>

#include "convoy/machine/device/transfer.h"
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
    const at::Tensor values_RV = penalised();
    const at::Tensor usable_R =
        raw_RV_.amax({1}).isfinite().logical_and(values_RV.amax({1}).isfinite());
    at::Tensor ids_R = values_RV.argmax(1);
    const bool draws = std::any_of(rows_.begin(), rows_.end(), [](const SamplingRow& row) {
      return row.rule.temperature != 0.0;
    });
    if (draws) {
      const at::Tensor greedy_R = of_rows([](const SamplingRow& row) {
                                    return row.rule.temperature == 0.0 ? 1.0 : 0.0;
                                  }).gt(0);
      ids_R = at::where(greedy_R, ids_R, draw(values_RV));
    }
    return ids_R.masked_fill(usable_R.logical_not(), kNoToken);
  }

  // log(softmax) of the logits as they came.
  at::Tensor logprobs() const { return raw_RV_.log_softmax(1); }

 private:
  template <class Get>
  at::Tensor of_rows(const Get& get) const {
    std::vector<double> values;
    for (const SamplingRow& row : rows_) values.push_back(get(row));
    return device::to_device<double>(values, device_);
  }

  at::Tensor penalised() const {
    std::vector<int64_t> places;
    std::vector<float> penalties;
    const int64_t num_ids = raw_RV_.size(1);
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (rows_[row].rule.repetition_penalty == 1.0) continue;
      for (const int32_t id : rows_[row].seen_ids) {
        if (id >= num_ids) continue;
        places.push_back(static_cast<int64_t>(row) * num_ids + id);
        penalties.push_back(static_cast<float>(rows_[row].rule.repetition_penalty));
      }
    }
    if (places.empty()) return raw_RV_;
    const at::Tensor places_N = device::to_device<int64_t>(places, device_);
    const at::Tensor penalties_N = device::to_device<float>(penalties, device_);
    const at::Tensor before_N = raw_RV_.flatten().index_select(0, places_N);
    const at::Tensor after_N =
        at::where(before_N.lt(0), before_N.mul(penalties_N), before_N.div(penalties_N));
    return raw_RV_.flatten().index_copy(0, places_N, after_N).view(raw_RV_.sizes());
  }

  // Rows without temperature in a batch with one draw too; their result is not used.
  at::Tensor draw(const at::Tensor& values_RV) const {
    const int64_t num_ids = values_RV.size(1);
    const at::Tensor temperature_R1 =
        of_rows([](const SamplingRow& row) {
          return row.rule.temperature == 0.0 ? 1.0 : row.rule.temperature;
        }).unsqueeze(1);
    const at::Tensor count_R1 =
        of_rows([&](const SamplingRow& row) {
          return static_cast<double>(row.rule.top_k == 0 ? num_ids : row.rule.top_k);
        }).unsqueeze(1);
    // A share that is reached but for the rounding of the sums is reached.
    const at::Tensor share_R1 =
        of_rows([](const SamplingRow& row) {
          return row.rule.top_p < 1 ? row.rule.top_p * (1 - 1e-12) : INFINITY;
        }).unsqueeze(1);
    const at::Tensor min_p_R1 =
        of_rows([](const SamplingRow& row) { return row.rule.min_p; }).unsqueeze(1);
    auto [sorted_RV, order_RV] =
        values_RV.to(at::kDouble).sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
    const at::Tensor scaled_RV = sorted_RV.sub(sorted_RV.narrow(1, 0, 1)).div_(temperature_R1);
    const at::Tensor rank_V = at::arange(num_ids, scaled_RV.options());
    at::Tensor weights_RV = scaled_RV.exp().masked_fill_(rank_V.ge(count_R1), 0);
    const at::Tensor before_RV = weights_RV.cumsum(1).sub_(weights_RV);
    const at::Tensor left_out =
        before_RV.ge(share_R1.mul(weights_RV.sum({1}, true))).logical_or(weights_RV.lt(min_p_R1));
    weights_RV = weights_RV.masked_fill(left_out, 0);
    return place_of(at::zeros_like(weights_RV).scatter_(1, order_RV, weights_RV));
  }

  // The first id of each row whose cumulative weight lies above its share of the whole.
  at::Tensor place_of(const at::Tensor& weights_RV) const {
    const int64_t num_ids = weights_RV.size(1);
    const at::Tensor sums_RV = weights_RV.cumsum(1);
    const at::Tensor uniform_R = of_rows([](const SamplingRow& row) { return row.uniform; });
    const at::Tensor wanted_R1 = uniform_R.unsqueeze(1) * sums_RV.narrow(1, num_ids - 1, 1);
    const at::Tensor ids_V = at::arange(num_ids, weights_RV.options().dtype(at::kLong));
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

const SamplerOps kSamplerAten = {sample};

}  // namespace convoy::kernels
