// SPDX-License-Identifier: Apache-2.0
//
// A cell of `ssm` with its teacher and data drawn: what guesses, descent and theory start from.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "convoy/farm/experiments/random/stream.h"
#include "convoy/farm/experiments/ssm/ssm_parameters.h"

namespace convoy::experiments {

// Vectors over m = 1 .. num_powers are indexed by m - 1.
struct SsmProblem {
  SsmParameters parameters;
  PhiloxKey key = {};
  uint32_t student_dim = 0;
  uint32_t num_powers = 0;  // sequence_length - 1
  double prior_sd = 0;
  double alpha = 0;                    // if the teacher has rank 1; else NaN
  std::vector<double> target;          // T_m
  std::vector<std::vector<double>> w;  // per sequence
  // training loss = sum over rows of (row . s)^2 / divisor. All outputs: output k - j of a sequence
  // uses w moved by j, and the mean is over all k outputs, the first of which, 0, too.
  std::vector<std::vector<double>> rows;
  double divisor = 1;

  // Bit m - 1: power m is in the training loss. With w = 0 it is power 1: some sums must be made.
  uint32_t tested_powers() const;
  double train_loss(const double* s) const;
  double generalisation_loss(const double* s) const;
};

// Teacher from Stream::Teacher (slots: the entries of A), data from Stream::Data (guess: the
// sequence, slot: m - 1). Throws ConfigError.
SsmProblem draw_problem(const SsmParameters& parameters, int64_t seed);

}  // namespace convoy::experiments
