// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a cell of workload `mf`, as its JSON object holds them: every key is optional
// and has the default below. fields() is the one list of the keys, their bounds and words; the
// flags (mf_flags.h) take their common part from it. A matrix of n_rows x n_cols is learnt from
// linear measurements by a factorisation into `depth` layers with `width` hidden units (Alexander,
// Slutzky, Ran-Milo, Cohen, arXiv 2506.03931).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/farm/experiments/mf/factor_layout.h"

namespace convoy::experiments {

enum class MfPrior { Gauss, Uniform };  // weights from N(0, 1) or from U(-1, 1)

// The way guesses are drawn. An allowed shortcut keeps the distribution of the losses, but not each
// single guess.
enum class MfShortcut {
  None,  // draws every weight
  // Replaces a layer by a factor of its n_rows x n_rows Gram matrix: the next Gaussian layer
  // depends on the layer only through that matrix.
  Gram,
  Bartlett,  // draws linear layers as triangular factors of Wishart matrices
};

// The words of the enumerators, in the order of the enumerators; the word "Leaky ReLU" means
// LeakyReLU too. The lists are not defined in this header: files that are compiled for one level of
// vector instructions include it and must not run code before main.
const std::vector<std::string>& mf_activation_words();
const std::vector<std::string>& mf_prior_words();
const std::vector<std::string>& mf_shortcut_words();

// Settings that only descents read.
struct MfDescent {
  double lr = 1e-2;
  int64_t epochs = 100'000;
  double init_scale = 1e-2;
  int64_t log_period = 100;
  double momentum = 0;
  // False: momentum has no effect, as in the program that users had before.
  bool apply_momentum = true;

  // Visits all settings but lr and init_scale, which may differ along the axis of a sweep.
  template <class Visitor>
  void fields(Visitor& visit) {
    constexpr double kMostSteps = 0x1p40;
    visit("gd_epochs", epochs, "steps").at_least(1).at_most(kMostSteps);
    visit("gd_log_period", log_period,
          "the loss after the last epoch that this divides is the value")
        .at_least(1)
        .at_most(kMostSteps);
    visit("gd_momentum", momentum, "momentum of the steps").at_least(0);
    visit("gd_apply_momentum", apply_momentum,
          "false: --gd-momentum has no effect, as in the original program");
  }
};

struct MfParameters {
  int64_t n_rows = 5;
  int64_t n_cols = 5;
  int64_t width = 5;
  int64_t depth = 2;  // number of layers
  int64_t gt_rank = 1;
  double gt_norm = 1;  // Frobenius norm of the matrix to learn
  // True: measurements are single entries; false: Gaussian matrices of Frobenius norm 1.
  bool completion = false;
  int64_t num_measurements = 15;
  std::string activation_word = "Linear";
  double negative_slope = 0.2;  // for LeakyReLU
  int64_t sweep_seed = 0;
  // Given data that replace drawn data: the matrix by rows, and the measurements by rows.
  std::vector<double> truth;
  std::vector<std::vector<double>> measurements;

  // Settings that only guesses read.
  double gnc_eps_train = 0.01;
  std::string gnc_init_word = "gauss";
  bool gnc_normalize = false;  // Y becomes Y / (|Y| + gnc_softening)
  double gnc_softening = 1e-6;
  std::string shortcut_word = "none";

  MfDescent descent;

  template <class Visitor>
  void problem_fields(Visitor& visit) {
    constexpr int64_t kLargestSide = 1024;
    visit("n_rows", n_rows, "rows of the matrix").at_least(1).at_most(kLargestSide);
    visit("n_cols", n_cols, "columns of the matrix").at_least(1).at_most(kLargestSide);
    visit("gt_rank", gt_rank, "rank of the matrix").at_least(1).at_most(kLargestSide);
    visit("gt_norm", gt_norm, "Frobenius norm of the matrix").at_least(0);
    visit("completion", completion, "measure entries, not products with Gaussian matrices");
    visit("num_measurements", num_measurements, "measurements to train on").at_least(1);
    visit("activation", activation_word, "after each hidden layer").one_of(mf_activation_words());
    visit("negative_slope", negative_slope, "of LeakyReLU").at_least(0);
    visit("sweep_seed", sweep_seed, "another sweep of the same seeds").at_least(0);
  }
  template <class Visitor>
  void guess_fields(Visitor& visit) {
    visit("gnc_eps_train", gnc_eps_train, "a guess passes with a smaller training loss").above(0);
    visit("gnc_init", gnc_init_word, "guessed weights: gauss for N(0, 1), unif for U(-1, 1)")
        .one_of(mf_prior_words());
    visit("gnc_normalize", gnc_normalize, "guesses are divided by their norm");
    visit("gnc_softening", gnc_softening, "added to that norm").at_least(0);
  }
  // Visits all parameters but `measurements`, which no flag sets.
  template <class Visitor>
  void fields(Visitor& visit) {
    problem_fields(visit);
    guess_fields(visit);
    descent.fields(visit);
    visit("width", width, "hidden units").at_least(1).at_most(4096);
    visit("depth", depth, "layers").at_least(1).at_most(1000);
    visit("truth", truth, "the matrix by rows");
    visit("shortcut", shortcut_word, "how guesses are drawn").one_of(mf_shortcut_words());
    visit("gd_lr", descent.lr, "learning rate").above(0);
    visit("gd_init_scale", descent.init_scale, "scale of the initial weights").at_least(0);
  }

  MfActivation activation() const;
  MfPrior gnc_init() const;
  MfShortcut shortcut() const;
  int64_t num_entries() const { return n_rows * n_cols; }
  // Reads and checks one JSON object. Throws ConfigError for an unknown key, a wrong type, a value
  // out of range and a shortcut that is not allowed.
  static MfParameters parse(const std::string& json);
  void check() const;  // throws ConfigError
  // The JSON text of every key that differs from its default, with sorted keys; parse() gives the
  // same object back.
  std::string json() const;
};

// Why the shortcut may not be used with these parameters; empty = it may.
std::string shortcut_refusal(const MfParameters& parameters, MfShortcut shortcut);

}  // namespace convoy::experiments
