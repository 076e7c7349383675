// SPDX-License-Identifier: Apache-2.0
//
// A cell of `mf` with its drawn matrix and measurements, from which guesses, descent and theory
// start. The matrix and the measurements depend only on the seed, the shape, the rank, the norm and
// the kind of measurements, so cells of one seed share them at every width and depth.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/farm/experiments/mf/mf_parameters.h"
#include "convoy/farm/experiments/random/stream.h"

namespace convoy::experiments {

// Matrices are stored by rows.
struct MfProblem {
  MfParameters parameters;
  PhiloxKey key = {};
  uint32_t num_entries = 0;
  std::vector<double> truth;                      // num_entries values
  std::vector<std::vector<double>> measurements;  // matrices A_i
  std::vector<double> targets;                    // values b_i = <A_i, truth>
  std::vector<std::vector<double>> span;          // orthonormal basis of the measurements
  // Number of directions that no measurement covers; > 0.
  uint32_t num_tested = 0;

  // The mean over i of (<A_i, Y> - b_i)^2.
  double train_loss(const double* y) const;
  // The mean squared residual over any orthonormal basis of the complement of the span.
  double test_loss(const double* y) const;
};

// Draws U from guess 0 and V from guess 1 of Stream::Teacher. Measurement i is drawn from guess i
// of Stream::Data; with `completion` the words of guess 0 choose the measured entries. Throws
// ConfigError if the measurements leave nothing to test.
MfProblem draw_mf_problem(const MfParameters& parameters, int64_t seed);

}  // namespace convoy::experiments
