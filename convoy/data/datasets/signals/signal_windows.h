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
  int64_t window_rows = 0;                 // times
  std::vector<std::string> channel_names;  // sensors
  std::vector<float> values;               // [windows, rows, channels]
  std::vector<int64_t> classes;   // by window: labels as read, then from 0 (signal_classes.h)
  std::vector<int64_t> subjects;  // subject by window; empty = unknown

  int64_t num_channels() const { return static_cast<int64_t>(channel_names.size()); }
  std::span<const float> window(int64_t index) const {
    const auto size = static_cast<size_t>(window_rows * num_channels());
    return std::span(values).subspan(static_cast<size_t>(index) * size, size);
  }
  // Returns only these windows, in this order.
  SignalWindows selected(const std::vector<int64_t>& windows) const;
  // SHA-256 of all members.
  std::string content_hash() const;
};

// Training and held-out windows, about `share` of all held out: whole subjects when they are known,
// because windows of one subject are alike, else single windows. Chosen by `seed`; both keep their
// order. Throws DataError when one of the two would be empty.
std::pair<SignalWindows, SignalWindows> hold_out(const SignalWindows& windows, double share,
                                                 uint64_t seed);

}  // namespace convoy::data
