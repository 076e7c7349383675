// SPDX-License-Identifier: Apache-2.0
//
// A test of this machine: checks the random generator, compares results with known figures, and
// compares every instruction set and GPU with plain CPU code, bit for bit.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convoy/farm/experiments/cuda/device.h"

namespace convoy::experiments {

struct CheckOutcome {
  std::string name;
  bool passed = false;
  std::string detail;  // figures, or the place where bits differ
  double seconds = 0;
};

// Blocks for less than a minute on two cores. Calls `tell` after each check. Throws the errors of a
// GPU.
std::vector<CheckOutcome> self_check(const std::vector<std::shared_ptr<cuda::Device>>& gpus,
                                     const std::function<void(const CheckOutcome&)>& tell);

}  // namespace convoy::experiments
