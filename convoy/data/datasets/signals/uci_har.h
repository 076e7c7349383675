// SPDX-License-Identifier: Apache-2.0
//
// Reads the layout of the UCI HAR data set: DIR/train/Inertial Signals/NAME_train.txt, one file per
// channel, one window per line; DIR/train/y_train.txt, one class from 1 per line;
// DIR/train/subject_train.txt and DIR/activity_labels.txt when they exist. The same for test and
// val.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "convoy/data/datasets/signals/signal_windows.h"

namespace convoy::data {

bool has_signal_split(const std::filesystem::path& folder, const std::string& split);

// Channels are the files in the order of their names. `threads` files are read at a time. Throws
// DataError with file and line: a missing file, a line of another length, an invalid or non-finite
// number, a class below 1.
SignalWindows read_signal_split(const std::filesystem::path& folder, const std::string& split,
                                int64_t threads);

// Names of class 0, 1, ...: from activity_labels.txt, else "1", "2", ... for `num_classes`. Throws
// DataError for a file with gaps.
std::vector<std::string> read_class_names(const std::filesystem::path& folder, int64_t num_classes);

}  // namespace convoy::data
