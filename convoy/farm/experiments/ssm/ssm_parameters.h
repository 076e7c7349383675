// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a cell of workload `ssm`, as its JSON object holds them: every key is optional
// and has the default below. fields() is the one list of the keys, their bounds and words; the
// flags (ssm_flags.h) take their common part from it. A student y_T = sum_t C A^(T-t) B x_t with A
// = diag(a_1..a_d) and B = C = ones learns the impulse response T_m of a teacher; s_m = sum_j a_j^m
// - T_m is the difference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"

namespace convoy::experiments {

inline constexpr int64_t kMaxSsmPower = 16;  // largest sequence_length - 1

enum class SsmOptimizer { Adam, Sgd };
enum class SsmInit { Regular, NearOne, DoubleMax, PositiveDiagonal };
enum class SsmSchedule { None, Step, Exponential, Cosine, Adaptive };

// Ways to draw fewer random numbers for the same distribution of losses (ssm_shortcuts.h).
enum class SsmShortcut { None, TwoRandoms, Projection };

// The words of the enumerators, in the order of the enumerators. The lists are not defined in this
// header: files that are compiled for one level of vector instructions include it and must not run
// code before main.
const std::vector<std::string>& ssm_optimizer_words();
const std::vector<std::string>& ssm_init_words();
const std::vector<std::string>& ssm_schedule_words();
const std::vector<std::string>& ssm_shortcut_words();

// Settings that only descents read.
struct SsmDescent {
  double lr = 1e-3;
  int64_t epochs = 10000;
  double init_scale = 1e-2;
  std::string optimizer_word = "adam";
  std::string init_word = "regular";
  std::string schedule_word = "none";
  int64_t step_size = 1000;  // in epochs
  double step_gamma = 0.1;
  double exp_gamma = 0.999;  // factor per epoch
  double cosine_eta_min = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("gd_lr", lr, "learning rate").above(0);
    visit("gd_epochs", epochs, "steps").at_least(1);
    visit("gd_init_scale", init_scale, "standard deviation of the initial weights").at_least(0);
    visit("gd_optimizer", optimizer_word, "adam, or gd for plain descent")
        .one_of(ssm_optimizer_words());
    visit("gd_scheduler", schedule_word, "learning rate over time").one_of(ssm_schedule_words());
    visit("exp_gamma", exp_gamma, "exponential: factor of each epoch").above(0);
    visit("step_size", step_size, "step: epochs between steps").at_least(1);
    visit("step_gamma", step_gamma, "step: factor of each step").above(0);
    visit("cosine_eta_min", cosine_eta_min, "cosine: final learning rate").at_least(0);
    visit("gd_init_type", init_word, "initial weights").one_of(ssm_init_words());
  }

  SsmOptimizer optimizer() const;
  SsmInit init() const;
  SsmSchedule schedule() const;
  bool operator==(const SsmDescent&) const = default;
};

struct SsmParameters {
  int64_t student_dim = 150;
  int64_t teacher_rank = 1;
  int64_t sequence_length = 5;  // k in the formulas
  int64_t num_sequences = 1;    // N in the formulas
  double eps_train = 1e-5;
  bool input_e1 = false;  // sets w = e_1; needs num_sequences 1
  bool calc_loss_only_on_last_output = true;
  // "alpha": a number, for a teacher of rank 1; it is drawn if missing. "w": [..] or [[..], ..]
  // with k - 1 numbers each; drawn if missing. The caller puts the entry of a data file here.
  config::AutoOr<double> alpha;
  std::vector<std::vector<double>> w;
  bool w_that_minimizes_loss = false;
  bool w2_that_minimizes_loss = false;
  bool w2_that_maximizes_loss = false;
  double teacher_mean = 0.5;
  double teacher_sd = 0.1;
  config::AutoOr<double> prior_sd;  // auto: 1 / sqrt(student_dim)
  int64_t sweep_seed = 0;
  std::string shortcut_word = "none";
  SsmDescent descent;

  template <class Visitor>
  void problem_fields(Visitor& visit) {
    visit("sequence_length", sequence_length, "length of the input sequences")
        .at_least(2)
        .at_most(kMaxSsmPower + 1);
    visit("num_sequences", num_sequences, "training sequences")
        .at_least(1)
        .at_most(10'000)
        .alias("num_measurements");
    visit("input_e1", input_e1, "the one sequence is an impulse: w = e_1");
    visit("eps_train", eps_train, "a guess passes with a smaller training loss").above(0);
    visit("calc_loss_only_on_last_output", calc_loss_only_on_last_output,
          "training loss of the last output; else of all");
    visit("w_that_minimizes_loss", w_that_minimizes_loss, "choose w_2 for the least asymptote");
    visit("w2_that_minimizes_loss", w2_that_minimizes_loss,
          "choose the second sequence for the least asymptote");
    visit("w2_that_maximizes_loss", w2_that_maximizes_loss, "the opposite");
    visit("sweep_seed", sweep_seed, "another sweep of the same seeds").at_least(0);
  }
  // Visits all parameters but `w`, which no flag sets.
  template <class Visitor>
  void fields(Visitor& visit) {
    problem_fields(visit);
    descent.fields(visit);
    visit("student_dim", student_dim, "states of the student").at_least(1).at_most(1'000'000);
    visit("teacher_rank", teacher_rank, "rank of the teacher").at_least(1).at_most(10'000);
    visit("alpha", alpha, "the teacher of rank 1; auto = drawn");
    visit("teacher_mean", teacher_mean, "mean of the teacher's states");
    visit("teacher_sd", teacher_sd, "their standard deviation");
    visit("prior_sd", prior_sd, "standard deviation of guessed states").above(0);
    visit("shortcut", shortcut_word, "how guesses are drawn").one_of(ssm_shortcut_words());
  }

  SsmShortcut shortcut() const;

  // Reads and checks one JSON object. Throws ConfigError for an unknown key, a wrong type and a
  // value out of range.
  static SsmParameters parse(const std::string& json);
  // The JSON text of every key that differs from its default, with sorted keys; parse() gives the
  // same object back.
  std::string json() const;
};

}  // namespace convoy::experiments
