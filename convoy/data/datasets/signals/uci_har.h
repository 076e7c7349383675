// SPDX-License-Identifier: Apache-2.0
//
// Reads the layout of the UCI HAR data set: DIR/train/Inertial Signals/NAME_train.txt, one file per
// channel, one window per line; DIR/train/y_train.txt, one label per line;
// DIR/train/subject_train.txt when it exists. The same for test and val.
#pragma once

#include <filesystem>
#include <string>

#include "convoy/data/datasets/signals/signal_windows.h"

namespace convoy::data {

bool has_signal_split(const std::filesystem::path& folder, const std::string& split);

// Reads one split. The channels are the files in the order of their names; at most `threads` files
// are read at a time. The classes of the windows are labels until number_classes(). Throws
// DataError with file and line for a missing file, a line of another length, an invalid or
// non-finite number, and a label that is not an integer.
SignalWindows read_signal_split(const std::filesystem::path& folder, const std::string& split,
                                int64_t threads);

}  // namespace convoy::data
