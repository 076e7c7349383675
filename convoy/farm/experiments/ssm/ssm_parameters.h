// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a cell of workload `ssm`, as its JSON object holds them: every key is optional
// and has the default below. A student y_T = sum_t C A^(T-t) B x_t with A = diag(a_1..a_d) and
// B = C = ones learns from a teacher's impulse response T_m; s_m = sum_j a_j^m - T_m.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace convoy::experiments {

inline constexpr int64_t kMaxSsmPower = 16;  // largest sequence_length - 1

enum class SsmOptimizer { Adam, Sgd };  // "adam", "gd"
// "regular", "near_one", "double_max_A_j", "positive_diagonal".
enum class SsmInit { Regular, NearOne, DoubleMax, PositiveDiagonal };
enum class SsmSchedule { None, Step, Exponential, Cosine, Adaptive };  // "none", "step", ...

// Fewer random numbers for the same distribution of guesses (ssm_shortcuts.h).
enum class SsmShortcut { None, TwoRandoms, Projection };  // "none", "two_randoms", "projection"

// Keys as here; "gd" ones are read by `descend` only.
struct SsmDescent {
  double lr = 1e-3;                             // gd_lr
  int64_t epochs = 10000;                       // gd_epochs
  double init_scale = 1e-2;                     // gd_init_scale
  SsmOptimizer optimizer = SsmOptimizer::Adam;  // gd_optimizer
  SsmInit init = SsmInit::Regular;              // gd_init_type
  SsmSchedule schedule = SsmSchedule::None;     // gd_scheduler
  int64_t step_size = 1000;                     // step_size: epochs
  double step_gamma = 0.1;                      // step_gamma
  double exp_gamma = 0.999;                     // exp_gamma, per epoch
  double cosine_eta_min = 0;                    // cosine_eta_min

  bool operator==(const SsmDescent&) const = default;
};

struct SsmParameters {
  int64_t student_dim = 150;
  int64_t teacher_rank = 1;
  int64_t sequence_length = 5;  // k
  int64_t num_sequences = 1;    // N
  double eps_train = 1e-5;
  bool input_e1 = false;  // w = e_1; needs num_sequences 1
  bool calc_loss_only_on_last_output = true;
  // "alpha": number, teacher of rank 1; else drawn. "w": [..] or [[..], ..], k - 1 each; else
  // drawn. A data file's entry is put here by the caller.
  std::optional<double> alpha;
  std::vector<std::vector<double>> w;
  bool w_that_minimizes_loss = false;
  bool w2_that_minimizes_loss = false;
  bool w2_that_maximizes_loss = false;
  double teacher_mean = 0.5;
  double teacher_sd = 0.1;
  std::optional<double> prior_sd;  // default 1 / sqrt(student_dim)
  int64_t sweep_seed = 0;
  SsmShortcut shortcut = SsmShortcut::None;
  SsmDescent descent;

  // Reads and checks one JSON object. Throws ConfigError: an unknown key, a wrong type or range.
  static SsmParameters parse(const std::string& json);
  // Every key that differs from the default, sorted; parse() gives the same object back.
  std::string json() const;
};

}  // namespace convoy::experiments
