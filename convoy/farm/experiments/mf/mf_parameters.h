// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a cell of workload `mf`, as its JSON object holds them: every key is optional
// and has the default below. A matrix of n_rows x n_cols is learnt from linear measurements by a
// factorisation into `depth` layers with `width` hidden units (Alexander, Slutzky, Ran-Milo, Cohen,
// arXiv 2506.03931).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/farm/experiments/mf/factor_layout.h"

namespace convoy::experiments {

enum class MfPrior { Gauss, Uniform };  // "gauss": N(0, 1), "unif": U(-1, 1)

// The way guesses are drawn. An allowed shortcut keeps the distribution of the losses, but not each
// single guess.
enum class MfShortcut {
  None,  // "none": every weight
  // "gram": a Gaussian layer depends on the layer before it only through the n_rows x n_rows Gram
  // matrix of that layer
  Gram,
  Bartlett,  // "bartlett": linear layers as triangular factors of Wishart matrices
};

// Keys as here, with "gd_"; read by `descend` only.
struct MfDescent {
  double lr = 1e-2;
  int64_t epochs = 100'000;
  double init_scale = 1e-2;
  int64_t log_period = 100;
  double momentum = 0;
  bool apply_momentum = true;  // false: as in the prior program, where momentum changed nothing
};

struct MfParameters {
  int64_t n_rows = 5;
  int64_t n_cols = 5;
  int64_t width = 5;
  int64_t depth = 2;  // layers
  int64_t gt_rank = 1;
  double gt_norm = 1;       // Frobenius norm of the matrix to learn
  bool completion = false;  // measurements are entries, else Gaussian matrices of Frobenius norm 1
  int64_t num_measurements = 15;
  MfActivation activation = MfActivation::Linear;
  double negative_slope = 0.2;  // for LeakyReLU
  int64_t sweep_seed = 0;
  // In place of drawn ones: the matrix by rows, and measurements by rows.
  std::vector<double> truth;
  std::vector<std::vector<double>> measurements;

  // Read by guesses only; keys as here.
  double gnc_eps_train = 0.01;
  MfPrior gnc_init = MfPrior::Gauss;
  bool gnc_normalize = false;  // Y / (|Y| + gnc_softening)
  double gnc_softening = 1e-6;
  MfShortcut shortcut = MfShortcut::None;

  MfDescent descent;

  int64_t num_entries() const { return n_rows * n_cols; }
  // Reads and checks one JSON object. Throws ConfigError: an unknown key, a wrong type or range, a
  // shortcut that is not allowed.
  static MfParameters parse(const std::string& json);
  void check() const;  // throws ConfigError
  // Every key that differs from the default, sorted; parse() gives the same object back.
  std::string json() const;
};

// "Leaky ReLU" is LeakyReLU. Throws ConfigError.
MfActivation parse_activation(const std::string& word);
MfPrior parse_prior(const std::string& word);
std::string activation_word(MfActivation activation);
std::string prior_word(MfPrior prior);
std::string shortcut_word(MfShortcut shortcut);

// Why the shortcut may not be used with these parameters; empty = it may.
std::string shortcut_refusal(const MfParameters& parameters, MfShortcut shortcut);

}  // namespace convoy::experiments
