// SPDX-License-Identifier: Apache-2.0
//
// Finds faults of a division into training, validation and test windows that make the metrics less
// meaningful than they seem.
#pragma once

#include <string>
#include <vector>

#include "convoy/data/datasets/signals/signal_windows.h"

namespace convoy::data {

struct SignalDivision {
  const SignalWindows& train;
  const SignalWindows& validation;  // may have no windows
  const SignalWindows& test;        // may have no windows
  const std::vector<std::string>& class_names;
  double held_share = 0;  // the share that hold_out() got; 0 = validation windows were given
};

// One sentence for each fault: classes that a part lacks, a held-out share that differs from the
// wanted one, subjects that are in two parts, almost as many classes as windows.
std::vector<std::string> split_remarks(const SignalDivision& division);

}  // namespace convoy::data
