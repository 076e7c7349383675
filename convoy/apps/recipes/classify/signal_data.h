// SPDX-License-Identifier: Apache-2.0
//
// The windows of a run of task classify.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/signals/signal_windows.h"

namespace convoy::recipes {

struct SignalData {
  data::SignalWindows train;
  data::SignalWindows validation;  // may have no windows
  data::SignalWindows test;        // may have no windows
  std::vector<std::string> class_names;
  std::vector<std::string> remarks;  // split_remarks()

  int64_t num_classes() const { return static_cast<int64_t>(class_names.size()); }
};

// Throws DataError as data::read_signal_split(), and when the splits do not match each other.
SignalData load_signal_data(const settings::TrainSettings& settings);

}  // namespace convoy::recipes
