// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::nn {
namespace {

constexpr int64_t kFirstPositions = 512;

// "llama3": long wavelengths are stretched by `factor`, short wavelengths are kept, and wavelengths
// between them are blended.
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
  // The feature that turns `turns` times within the original positions.
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

// Number of features that the kernels rotate in pairs: feature j with feature j + half of this
// number. In a proportional rotation it includes the features that stay, as pairs of angle 0.
int64_t rotated_features(const architecture::RopeSpec& spec, int64_t head_dim) {
  const bool is_part =
      spec.rotated_features > 0 && spec.kind != architecture::RopeKind::Proportional;
  return is_part ? spec.rotated_features : head_dim;
}

at::Tensor wavelengths_of(const architecture::RopeSpec& spec, int64_t head_dim) {
  const int64_t features = rotated_features(spec, head_dim);
  return at::pow(spec.theta, at::arange(0, features, 2, at::kLong).to(at::kFloat) /
                                 static_cast<double>(features));
}

// "proportional": the pairs behind the rotated pairs are not rotated.
at::Tensor stop_proportional(const at::Tensor& frequencies, const architecture::RopeSpec& spec) {
  if (spec.rotated_features == 0) return frequencies / spec.factor;
  const int64_t turning = spec.rotated_features / 2;
  const at::Tensor kept = frequencies.narrow(0, 0, turning) / spec.factor;
  return at::constant_pad_nd(kept, {0, frequencies.size(0) - turning});
}

// "longrope": every pair has a divisor of its own.
at::Tensor stretch_longrope(const architecture::RopeSpec& spec, const std::vector<double>& divisors,
                            int64_t head_dim) {
  return 1.0 / (at::tensor(divisors, at::kFloat) * wavelengths_of(spec, head_dim));
}

}  // namespace

at::Tensor inverse_frequencies(const architecture::RopeSpec& spec, int64_t head_dim) {
  const at::Tensor frequencies = 1.0 / wavelengths_of(spec, head_dim);
  switch (spec.kind) {
    case architecture::RopeKind::Linear:
      return frequencies / spec.factor;
    case architecture::RopeKind::Llama3:
      return stretch_llama3(frequencies, spec);
    case architecture::RopeKind::Yarn:
      return stretch_yarn(frequencies, spec, rotated_features(spec, head_dim));
    case architecture::RopeKind::LongRope:
      return stretch_longrope(spec, spec.divisors, head_dim);
    case architecture::RopeKind::Proportional:
      return stop_proportional(frequencies, spec);
    case architecture::RopeKind::Default:
      break;
  }
  return frequencies;
}

FeatureOrder feature_order(const architecture::RopeSpec& spec, int64_t head_dim) {
  const int64_t rotated = rotated_features(spec, head_dim);
  const int64_t still = head_dim - rotated;
  if (still == 0 && !spec.neighbours) return {};
  const at::Tensor features = at::arange(head_dim, at::kLong);
  const at::Tensor turning = features.narrow(0, 0, rotated);
  // Each half holds one feature of every pair, then half of the features that stay.
  const at::Tensor pairs =
      spec.neighbours ? turning.view({rotated / 2, 2}).t() : turning.view({2, rotated / 2});
  const at::Tensor from_E =
      at::cat({pairs, features.narrow(0, rotated, still).view({2, still / 2})}, 1).view({-1});
  return {from_E, from_E.argsort()};
}

at::Tensor in_order(const at::Tensor& x_THE, const FeatureOrder& order) {
  if (!order.from_E.defined()) return x_THE;
  const bool records = kernels::records_gradient({x_THE});
  const at::NoGradGuard no_grad;
  const at::Tensor ordered_THE = x_THE.index_select(2, order.from_E);
  if (!records) return ordered_THE;
  return kernels::with_backward(
      ordered_THE, {.op = "feature order",
                    .inputs = {x_THE},
                    .saved = {order.back_E},
                    .gradients = [](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                                    const std::vector<bool>&) -> std::vector<at::Tensor> {
                      return {grad.index_select(2, saved[0])};
                    }});
}

RopeTable::RopeTable(const architecture::RopeSpec& spec, int64_t head_dim)
    : inverse_frequencies_E_(inverse_frequencies(spec, head_dim)),
      long_frequencies_E_(spec.kind == architecture::RopeKind::LongRope
                              ? stretch_longrope(spec, spec.long_divisors, head_dim)
                              : at::Tensor()),
      original_positions_(spec.original_max_positions),
      scale_(spec.table_scale),
      still_pairs_((head_dim - rotated_features(spec, head_dim)) / 2),
      order_(feature_order(spec, head_dim)) {}

at::Tensor RopeTable::angles(int64_t num_positions) const {
  const auto turned = [](int64_t positions, const at::Tensor& frequencies_E) {
    return at::arange(positions, at::kFloat).unsqueeze(1) * frequencies_E.unsqueeze(0);
  };
  if (!long_frequencies_E_.defined() || num_positions <= original_positions_)
    return turned(num_positions, inverse_frequencies_E_);
  return at::cat({turned(original_positions_, inverse_frequencies_E_),
                  turned(num_positions - original_positions_, long_frequencies_E_)});
}

void RopeTable::ensure(int64_t num_positions, at::Device device) {
  const int64_t present = cos_PE_.defined() ? cos_PE_.size(0) : 0;
  if (num_positions <= present && cos_PE_.device() == device) return;
  const int64_t rows = std::max({kFirstPositions, 2 * present, num_positions});
  const at::Tensor angles_PE = angles(rows);
  // Features that are not rotated are not scaled either.
  const auto with_still = [&](const at::Tensor& rotated, double still) {
    return at::constant_pad_nd(rotated * scale_, {0, still_pairs_}, still).to(device);
  };
  cos_PE_ = with_still(angles_PE.cos(), 1.0);
  sin_PE_ = with_still(angles_PE.sin(), 0.0);
  if (!order_.from_E.defined()) return;
  order_ = {order_.from_E.to(device), order_.back_E.to(device)};
}

}  // namespace convoy::nn
