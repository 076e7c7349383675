// SPDX-License-Identifier: Apache-2.0
//
// Faults of a division into training, validation and test windows, by which figures mean less than
// they seem to.
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
  double held_share = 0;  // share given to hold_out(); 0 = the validation windows are given
};

// A sentence for each: classes that a part lacks, another share held out than asked for, subjects
// that are in two parts, about as many classes as windows.
std::vector<std::string> split_remarks(const SignalDivision& division);

}  // namespace convoy::data
