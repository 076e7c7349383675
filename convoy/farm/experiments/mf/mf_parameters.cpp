// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_parameters.h"

#include <cmath>

#include "convoy/farm/experiments/parameter_json.h"

namespace convoy::experiments {

// Found by parameter_json.h through their arguments, so in no nameless namespace.
static const EnumWords& words(MfActivation) {
  static const EnumWords list{{"Linear", "Tanh", "LeakyReLU"}};
  return list;
}
static const EnumWords& words(MfPrior) {
  static const EnumWords list{{"gauss", "unif"}};
  return list;
}
static const EnumWords& words(MfShortcut) {
  static const EnumWords list{{"none", "gram", "bartlett"}};
  return list;
}

// The one list of keys: a visitor either reads or writes every member.
template <FieldsOf<MfParameters> Parameters, class Visitor>
static void each_field(Parameters& p, Visitor&& visit) {
  visit("n_rows", p.n_rows);
  visit("n_cols", p.n_cols);
  visit("width", p.width);
  visit("depth", p.depth);
  visit("gt_rank", p.gt_rank);
  visit("gt_norm", p.gt_norm);
  visit("completion", p.completion);
  visit("num_measurements", p.num_measurements);
  visit("activation", p.activation);
  visit("negative_slope", p.negative_slope);
  visit("sweep_seed", p.sweep_seed);
  visit("truth", p.truth);
  visit("measurements", p.measurements);
  visit("gnc_eps_train", p.gnc_eps_train);
  visit("gnc_init", p.gnc_init);
  visit("gnc_normalize", p.gnc_normalize);
  visit("gnc_softening", p.gnc_softening);
  visit("shortcut", p.shortcut);
  visit("gd_lr", p.descent.lr);
  visit("gd_epochs", p.descent.epochs);
  visit("gd_init_scale", p.descent.init_scale);
  visit("gd_log_period", p.descent.log_period);
  visit("gd_momentum", p.descent.momentum);
  visit("gd_apply_momentum", p.descent.apply_momentum);
}

namespace {

template <class Enum>
std::string word_of(Enum value) {
  return words(value).of[static_cast<size_t>(value)];
}

void check_whole(const char* key, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return;
  throw ConfigError(fmt::format("{}: wanted {} to {}, found {}", key, low, high, value),
                    {.key = key});
}

void check_number(const char* key, double value, bool above_zero) {
  if (std::isfinite(value) && (above_zero ? value > 0 : value >= 0)) return;
  throw ConfigError(fmt::format("{}: wanted a number {} 0, found {}", key,
                                above_zero ? "above" : "of at least", value),
                    {.key = key});
}

void check_shape(const MfParameters& p) {
  constexpr int64_t kLargestSide = 1024, kMostEntries = 4096;
  check_whole("n_rows", p.n_rows, 1, kLargestSide);
  check_whole("n_cols", p.n_cols, 1, kLargestSide);
  if (p.num_entries() > kMostEntries)
    throw ConfigError(fmt::format("n_rows x n_cols: wanted at most {} entries, found {}",
                                  kMostEntries, p.num_entries()),
                      {.key = "n_rows", .hint = "lower --n-rows or --n-cols"});
  check_whole("width", p.width, 1, 4096);
  check_whole("depth", p.depth, 1, 1000);
  const int64_t hidden = p.depth == 1 ? 0 : (p.depth - 2) * p.width * p.width;
  constexpr int64_t kMostWeights = int64_t{1} << 22;
  if (hidden + p.width * (p.n_rows + p.n_cols) > kMostWeights)
    throw ConfigError(fmt::format("width {} at depth {} has more than {} weights", p.width, p.depth,
                                  kMostWeights),
                      {.key = "width", .hint = "lower the width or the depth"});
  check_whole("gt_rank", p.gt_rank, 1, 1024);
}

void check_given(const MfParameters& p) {
  const auto entries = static_cast<size_t>(p.num_entries());
  if (!p.truth.empty() && p.truth.size() != entries)
    throw ConfigError(
        fmt::format("truth: wanted {} entries, n_rows x n_cols, found {}", entries, p.truth.size()),
        {.key = "truth", .hint = "leave truth out, and the seed draws it"});
  if (p.measurements.empty()) return;
  bool right = std::ssize(p.measurements) == p.num_measurements && !p.completion;
  for (const auto& one : p.measurements) right = right && one.size() == entries;
  if (!right)
    throw ConfigError(
        fmt::format("measurements: wanted {} lists of {} entries, and completion false",
                    p.num_measurements, entries),
        {.key = "measurements", .hint = "leave measurements out, and the seed draws them"});
}

}  // namespace

std::string activation_word(MfActivation activation) { return word_of(activation); }

std::string prior_word(MfPrior prior) { return word_of(prior); }

std::string shortcut_word(MfShortcut shortcut) { return word_of(shortcut); }

MfActivation parse_activation(const std::string& word) {
  for (const auto known : {MfActivation::Linear, MfActivation::Tanh, MfActivation::LeakyReLU})
    if (word == activation_word(known)) return known;
  if (word == "Leaky ReLU") return MfActivation::LeakyReLU;
  throw ConfigError(fmt::format("activation: wanted Linear, Tanh or LeakyReLU, found `{}`", word),
                    {.key = "activation", .hint = "such as --activation Tanh"});
}

MfPrior parse_prior(const std::string& word) {
  for (const auto known : {MfPrior::Gauss, MfPrior::Uniform})
    if (word == prior_word(known)) return known;
  throw ConfigError(fmt::format("gnc_init: wanted gauss or unif, found `{}`", word),
                    {.key = "gnc_init", .hint = "such as --gnc-init gauss"});
}

std::string shortcut_refusal(const MfParameters& p, MfShortcut shortcut) {
  if (shortcut == MfShortcut::None) return "";
  if (p.gnc_init != MfPrior::Gauss) return "it needs Gaussian weights (gnc_init gauss)";
  if (p.depth < 2) return "there is no hidden layer";
  if (shortcut == MfShortcut::Gram)
    return p.width > p.n_rows ? "" : "it needs a width above n_rows: otherwise it saves nothing";
  if (p.activation != MfActivation::Linear) return "it needs linear layers (activation Linear)";
  return p.width >= p.n_rows ? "" : "it needs a width of at least n_rows";
}

void MfParameters::check() const {
  check_shape(*this);
  check_number("gt_norm", gt_norm, false);
  check_number("negative_slope", negative_slope, false);
  check_number("gnc_eps_train", gnc_eps_train, true);
  check_number("gnc_softening", gnc_softening, false);
  check_number("gd_lr", descent.lr, true);
  check_number("gd_init_scale", descent.init_scale, false);
  check_number("gd_momentum", descent.momentum, false);
  check_whole("gd_epochs", descent.epochs, 1, int64_t{1} << 40);
  check_whole("gd_log_period", descent.log_period, 1, int64_t{1} << 40);
  if (num_entries() < 2)
    throw ConfigError(
        "n_rows x n_cols: wanted at least 2 entries, to train and to test on, found 1",
        {.key = "n_rows", .hint = "raise --n-rows or --n-cols"});
  if (num_measurements < 1 || num_measurements >= num_entries())
    throw ConfigError(fmt::format("num_measurements: wanted 1 to {}, so that some of {} x {} "
                                  "entries are left to test on, found {}",
                                  num_entries() - 1, n_rows, n_cols, num_measurements),
                      {.key = "num_measurements",
                       .hint = "lower --num-measurements, or raise --n-rows or --n-cols"});
  check_given(*this);
  const std::string refusal = shortcut_refusal(*this, shortcut);
  if (!refusal.empty())
    throw ConfigError(
        fmt::format("shortcut {} cannot be used at width {}, depth {}: {}", shortcut_word(shortcut),
                    width, depth, refusal),
        {.key = "shortcut", .hint = "use auto: it takes a shortcut where one is allowed"});
}

MfParameters MfParameters::parse(const std::string& json) {
  MfParameters parameters;
  read_parameters(json, "mf", parameters);
  parameters.check();
  return parameters;
}

std::string MfParameters::json() const { return changed_parameters(*this); }

}  // namespace convoy::experiments
