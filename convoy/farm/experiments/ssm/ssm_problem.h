// SPDX-License-Identifier: Apache-2.0
//
// A cell of `ssm` with its drawn teacher and data, from which guesses, descent and theory start.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "convoy/farm/experiments/random/stream.h"
#include "convoy/farm/experiments/ssm/ssm_parameters.h"

namespace convoy::experiments {

// A vector over m = 1 .. num_powers has index m - 1.
struct SsmProblem {
  SsmParameters parameters;
  PhiloxKey key = {};
  uint32_t student_dim = 0;
  uint32_t num_powers = 0;  // sequence_length - 1
  double prior_sd = 0;
  double alpha = 0;                    // for a teacher of rank 1; else NaN
  std::vector<double> target;          // T_m
  std::vector<std::vector<double>> w;  // one vector per sequence
  // training loss = sum over rows of (row . s)^2 / divisor. If all outputs count, output k - j of a
  // sequence uses w shifted by j. The loss is then the mean over all k outputs, including the first
  // output, which is 0.
  std::vector<std::vector<double>> rows;
  double divisor = 1;

  // Bit m - 1 is set if power m is in the training loss. With w = 0 only power 1 is set, because
  // the kernels need at least one power.
  uint32_t tested_powers() const;
  double train_loss(const double* s) const;
  double generalisation_loss(const double* s) const;
};

// Draws the teacher from Stream::Teacher (the slots are the entries of A) and the data from
// Stream::Data (guess: the sequence; slot: m - 1). Throws ConfigError.
SsmProblem draw_problem(const SsmParameters& parameters, int64_t seed);

}  // namespace convoy::experiments
