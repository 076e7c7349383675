// SPDX-License-Identifier: Apache-2.0
//
// One thread per row. Weights are exp((logit - largest) / temperature) in fp32, their sums fp64. No
// vocabulary is sorted: see logit_ranks.h. A row's passes stay in cache and take about a hundredth
// of the product that made its logits, so a row is not divided among threads.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "convoy/model/kernels/sampler/allowed_ids.h"
#include "convoy/model/kernels/sampler/logit_ranks.h"
#include "convoy/model/kernels/sampler/penalised_logits.h"
#include "convoy/model/kernels/sampler/sampler_ops.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels::sampler {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
// exp(-x) is 0 from here on.
constexpr double kUnderflow = 88.0;
constexpr int64_t kDrawBlock = 1024;

float inverse_of(double temperature) {
  constexpr double kSmallest = std::numeric_limits<float>::min();
  return static_cast<float>(
      std::clamp(1.0 / temperature, kSmallest, static_cast<double>(kLargest)));
}

bool is_usable(const LogitRange& range) {
  return range.all_numbers && std::isfinite(range.highest);
}
int64_t first_of_largest(const LargestLogit& largest) {
  return largest.all_numbers && std::isfinite(largest.value) ? largest.index : kNoToken;
}

template <class Element>
class RowSampler {
 public:
  // `unread_ids`: the ids that SamplingRow::unread_id points into.
  RowSampler(int64_t num_ids, int64_t num_logits, const int64_t* unread_ids)
      : num_ids_(num_ids), num_logits_(num_logits), unread_ids_(unread_ids) {}

  SampledToken pick(const Element* logits, const SamplingRow& row) {
    SampledToken token;
    const bool penalises = row.changes_logits();
    if (row.rule.temperature == 0.0 && !penalises && !row.wants_logprob && row.allowed.empty()) {
      token.id = first_of_largest(loops_.largest_logit(logits, num_ids_));
      return token;
    }
    load(logits, row);
    const LogitRange range = floats_.logit_range(logits_.data(), std::ssize(logits_));
    if (logits_.empty() || !is_usable(range)) return token;
    const float log_sum_exp = row.wants_logprob ? log_sum_exp_of(logits) : 0.0f;
    if (row.wants_logprob && row.num_likeliest > 0)
      note_likeliest(range, row.num_likeliest, log_sum_exp, token);
    if (penalises) {
      penalise(logits, row);
      add(row);
    }
    const int64_t place = pick_penalised(
        penalises ? floats_.logit_range(logits_.data(), std::ssize(logits_)) : range, row);
    if (place == kNoToken) return token;
    token.id = id_at(place);
    if (row.wants_logprob) token.logprob = static_cast<float>(logits[token.id]) - log_sum_exp;
    return token;
  }

 private:
  // Fills logits_ with the logits of the ids that may be picked, in order of id. Their places in
  // logits_ stand for the ids from here on.
  void load(const Element* logits, const SamplingRow& row) {
    is_bound_ = !row.allowed.empty();
    if (is_bound_) allowed_.set(row.allowed, num_ids_);
    logits_.resize(is_bound_ ? allowed_.size() : num_ids_);
    weights_.resize(logits_.size());
    float* to = logits_.data();
    if (!is_bound_) return loops_.to_float(logits, to, num_ids_);
    allowed_.for_each_run([&](int64_t begin, int64_t count) {
      for (int64_t id = begin; id < begin + count; ++id) *to++ = static_cast<float>(logits[id]);
    });
  }

  int64_t id_at(int64_t place) const { return is_bound_ ? allowed_.id_at(place) : place; }
  int64_t place_of(int64_t id) const {
    if (is_bound_) return allowed_.place_of(id);
    return id < num_ids_ ? id : kNoPlace;
  }

  WeighedLogits weigh(const LogitRange& range, double temperature) {
    floats_.weigh_logits(logits_.data(), std::ssize(logits_), range.highest,
                         inverse_of(temperature), weights_.data());
    const double floor =
        std::max({static_cast<double>(range.lowest), range.highest - kUnderflow * temperature,
                  static_cast<double>(-kLargest)});
    return {logits_, weights_, range.highest, static_cast<float>(floor)};
  }

