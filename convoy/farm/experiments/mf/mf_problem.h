// SPDX-License-Identifier: Apache-2.0
//
// A cell of `mf` with its matrix and measurements drawn: what guesses, descent and theory start
// from. They depend on the seed, the shape, rank, norm and kind of measurements alone: cells of one
// seed have the same at every width and depth.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/farm/experiments/mf/mf_parameters.h"
#include "convoy/farm/experiments/random/stream.h"

namespace convoy::experiments {

// Matrices are by rows.
struct MfProblem {
  MfParameters parameters;
  PhiloxKey key = {};
  uint32_t num_entries = 0;
  std::vector<double> truth;                      // num_entries
  std::vector<std::vector<double>> measurements;  // A_i
  std::vector<double> targets;                    // b_i = <A_i, truth>
  std::vector<std::vector<double>> span;          // orthonormal basis of the measurements
  // Number of directions that no measurement covers; > 0.
  uint32_t num_tested = 0;

  // mean_i (<A_i, Y> - b_i)^2.
  double train_loss(const double* y) const;
  // The same mean over any orthonormal basis of the complement of the span.
  double test_loss(const double* y) const;
};

// U from guess 0 and V from guess 1 of Stream::Teacher; measurement i from guess i of Stream::Data,
// or the entries from the words of guess 0. Throws ConfigError: measurements that leave nothing to
// test.
MfProblem draw_mf_problem(const MfParameters& parameters, int64_t seed);

}  // namespace convoy::experiments
