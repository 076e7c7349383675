// SPDX-License-Identifier: Apache-2.0
//
// Workload `mf`: guess-and-check and gradient descent on matrix factorisation (mf_parameters.h).
// The methods are "gnc", "prior" (guesses without the check) and "gd". Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/farm/experiments/cuda/device.h"
#include "convoy/farm/experiments/random/cpu_level.h"
#include "convoy/farm/experiments/random/stream.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

class MfWorkload : public sweep::Workload {
 public:
  // `level` and `gpu` change only the speed. A `gpu` that is not null computes the descents, and
  // guesses without a shortcut. Throws StateError for a level that this machine cannot run.
  explicit MfWorkload(Precision precision = Precision::Exact, CpuLevel level = best_cpu_level(),
                      std::shared_ptr<cuda::Device> gpu = nullptr);

  std::string name() const override { return "mf"; }
  // "1-exact-layout1": the version of the numbers, the precision, the layout of the random numbers.
  std::string version() const override;
  std::unique_ptr<sweep::GuessExperiment> guesses(const sweep::Cell& cell) const override;
  std::vector<sweep::CellOutcome> compute(const std::vector<sweep::Cell>& cells) const override;
  // The mean of the prior for method "gnc", if it has a closed form.
  sweep::ReferenceCurve reference(const sweep::Cell& cell) const override;
  std::vector<std::string> metrics(const sweep::Cell&) const override { return {"loss"}; }

 private:
  Precision precision_;
  CpuLevel level_;
  std::shared_ptr<cuda::Device> gpu_;
};

}  // namespace convoy::experiments