  // Sums over all logits as the model gave them, in the loop of the cross-entropy. Ids that a row
  // does not allow take part as -inf, so that the sum has the bits of such logits.
  float log_sum_exp_of(const Element* logits) {
    if constexpr (std::is_same_v<Element, float>) {
      if (!is_bound_) return floats_.log_sum_exp(logits, num_logits_, nullptr);
    }
    all_logits_.resize(num_logits_);
    if (is_bound_) {
      std::fill(all_logits_.begin(), all_logits_.end(), -std::numeric_limits<float>::infinity());
      const float* from = logits_.data();
      allowed_.for_each_run([&](int64_t begin, int64_t count) {
        std::copy_n(from, count, all_logits_.begin() + begin);
        from += count;
      });
    } else {
      loops_.to_float(logits, all_logits_.data(), num_logits_);
    }
    return floats_.log_sum_exp(all_logits_.data(), num_logits_, nullptr);
  }

  void note_likeliest(const LogitRange& range, int64_t count, float log_sum_exp,
                      SampledToken& token) {
    WeighedLogits raw = weigh(range, 1.0);
    if (std::isfinite(range.lowest)) raw.floor = range.lowest;
    for (const int32_t place : ranks_.in_order(raw, count))
      token.likeliest.push_back({id_at(place), logits_[place] - log_sum_exp});
  }

  void penalise(const Element* logits, const SamplingRow& row) {
    const auto penalty = static_cast<float>(row.rule.repetition_penalty);
    const auto penalise_id = [&](int64_t id) {
      const int64_t place = place_of(id);
      if (place == kNoPlace) return;
      const auto logit = static_cast<float>(logits[id]);
      logits_[place] = logit < 0 ? logit * penalty : logit / penalty;
    };
    for (const int32_t id : row.seen_ids) penalise_id(id);
    if (row.unread_id >= 0) penalise_id(unread_ids_[row.unread_id]);
  }

  void add(const SamplingRow& row) {
    const std::vector<AddedLogit> added = added_logits(row, num_ids_);
    for (const AddedLogit& one : added)
      if (const int64_t place = place_of(one.id); place != kNoPlace) logits_[place] += one.addend;
    if (row.unread_id < 0) return;
    const int64_t id = unread_ids_[row.unread_id];
    const int64_t place = place_of(id);
    if (place == kNoPlace) return;
    const bool is_known = std::any_of(added.begin(), added.end(), [id](const AddedLogit& one) {
      return one.is_of_answer && one.id == id;
    });
    const UnreadAddends addends = unread_addends_of(row);
    logits_[place] += is_known ? addends.each : addends.each + addends.first;
  }

  // Returns a place in logits_, or kNoToken.
  int64_t pick_penalised(const LogitRange& range, const SamplingRow& row) {
    const SamplingRule& rule = row.rule;
    const auto count = std::ssize(logits_);
    if (!is_usable(range)) return kNoToken;
    if (rule.temperature == 0.0)
      return first_of_largest(floats_.largest_logit(logits_.data(), count));
    const WeighedLogits weighed = weigh(range, rule.temperature);
    LikeliestIds kept;
    const bool cuts_count = rule.top_k > 0 && rule.top_k < count;
    if (cuts_count)
      kept =
          ranks_.shortest(weighed, [&](const LogitMass& mass) { return mass.count >= rule.top_k; });
    if (rule.top_p < 1.0) {
      const double enough =
          rule.top_p * (cuts_count ? kept.weight : floats_.sum(weights_.data(), count));
      const LikeliestIds most = kept;
      kept = ranks_.shortest(
          weighed, [&](const LogitMass& mass) { return mass.weight >= enough; },
          cuts_count ? &most : nullptr);
    }
    if (cuts_count || rule.top_p < 1.0 || rule.min_p > 0.0) keep(kept, rule.min_p);
    return draw(row.uniform);
  }

  void keep(const LikeliestIds& kept, double min_p) {
    const auto count = std::ssize(logits_);
    const int64_t to_last = std::min<int64_t>(kept.last_id, count - 1) + 1;
    const auto lowest_weight = static_cast<float>(min_p);
    floats_.keep_weights(logits_.data(), to_last, kept.last_logit, lowest_weight, weights_.data());
    floats_.keep_weights(logits_.data() + to_last, count - to_last,
                         std::nextafter(kept.last_logit, kLargest), lowest_weight,
                         weights_.data() + to_last);
  }

