// SPDX-License-Identifier: Apache-2.0
//
// Reads the layout of the UCI HAR data set: DIR/train/Inertial Signals/NAME_train.txt, one file for
// each channel, one window a line; DIR/train/y_train.txt, one class from 1 on a line;
// DIR/train/subject_train.txt and DIR/activity_labels.txt where they are there. The same for test,
// and for val.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "convoy/data/datasets/signals/signal_windows.h"

namespace convoy::data {

bool has_signal_split(const std::filesystem::path& folder, const std::string& split);

// Channels are the files in the order of their names. `threads` files are read at a time. Throws
// DataError with file and line: a missing file, a line of another length, a number that is none or
// not finite, a class below 1.
SignalWindows read_signal_split(const std::filesystem::path& folder, const std::string& split,
                                int64_t threads);

// Of class 0, 1, ...: as activity_labels.txt has them, else "1", "2", ... for `num_classes`. Throws
// DataError for a file with gaps.
std::vector<std::string> read_class_names(const std::filesystem::path& folder, int64_t num_classes);

}  // namespace convoy::data
