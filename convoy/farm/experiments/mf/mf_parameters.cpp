// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_parameters.h"

#include "convoy/farm/experiments/cell_fields.h"

namespace convoy::experiments {
namespace {

CellFields fields_of_cell(MfParameters& parameters) {
  return {.list = config::list_fields(parameters),
          .data = {NumberRows{"measurements", &parameters.measurements}}};
}

void check_shape(const MfParameters& p) {
  constexpr int64_t kMostEntries = 4096;
  if (p.num_entries() > kMostEntries)
    throw ConfigError(fmt::format("n_rows x n_cols: wanted at most {} entries, found {}",
                                  kMostEntries, p.num_entries()),
                      {.key = "n_rows", .hint = "lower --n-rows or --n-cols"});
  const int64_t hidden = p.depth == 1 ? 0 : (p.depth - 2) * p.width * p.width;
  constexpr int64_t kMostWeights = int64_t{1} << 22;
  if (hidden + p.width * (p.n_rows + p.n_cols) > kMostWeights)
    throw ConfigError(fmt::format("width {} at depth {} has more than {} weights", p.width, p.depth,
                                  kMostWeights),
                      {.key = "width", .hint = "lower the width or the depth"});
  if (p.num_entries() < 2)
    throw ConfigError(
        "n_rows x n_cols: wanted at least 2 entries, to train and to test on, found 1",
        {.key = "n_rows", .hint = "raise --n-rows or --n-cols"});
  if (p.num_measurements >= p.num_entries())
    throw ConfigError(fmt::format("num_measurements: wanted 1 to {}, so that some of {} x {} "
                                  "entries are left to test on, found {}",
                                  p.num_entries() - 1, p.n_rows, p.n_cols, p.num_measurements),
                      {.key = "num_measurements",
                       .hint = "lower --num-measurements, or raise --n-rows or --n-cols"});
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

const std::vector<std::string>& mf_activation_words() {
  static const std::vector<std::string> words = {"Linear", "Tanh", "LeakyReLU", "Leaky ReLU"};
  return words;
}

const std::vector<std::string>& mf_prior_words() {
  static const std::vector<std::string> words = {"gauss", "unif"};
  return words;
}

const std::vector<std::string>& mf_shortcut_words() {
  static const std::vector<std::string> words = {"none", "gram", "bartlett"};
  return words;
}

MfActivation MfParameters::activation() const {
  if (activation_word == "Leaky ReLU") return MfActivation::LeakyReLU;
  return enumerator_of<MfActivation>(activation_word, mf_activation_words());
}

MfPrior MfParameters::gnc_init() const {
  return enumerator_of<MfPrior>(gnc_init_word, mf_prior_words());
}

MfShortcut MfParameters::shortcut() const {
  return enumerator_of<MfShortcut>(shortcut_word, mf_shortcut_words());
}

std::string shortcut_refusal(const MfParameters& p, MfShortcut shortcut) {
  if (shortcut == MfShortcut::None) return "";
  if (p.gnc_init() != MfPrior::Gauss) return "it needs Gaussian weights (gnc_init gauss)";
  if (p.depth < 2) return "there is no hidden layer";
  if (shortcut == MfShortcut::Gram)
    return p.width > p.n_rows ? "" : "it needs a width above n_rows: otherwise it saves nothing";
  if (p.activation() != MfActivation::Linear) return "it needs linear layers (activation Linear)";
  return p.width >= p.n_rows ? "" : "it needs a width of at least n_rows";
}

void MfParameters::check() const {
  MfParameters own = *this;
  check_bounds(fields_of_cell(own));
  check_shape(*this);
  check_given(*this);
  const std::string refusal = shortcut_refusal(*this, shortcut());
  if (!refusal.empty())
    throw ConfigError(
        fmt::format("shortcut {} cannot be used at width {}, depth {}: {}", shortcut_word, width,
                    depth, refusal),
        {.key = "shortcut", .hint = "use auto: it takes a shortcut where one is allowed"});
}

MfParameters MfParameters::parse(const std::string& json) {
  MfParameters parameters;
  read_cell(json, "mf", fields_of_cell(parameters));
  parameters.check();
  return parameters;
}

std::string MfParameters::json() const {
  static MfParameters plain;
  // The defaults are made once, since a sweep may have a million cells.
  static const CellFields defaults = fields_of_cell(plain);
  MfParameters own = *this;
  return cell_text(fields_of_cell(own), defaults);
}

}  // namespace convoy::experiments
