// SPDX-License-Identifier: Apache-2.0
//
// Workload `ssm`: guess-and-check and gradient descent on diagonal state-space models
// (ssm_parameters.h). Methods "gnc" and "gd". A guess draws a_j from N(0, 1/d), passes when its
// training loss is below eps_train, and its loss is sum_m s_m^2. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/farm/experiments/cuda/device.h"
#include "convoy/farm/experiments/random/cpu_level.h"
#include "convoy/farm/experiments/random/stream.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

class SsmWorkload : public sweep::Workload {
 public:
  // `level` and `gpu` change only the speed. A `gpu` that is not null computes the descents, and
  // guesses without a shortcut. Throws StateError for a level that this machine cannot run.
  explicit SsmWorkload(Precision precision = Precision::Exact, CpuLevel level = best_cpu_level(),
                       std::shared_ptr<cuda::Device> gpu = nullptr);

  std::string name() const override { return "ssm"; }
  // "2-exact-layout2": the version of the numbers, the precision, the layout of the random numbers.
  std::string version() const override;
  std::unique_ptr<sweep::GuessExperiment> guesses(const sweep::Cell& cell) const override;
  // Cells may have different parameters. The value of a cell is the generalisation loss before the
  // update of the last epoch that is divisible by 10, in double precision.
  std::vector<sweep::CellOutcome> compute(const std::vector<sweep::Cell>& cells) const override;
  // prior_mean is exact. curve is the Gaussian approximation. asymptote exists for rank 1.
  // acceptance is exact if the test depends only on sum a_j (one sequence, w along e_1).
  sweep::ReferenceCurve reference(const sweep::Cell& cell) const override;
  std::vector<std::string> metrics(const sweep::Cell&) const override { return {"loss"}; }

  std::vector<std::string> axes() const override { return {"student_dim"}; }
  std::vector<std::string> data_of_seeds() const override { return {"alpha", "w"}; }

 private:
  Precision precision_;
  CpuLevel level_;
  std::shared_ptr<cuda::Device> gpu_;
};

}  // namespace convoy::experiments