  // The place at this share of the weights.
  int64_t draw(double uniform) {
    const auto count = std::ssize(weights_);
    block_sums_.clear();
    double total = 0;
    for (int64_t begin = 0; begin < count; begin += kDrawBlock) {
      block_sums_.push_back(
          floats_.sum(weights_.data() + begin, std::min<int64_t>(kDrawBlock, count - begin)));
      total += block_sums_.back();
    }
    while (block_sums_.back() == 0) block_sums_.pop_back();
    double rest = uniform * total;
    size_t block = 0;
    while (block + 1 < block_sums_.size() && rest >= block_sums_[block])
      rest -= block_sums_[block++];
    int64_t last = kNoToken;  // the last place with a weight, which takes what rounding leaves over
    for (auto place = static_cast<int64_t>(block) * kDrawBlock; place < count; ++place) {
      if (weights_[place] > 0) last = place;
      rest -= static_cast<double>(weights_[place]);
      if (rest < 0) return place;
    }
    return last;
  }

  const SimdKernels<Element>& loops_ = simd_kernels<Element>();
  const SimdKernels<float>& floats_ = simd_kernels<float>();
  int64_t num_ids_;
  int64_t num_logits_;
  const int64_t* unread_ids_;
  bool is_bound_ = false;  // only some ids may be picked
  AllowedIds allowed_;
  LogitRanks ranks_;
  std::vector<float> logits_;
  std::vector<float> weights_;
  std::vector<float> all_logits_;
  std::vector<double> block_sums_;
};

SamplingTables make_tables(std::span<const SamplingRow>, int64_t, device::Upload&) { return {}; }

PickedTokens picked_of(const std::vector<SampledToken>& tokens) {
  const auto num_rows = static_cast<int64_t>(tokens.size());
  size_t most_likeliest = 0;
  for (const SampledToken& token : tokens)
    most_likeliest = std::max(most_likeliest, token.likeliest.size());
  const auto num_words = static_cast<int64_t>(2 * (1 + most_likeliest));
  PickedTokens picked{.next_ids_R = at::empty({num_rows}, at::kLong),
                      .sampled_RS = at::full({num_rows, num_words}, kNoToken, at::kInt)};
  auto* const next_ids = picked.next_ids_R.mutable_data_ptr<int64_t>();
  auto* const words = picked.sampled_RS.mutable_data_ptr<int32_t>();
  const auto write = [](int32_t* pair, const TokenLogprob& token) {
    pair[0] = static_cast<int32_t>(token.id);
    pair[1] = std::bit_cast<int32_t>(token.logprob);
  };
  for (int64_t row = 0; row < num_rows; ++row) {
    const SampledToken& token = tokens[row];
    int32_t* pair = words + row * num_words;
    next_ids[row] = std::max<int64_t>(token.id, 0);
    write(pair, {token.id, token.logprob});
    for (const TokenLogprob& likely : token.likeliest) write(pair += 2, likely);
  }
  return picked;
}

PickedTokens pick(const at::Tensor& logits_RV, int64_t num_ids, std::span<const SamplingRow> rows,
                  const SamplingTables&, const at::Tensor& unread_ids) {
  std::vector<SampledToken> tokens(rows.size());
  const int64_t* const unread =
      unread_ids.defined() ? unread_ids.const_data_ptr<int64_t>() : nullptr;
  with_element(logits_RV, "sample_tokens", [&](auto element) {
    using Element = decltype(element);
    const auto* logits = logits_RV.const_data_ptr<Element>();
    const int64_t stride = logits_RV.stride(0);
    for_tasks(logits_RV.size(0), kWorkOfElement * logits_RV.numel(), [&]() -> TaskBody {
      auto sampler = std::make_shared<RowSampler<Element>>(num_ids, logits_RV.size(1), unread);
      return [&, logits, stride, sampler](int64_t row) {
        tokens[row] = sampler->pick(logits + row * stride, rows[row]);
      };
    });
  });
  return picked_of(tokens);
}

}  // namespace
}  // namespace convoy::kernels::sampler

namespace convoy::kernels {

const SamplerOps kSamplerCpu = {sampler::make_tables, sampler::pick, /*reads_allowed_rows=*/true};

}  // namespace convoy::kernels
