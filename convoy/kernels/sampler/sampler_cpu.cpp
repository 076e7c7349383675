// SPDX-License-Identifier: Apache-2.0
//
// One thread per row. Weights are exp((logit - largest) / temperature) in fp32, their sums fp64. No vocabulary is sorted:
// ids fall into buckets of nearly equal logits, bucket sums find where a share or a rank lies, and only the ids of that
// bucket are put in order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "convoy/kernels/sampler/sampler_ops.h"
#include "convoy/kernels/simd/element.h"
#include "convoy/kernels/simd/simd_kernels.h"

namespace convoy::kernels::sampler {
namespace {

constexpr int64_t kBuckets = 2048;
// exp(-x) is 0 from here on, so lower logits need no buckets of their own.
constexpr double kUnderflow = 88.0;

float bounded(double value) {
  constexpr double kSmallest = std::numeric_limits<float>::min();
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, kSmallest, kLargest));
}

struct Candidate {
  float logit = 0;
  float weight = 0;
  int64_t id = 0;
};

// The most likely ids: all buckets before `bucket`, and the first `taken` of it.
struct Prefix {
  int64_t bucket = 0;
  int64_t taken = 0;
  double weight = 0;
};

// The ids of a row by falling logits, equal ones by rising id. Holds its buffers from row to row.
template <class Element>
class Ranking {
 public:
  explicit Ranking(int64_t num_ids)
      : weights_(num_ids), bucket_of_(num_ids), counts_(kBuckets), sums_(kBuckets) {}

  void rank(const Element* logits, const LogitRange& range, float inverse_temperature) {
    logits_ = logits;
    ordered_bucket_ = -1;
    const double span = std::min(static_cast<double>(range.highest) - range.lowest,
                                 kUnderflow / inverse_temperature);
    const LogitScale scale{.highest = range.highest,
                           .inverse_temperature = inverse_temperature,
                           .buckets_per_unit = bounded((kBuckets - 1) / span),
                           .last_bucket = static_cast<float>(kBuckets - 1)};
    const auto count = static_cast<int64_t>(weights_.size());
    simd_kernels<Element>().weigh_logits(logits, count, scale, weights_.data(), bucket_of_.data());
    std::fill(counts_.begin(), counts_.end(), 0);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (int64_t id = 0; id < count; ++id) {
      ++counts_[bucket_of_[id]];
      sums_[bucket_of_[id]] += static_cast<double>(weights_[id]);
    }
  }

  // The `count` most likely ids; 1 <= count.
  Prefix of_count(int64_t count) {
    Prefix prefix{.bucket = 0, .taken = count, .weight = 0};
    while (prefix.taken > counts_[prefix.bucket] && prefix.bucket + 1 < kBuckets) {
      prefix.weight += sums_[prefix.bucket];
      prefix.taken -= counts_[prefix.bucket++];
    }
    prefix.taken = std::min(prefix.taken, counts_[prefix.bucket]);
    if (prefix.taken == counts_[prefix.bucket]) {
      prefix.weight += sums_[prefix.bucket];
    } else {
      for (int64_t i = 0; i < prefix.taken; ++i)
        prefix.weight += static_cast<double>(ordered(prefix.bucket)[i].weight);
    }
    return prefix;
  }

  // The shortest prefix whose weight is `enough`, at most `longest`.
  template <class Enough>
  Prefix of_weight(const Prefix& longest, const Enough& enough) {
    double weight = 0;
    for (int64_t bucket = 0; bucket <= longest.bucket; ++bucket) {
      const bool is_last = bucket == longest.bucket;
      if (!is_last && !enough(weight + sums_[bucket])) {
        weight += sums_[bucket];
        continue;
      }
      const int64_t present = is_last ? longest.taken : counts_[bucket];
      for (int64_t i = 0; i < present; ++i) {
        weight += static_cast<double>(ordered(bucket)[i].weight);
        if (enough(weight)) return {bucket, i + 1, weight};
      }
      if (present > 0) return {bucket, present, weight};
    }
    return longest;
  }

  int64_t last_id(const Prefix& prefix) { return ordered(prefix.bucket)[prefix.taken - 1].id; }

