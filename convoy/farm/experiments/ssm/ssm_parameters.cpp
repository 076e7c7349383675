// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_parameters.h"

#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/parameter_json.h"

namespace convoy::experiments {

// Found by parameter_json.h through their arguments, so in no nameless namespace.
static const EnumWords& words(SsmOptimizer) {
  static const EnumWords list{{"adam", "gd"}};
  return list;
}
static const EnumWords& words(SsmInit) {
  static const EnumWords list{{"regular", "near_one", "double_max_A_j", "positive_diagonal"}};
  return list;
}
static const EnumWords& words(SsmSchedule) {
  static const EnumWords list{{"none", "step", "exponential", "cosine", "adaptive"}};
  return list;
}

static const EnumWords& words(SsmShortcut) {
  static const EnumWords list{{"none", "two_randoms", "projection"}};
  return list;
}

// The one list of keys: a visitor either reads or writes every member.
template <FieldsOf<SsmParameters> Parameters, class Visitor>
static void each_field(Parameters& p, Visitor&& visit) {
  visit("student_dim", p.student_dim);
  visit("teacher_rank", p.teacher_rank);
  visit("sequence_length", p.sequence_length);
  visit("num_sequences", p.num_sequences);
  visit("eps_train", p.eps_train);
  visit("input_e1", p.input_e1);
  visit("calc_loss_only_on_last_output", p.calc_loss_only_on_last_output);
  visit("alpha", p.alpha);
  visit("w", p.w);
  visit("w_that_minimizes_loss", p.w_that_minimizes_loss);
  visit("w2_that_minimizes_loss", p.w2_that_minimizes_loss);
  visit("w2_that_maximizes_loss", p.w2_that_maximizes_loss);
  visit("teacher_mean", p.teacher_mean);
  visit("teacher_sd", p.teacher_sd);
  visit("prior_sd", p.prior_sd);
  visit("sweep_seed", p.sweep_seed);
  visit("shortcut", p.shortcut);
  visit("gd_lr", p.descent.lr);
  visit("gd_epochs", p.descent.epochs);
  visit("gd_init_scale", p.descent.init_scale);
  visit("gd_optimizer", p.descent.optimizer);
  visit("gd_init_type", p.descent.init);
  visit("gd_scheduler", p.descent.schedule);
  visit("step_size", p.descent.step_size);
  visit("step_gamma", p.descent.step_gamma);
  visit("exp_gamma", p.descent.exp_gamma);
  visit("cosine_eta_min", p.descent.cosine_eta_min);
}

namespace {

void check_range(const SsmParameters& p) {
  CONVOY_CHECK(p.student_dim >= 1 && p.student_dim <= 1'000'000, ConfigError,
               "student_dim: wanted 1 to 1000000, found {}", p.student_dim);
  CONVOY_CHECK(p.teacher_rank >= 1 && p.teacher_rank <= 10'000, ConfigError,
               "teacher_rank: wanted 1 to 10000, found {}", p.teacher_rank);
  CONVOY_CHECK(p.sequence_length >= 2 && p.sequence_length <= kMaxSsmPower + 1, ConfigError,
               "sequence_length: wanted 2 to {}, found {}", kMaxSsmPower + 1, p.sequence_length);
  CONVOY_CHECK(p.num_sequences >= 1 && p.num_sequences <= 10'000, ConfigError,
               "num_sequences: wanted 1 to 10000, found {}", p.num_sequences);
  CONVOY_CHECK(p.eps_train > 0 && std::isfinite(p.eps_train), ConfigError,
               "eps_train: wanted a number above 0, found {}", p.eps_train);
  CONVOY_CHECK(!p.prior_sd || (*p.prior_sd > 0 && std::isfinite(*p.prior_sd)), ConfigError,
               "prior_sd: wanted a number above 0, found {}", p.prior_sd.value_or(0));
  CONVOY_CHECK(p.descent.epochs >= 1, ConfigError, "gd_epochs: wanted at least 1, found {}",
               p.descent.epochs);
  CONVOY_CHECK(p.descent.step_size >= 1, ConfigError, "step_size: wanted at least 1, found {}",
               p.descent.step_size);
}

void check_together(const SsmParameters& p) {
  if (p.input_e1 && p.num_sequences != 1)
    throw ConfigError(fmt::format("input_e1 needs num_sequences 1, found {}", p.num_sequences),
                      {.hint = "leave --input-e1 out, or give --num-sequences 1"});
  if (p.input_e1 && !p.w.empty())
    throw ConfigError("input_e1 sets w: leave out one of them",
                      {.hint = "leave --input-e1 or w out"});
  if (p.alpha && p.teacher_rank != 1)
    throw ConfigError(fmt::format("alpha needs teacher_rank 1, found {}", p.teacher_rank),
                      {.hint = "leave alpha out, or give --teacher-ranks 1"});
  if (!p.w.empty() && std::ssize(p.w) != p.num_sequences)
    throw ConfigError(fmt::format("w: wanted {} sequence(s), as num_sequences, found {}",
                                  p.num_sequences, p.w.size()),
                      {.hint = "give --num-sequences that number, or correct w"});
  for (const auto& row : p.w)
    if (std::ssize(row) != p.sequence_length - 1)
      throw ConfigError(
          fmt::format("w: wanted {} entries, sequence_length less 1, found {}",
                      p.sequence_length - 1, row.size()),
          {.hint = "give --sequence-length one more than the entries of w, or correct w"});
  const bool second = p.w2_that_minimizes_loss || p.w2_that_maximizes_loss;
  if (!(p.w_that_minimizes_loss + p.w2_that_minimizes_loss + p.w2_that_maximizes_loss <= 1))
    throw ConfigError(
        "only one of w_that_minimizes_loss, w2_that_minimizes_loss and "
        "w2_that_maximizes_loss can be set",
        {.hint = "leave the others out"});
  if (second && p.num_sequences != 2)
    throw ConfigError(fmt::format("w2_that_...: wanted num_sequences 2, found {}", p.num_sequences),
                      {.hint = "give --num-sequences 2"});
  if ((second || p.w_that_minimizes_loss) && (p.teacher_rank != 1 || p.sequence_length < 3))
    throw ConfigError(
        "a w that minimizes or maximizes the loss needs teacher_rank 1 and "
        "sequence_length 3 or more",
        {.hint = "give --teacher-ranks 1 and --sequence-length 3 or more"});
}

}  // namespace

SsmParameters SsmParameters::parse(const std::string& json) {
  SsmParameters parameters;
  read_parameters(json, "ssm", parameters);
  check_range(parameters);
  check_together(parameters);
  return parameters;
}

std::string SsmParameters::json() const { return changed_parameters(*this); }

}  // namespace convoy::experiments
