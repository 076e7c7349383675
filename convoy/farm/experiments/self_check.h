// SPDX-License-Identifier: Apache-2.0
//
// A test of this machine by itself: the generator, figures that are known from elsewhere, and every
// instruction set and GPU against plain CPU code, bit for bit.
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
  std::string detail;  // the figures, or where bits differ
  double seconds = 0;
};

// Blocks, for less than a minute on two cores. `tell` is called after each check. Throws what a GPU
// throws.
std::vector<CheckOutcome> self_check(const std::vector<std::shared_ptr<cuda::Device>>& gpus,
                                     const std::function<void(const CheckOutcome&)>& tell);

}  // namespace convoy::experiments