 private:
  const std::vector<Candidate>& ordered(int64_t bucket) {
    if (bucket == ordered_bucket_) return ordered_;
    ordered_.clear();
    ordered_bucket_ = bucket;
    const auto wanted = static_cast<uint16_t>(bucket);
    for (size_t id = 0; id < bucket_of_.size(); ++id) {
      if (bucket_of_[id] == wanted)
        ordered_.push_back(
            {static_cast<float>(logits_[id]), weights_[id], static_cast<int64_t>(id)});
    }
    std::sort(ordered_.begin(), ordered_.end(), [](const Candidate& a, const Candidate& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
    return ordered_;
  }

  const Element* logits_ = nullptr;
  std::vector<float> weights_;
  std::vector<uint16_t> bucket_of_;
  std::vector<int64_t> counts_;
  std::vector<double> sums_;
  std::vector<Candidate> ordered_;  // of ordered_bucket_
  int64_t ordered_bucket_ = -1;
};

template <class Element>
class RowSampler {
 public:
  RowSampler(const SamplingRule& rule, int64_t num_ids)
      : rule_(rule),
        num_ids_(num_ids),
        inverse_temperature_(bounded(1.0 / rule.temperature)),
        ranking_(rule.temperature > 0 ? num_ids : 0) {}

  int64_t pick(const Element* logits, double uniform) {
    const LogitRange range = simd_kernels<Element>().logit_range(logits, num_ids_);
    if (!range.all_numbers || !std::isfinite(range.highest)) return kNoToken;
    if (rule_.temperature == 0.0) {
      return std::find_if(
                 logits, logits + num_ids_,
                 [&](Element logit) { return static_cast<float>(logit) == range.highest; }) -
             logits;
    }
    const bool keeps_all = rule_.top_k == 0 || rule_.top_k >= num_ids_;
    if (keeps_all && rule_.top_p >= 1.0) return by_id(logits, range, uniform);
    ranking_.rank(logits, range, inverse_temperature_);
    const Prefix kept = ranking_.of_count(keeps_all ? num_ids_ : rule_.top_k);
    const Prefix nucleus = ranking_.of_weight(
        kept, [&](double weight) { return weight >= rule_.top_p * kept.weight; });
    const double place = uniform * nucleus.weight;
    return ranking_.last_id(
        ranking_.of_weight(nucleus, [&](double weight) { return weight > place; }));
  }

 private:
  // No order is needed.
  int64_t by_id(const Element* logits, const LogitRange& range, double uniform) {
    constexpr int64_t kBlock = 1024;
    const auto& loops = simd_kernels<Element>();
    weights_.resize(num_ids_);
    block_sums_.clear();
    loops.weigh_logits(logits, num_ids_,
                       {.highest = range.highest, .inverse_temperature = inverse_temperature_},
                       weights_.data(), nullptr);
    double total = 0;
    for (int64_t begin = 0; begin < num_ids_; begin += kBlock) {
      block_sums_.push_back(static_cast<double>(
          loops.sum(weights_.data() + begin, std::min(kBlock, num_ids_ - begin))));
      total += block_sums_.back();
    }
    double rest = uniform * total;
    int64_t block = 0;
    while (block + 1 < static_cast<int64_t>(block_sums_.size()) && rest >= block_sums_[block])
      rest -= block_sums_[block++];
    int64_t last = 0;  // with a weight: what rounding leaves over goes to it
    for (int64_t id = block * kBlock; id < num_ids_; ++id) {
      if (weights_[id] > 0) last = id;
      rest -= static_cast<double>(weights_[id]);
      if (rest < 0) return id;
    }
    return last;
  }

  SamplingRule rule_;
  int64_t num_ids_;
  float inverse_temperature_;
  Ranking<Element> ranking_;
  std::vector<float> weights_;
  std::vector<double> block_sums_;
};

at::Tensor sample(const at::Tensor& logits_RV, int64_t num_ids, const SamplingRule& rule,
                  const at::Tensor& uniform_R) {
  at::Tensor ids_R = at::empty({logits_RV.size(0)}, at::kLong);
  const double* uniform = uniform_R.const_data_ptr<double>();
  auto* ids = ids_R.mutable_data_ptr<int64_t>();
  with_element(logits_RV, "sample_tokens", [&](auto element) {
    using Element = decltype(element);
    const auto* logits = logits_RV.const_data_ptr<Element>();
    const int64_t stride = logits_RV.stride(0);
    for_tasks(logits_RV.size(0), [&]() -> TaskBody {
      auto sampler = std::make_shared<RowSampler<Element>>(rule, num_ids);
      return [=](int64_t row) { ids[row] = sampler->pick(logits + row * stride, uniform[row]); };
    });
  });
  return ids_R;
}

}  // namespace
}  // namespace convoy::kernels::sampler

namespace convoy::kernels {

const SamplerOps kSamplerCpu = {sampler::sample};

}  // namespace convoy::kernels
