// SPDX-License-Identifier: Apache-2.0
//
// Tasks that learn from preferences: their losses, one line each, and their settings.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/config/field.h"

namespace convoy::settings {

enum class PairLoss {
  Sigmoid,
  Hinge,
  Ipo,
  Robust,
  ExoPair,
  NcaPair,
  SppoHard,
  ApoZero,
  ApoDown,
  SimPo
};

struct PairLossFacts {
  PairLoss loss;
  std::string_view name;
  std::string_view paper;
  bool has_reference = true;
  bool smooths_labels = false;  // reads preference.label_smoothing
  bool has_margin = false;      // reads preference.target_margin
  bool takes_means = false;     // with length_normalised auto: mean over tokens
};

inline constexpr std::array<PairLossFacts, 10> kPairLosses = {{
    {.loss = PairLoss::Sigmoid,
     .name = "sigmoid",
     .paper = "DPO, arXiv 2305.18290",
     .smooths_labels = true},
    {.loss = PairLoss::Hinge, .name = "hinge", .paper = "SLiC, arXiv 2305.10425"},
    {.loss = PairLoss::Ipo, .name = "ipo", .paper = "arXiv 2310.12036", .takes_means = true},
    {.loss = PairLoss::Robust,
     .name = "robust",
     .paper = "labels of which a share is wrong, arXiv 2403.00409",
     .smooths_labels = true},
    {.loss = PairLoss::ExoPair,
     .name = "exo_pair",
     .paper = "arXiv 2402.00856",
     .smooths_labels = true},
    {.loss = PairLoss::NcaPair, .name = "nca_pair", .paper = "arXiv 2402.05369"},
    {.loss = PairLoss::SppoHard, .name = "sppo_hard", .paper = "arXiv 2405.00675"},
    {.loss = PairLoss::ApoZero, .name = "apo_zero", .paper = "arXiv 2408.06266"},
    {.loss = PairLoss::ApoDown, .name = "apo_down", .paper = "the same"},
    {.loss = PairLoss::SimPo,
     .name = "simpo",
     .paper = "no reference, arXiv 2405.14734",
     .has_reference = false,
     .smooths_labels = true,
     .has_margin = true,
     .takes_means = true},
}};

// A loss of single answers.
struct UnpairedLossFacts {
  std::string_view name;
  std::string_view paper;
  // True: gains are measured from the divergence of the model from its reference, estimated over
  // the answers of a step. False: gains are measured from the reference itself.
  bool estimates_divergence = false;
};

inline constexpr std::array<UnpairedLossFacts, 2> kUnpairedLosses = {{
    {.name = "kto", .paper = "arXiv 2402.01306, the default there", .estimates_divergence = true},
    {.name = "apo_zero_unpaired",
     .paper = "gains count from the reference itself, arXiv 2408.06266"},
}};

// Stands for the first loss of the task. It is a separate word, because a run's own configuration
// spells out all defaults: without this word, the default of one task would look like a loss that
// was chosen for another task.
inline constexpr const char* kLossOfTask = "auto";

// Takes a word of kPairLosses, or kLossOfTask. Throws ConfigError for any other word.
const PairLossFacts& pair_loss_named(std::string_view name);
// The same for kUnpairedLosses.
const UnpairedLossFacts& unpaired_loss_named(std::string_view name);
std::vector<std::string> pair_loss_words();
std::vector<std::string> unpaired_loss_words();
// The accepted values of preference.loss, and the meaning of each.
std::vector<std::string> loss_words();
std::string loss_help();

struct PreferenceSettings {
  std::string loss = kLossOfTask;
  double beta = 0.1;
  double label_smoothing = 0;
  double target_margin = 0.5;
  std::string length_normalised = "auto";
  double sft_weight = 0;
  double desirable_weight = 1;
  double undesirable_weight = 1;
  std::string reference = "base";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("loss", loss, loss_help()).one_of(loss_words());
    visit("beta", beta,
          "how closely the model stays at the reference: factor of rewards; orpo: weight of the "
          "odds ratio")
        .above(0);
    visit("label_smoothing", label_smoothing,
          "share of pairs taken as labelled wrongly: losses sigmoid, robust, exo_pair (0 = 0.001), "
          "simpo")
        .at_least(0)
        .at_most(0.499);
    visit("target_margin", target_margin,
          "loss simpo: the margin between both rewards that it asks for (gamma)")
        .at_least(0);
    visit("length_normalised", length_normalised,
          "divide the log-probability of a completion by its tokens; auto = for ipo and simpo")
        .one_of({"auto", "true", "false"});
    visit("sft_weight", sft_weight,
          "add the mean loss of the chosen completion's tokens, times this; 0 = off")
        .at_least(0);
    visit("desirable_weight", desirable_weight,
          "task kto: factor of the loss of good answers, where there are fewer of them")
        .at_least(0);
    visit("undesirable_weight", undesirable_weight, "the same of bad answers").at_least(0);
    visit("reference", reference,
          "the model that rewards are measured against: base = model.name without an adapter, "
          "start = with the adapter that training continues, or a model folder");
  }
};

}  // namespace convoy::settings
