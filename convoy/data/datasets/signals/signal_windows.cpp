// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/signals/signal_windows.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/data/datasets/seeded_shuffle.h"

namespace convoy::data {
namespace {

constexpr uint64_t kHoldOutStream = 0x686f6c642d6f7574ull;

std::set<int64_t> chosen_subjects(const SignalWindows& windows, int64_t wanted, uint64_t seed) {
  const std::set<int64_t> distinct(windows.subjects.begin(), windows.subjects.end());
  const std::vector<int64_t> subjects(distinct.begin(), distinct.end());
  std::set<int64_t> chosen;
  int64_t held = 0;
  for (const int64_t place :
       seeded_permutation(static_cast<int64_t>(subjects.size()), {kHoldOutStream, seed})) {
    if (held >= wanted) break;
    const int64_t subject = subjects[static_cast<size_t>(place)];
    held += std::count(windows.subjects.begin(), windows.subjects.end(), subject);
    chosen.insert(subject);
  }
  return chosen;
}

std::vector<bool> held_windows(const SignalWindows& windows, int64_t wanted, uint64_t seed) {
  std::vector<bool> held(static_cast<size_t>(windows.num_windows));
  if (windows.subjects.empty()) {
    const std::vector<int64_t> order =
        seeded_permutation(windows.num_windows, {kHoldOutStream, seed});
    for (int64_t place = 0; place < wanted; ++place)
      held[static_cast<size_t>(order[static_cast<size_t>(place)])] = true;
    return held;
  }
  const std::set<int64_t> subjects = chosen_subjects(windows, wanted, seed);
  for (size_t window = 0; window < held.size(); ++window)
    held[window] = subjects.contains(windows.subjects[window]);
  return held;
}

template <class Value>
void update(Sha256& hash, const std::vector<Value>& values) {
  hash.update(std::as_bytes(std::span(values)));
}

}  // namespace

SignalWindows SignalWindows::selected(const std::vector<int64_t>& windows) const {
  SignalWindows found;
  found.num_windows = static_cast<int64_t>(windows.size());
  found.window_rows = window_rows;
  found.channel_names = channel_names;
  for (const int64_t index : windows) {
    const std::span<const float> from = window(index);
    found.values.insert(found.values.end(), from.begin(), from.end());
    found.classes.push_back(classes[static_cast<size_t>(index)]);
    if (!subjects.empty()) found.subjects.push_back(subjects[static_cast<size_t>(index)]);
  }
  return found;
}

std::string SignalWindows::content_hash() const {
  Sha256 hash;
  hash.update(fmt::format("{} {}", num_windows, window_rows));
  for (const std::string& name : channel_names) hash.update("\n" + name);
  update(hash, values);
  update(hash, classes);
  return hash.hex();
}

std::pair<SignalWindows, SignalWindows> hold_out(const SignalWindows& windows, double share,
                                                 uint64_t seed) {
  const auto wanted =
      static_cast<int64_t>(std::llround(share * static_cast<double>(windows.num_windows)));
  const std::vector<bool> held = held_windows(windows, wanted, seed);
  std::vector<int64_t> parts[2];
  for (size_t window = 0; window < held.size(); ++window)
    parts[held[window] ? 1 : 0].push_back(static_cast<int64_t>(window));
  if (parts[0].empty() || parts[1].empty())
    throw DataError(
        fmt::format("a share of {} of {} windows{} leaves {} for training and {} for validation",
                    share, windows.num_windows, windows.subjects.empty() ? "" : " by subject",
                    parts[0].size(), parts[1].size()),
        {.key = "classify.val_ratio", .hint = "another share, or 0 for none"});
  return {windows.selected(parts[0]), windows.selected(parts[1])};
}

}  // namespace convoy::data
