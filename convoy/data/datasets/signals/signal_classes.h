// SPDX-License-Identifier: Apache-2.0
//
// The classes of a data set of signals. A label, as the files write it, is a code: any whole
// number. Classes are counted from 0 in ascending order of their labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/data/datasets/signals/signal_windows.h"

namespace convoy::data {

struct SignalClasses {
  std::vector<int64_t> labels;     // by class, in ascending order
  std::vector<std::string> names;  // by class
  std::filesystem::path file;      // file with the list of classes; empty: there is none
};

// Reads the classes from DIR/activity_labels.txt, which has "LABEL NAME" on each line. Without that
// file the classes are the labels of the training windows, and their names are the labels. Throws
// DataError with file and line.
SignalClasses read_signal_classes(const std::filesystem::path& folder, const SignalWindows& train);

// Replaces the labels in windows.classes by class numbers. `file`: the file of the labels, for
// errors. Throws DataError with the line of a label that is no class.
void number_classes(SignalWindows& windows, const SignalClasses& classes,
                    const std::filesystem::path& file);

}  // namespace convoy::data
