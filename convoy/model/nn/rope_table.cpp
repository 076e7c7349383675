// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace convoy::nn {
namespace {

constexpr int64_t kFirstPositions = 512;

// "llama3": long wavelengths are stretched by `factor`, short ones kept, those between blended.
at::Tensor stretch_llama3(const at::Tensor& frequencies, const architecture::RopeSpec& spec) {
  const auto original = static_cast<double>(spec.original_max_positions);
  const double longest = original / spec.low_freq_factor;
  const double shortest = original / spec.high_freq_factor;
  const at::Tensor wavelengths = (2 * std::numbers::pi) / frequencies;
  const at::Tensor is_long = wavelengths > longest;
  const at::Tensor stretched = at::where(is_long, frequencies / spec.factor, frequencies);
  const at::Tensor share = (original / wavelengths - spec.low_freq_factor) /
                           (spec.high_freq_factor - spec.low_freq_factor);
  const at::Tensor blended = (1 - share) * stretched / spec.factor + share * stretched;
  const at::Tensor is_between = (wavelengths < shortest).logical_not() * is_long.logical_not();
  return at::where(is_between, blended, stretched);
}

// "yarn": features between the two bounds are blended in proportion to their place.
at::Tensor stretch_yarn(const at::Tensor& frequencies, const architecture::RopeSpec& spec,
                        int64_t head_dim) {
  const auto features = static_cast<double>(head_dim);
  // The feature that turns so often within the original positions.
  const auto feature_of = [&](double turns) {
    const auto original = static_cast<double>(spec.original_max_positions);
    return features * std::log(original / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(spec.theta));
  };
  double first = feature_of(spec.beta_fast), last = feature_of(spec.beta_slow);
  if (spec.whole_features) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, features - 1);
  if (first == last) last += 0.001;
  const at::Tensor stretched_share =
      ((at::arange(head_dim / 2, at::kFloat) - first) / (last - first)).clamp(0, 1);
  const at::Tensor kept_share = 1 - stretched_share;
  return frequencies / spec.factor * (1 - kept_share) + frequencies * kept_share;
}

}  // namespace

at::Tensor inverse_frequencies(const architecture::RopeSpec& spec, int64_t head_dim) {
  const at::Tensor exponents =
      at::arange(0, head_dim, 2, at::kLong).to(at::kFloat) / static_cast<double>(head_dim);
  const at::Tensor frequencies = 1.0 / at::pow(spec.theta, exponents);
  switch (spec.kind) {
    case architecture::RopeKind::Linear:
      return frequencies / spec.factor;
    case architecture::RopeKind::Llama3:
      return stretch_llama3(frequencies, spec);
    case architecture::RopeKind::Yarn:
      return stretch_yarn(frequencies, spec, head_dim);
    case architecture::RopeKind::Default:
      break;
  }
  return frequencies;
}

RopeTable::RopeTable(const architecture::RopeSpec& spec, int64_t head_dim)
    : inverse_frequencies_E_(inverse_frequencies(spec, head_dim)), scale_(spec.table_scale) {}

void RopeTable::ensure(int64_t num_positions, at::Device device) {
  const int64_t present = cos_PE_.defined() ? cos_PE_.size(0) : 0;
  if (num_positions <= present && cos_PE_.device() == device) return;
  const int64_t rows = std::max({kFirstPositions, 2 * present, num_positions});
  const at::Tensor angles =
      at::arange(rows, at::kFloat).unsqueeze(1) * inverse_frequencies_E_.unsqueeze(0);
  cos_PE_ = (angles.cos() * scale_).to(device);
  sin_PE_ = (angles.sin() * scale_).to(device);
}

}  // namespace convoy::nn
