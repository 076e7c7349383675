// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_parameters.h"

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/cell_fields.h"

namespace convoy::experiments {
namespace {

CellFields fields_of_cell(SsmParameters& parameters) {
  return {.list = config::list_fields(parameters), .data = {NumberRows{"w", &parameters.w}}};
}

void check_together(const SsmParameters& p) {
  if (p.input_e1 && p.num_sequences != 1)
    throw ConfigError(fmt::format("input_e1 needs num_sequences 1, found {}", p.num_sequences),
                      {.hint = "leave --input-e1 out, or give --num-sequences 1"});
  if (p.input_e1 && !p.w.empty())
    throw ConfigError("input_e1 sets w: leave out one of them",
                      {.hint = "leave --input-e1 or w out"});
  if (!p.alpha.is_auto() && p.teacher_rank != 1)
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

const std::vector<std::string>& ssm_optimizer_words() {
  static const std::vector<std::string> words = {"adam", "gd"};
  return words;
}

const std::vector<std::string>& ssm_init_words() {
  static const std::vector<std::string> words = {"regular", "near_one", "double_max_A_j",
                                                 "positive_diagonal"};
  return words;
}

const std::vector<std::string>& ssm_schedule_words() {
  static const std::vector<std::string> words = {"none", "step", "exponential", "cosine",
                                                 "adaptive"};
  return words;
}

const std::vector<std::string>& ssm_shortcut_words() {
  static const std::vector<std::string> words = {"none", "two_randoms", "projection"};
  return words;
}

SsmOptimizer SsmDescent::optimizer() const {
  return enumerator_of<SsmOptimizer>(optimizer_word, ssm_optimizer_words());
}

SsmInit SsmDescent::init() const { return enumerator_of<SsmInit>(init_word, ssm_init_words()); }

SsmSchedule SsmDescent::schedule() const {
  return enumerator_of<SsmSchedule>(schedule_word, ssm_schedule_words());
}

SsmShortcut SsmParameters::shortcut() const {
  return enumerator_of<SsmShortcut>(shortcut_word, ssm_shortcut_words());
}

SsmParameters SsmParameters::parse(const std::string& json) {
  SsmParameters parameters;
  read_cell(json, "ssm", fields_of_cell(parameters));
  check_together(parameters);
  return parameters;
}

std::string SsmParameters::json() const {
  static SsmParameters plain;
  // The defaults are made once, since a sweep may have a million cells.
  static const CellFields defaults = fields_of_cell(plain);
  SsmParameters own = *this;
  return cell_text(fields_of_cell(own), defaults);
}

}  // namespace convoy::experiments
