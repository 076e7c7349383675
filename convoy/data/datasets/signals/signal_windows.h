// SPDX-License-Identifier: Apache-2.0
//
// Windows of sensor signals with their classes, in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace convoy::data {

struct SignalWindows {
  int64_t num_windows = 0;
  int64_t window_rows = 0;                 // number of samples in time per window
  std::vector<std::string> channel_names;  // names of the sensors
  std::vector<float> values;               // [windows, rows, channels]
  std::vector<int64_t> classes;            // by window: labels, then classes (signal_classes.h)
  std::vector<int64_t> subjects;           // by window; empty: unknown

  int64_t num_channels() const { return static_cast<int64_t>(channel_names.size()); }
  std::span<const float> window(int64_t index) const {
    const auto size = static_cast<size_t>(window_rows * num_channels());
    return std::span(values).subspan(static_cast<size_t>(index) * size, size);
  }
  // The windows with these indices, in this order.
  SignalWindows selected(const std::vector<int64_t>& windows) const;
  // SHA-256 over all members.
  std::string content_hash() const;
};

// Splits windows into training and held-out windows; about `share` of all are held out. If subjects
// are known, whole subjects are held out, because windows of one subject resemble each other; else
// single windows. The choice depends on `seed`; both parts keep their order. Throws DataError when
// a part would be empty.
std::pair<SignalWindows, SignalWindows> hold_out(const SignalWindows& windows, double share,
                                                 uint64_t seed);

}  // namespace convoy::data
