// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/error_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace convoy::config {
namespace {

constexpr size_t kShown = 20;
constexpr size_t kKept = 1000;  // errors that are kept; further errors are only counted

std::string with_hint(const ConfigError& error) {
  const std::string& hint = error.location().hint;
  return hint.empty() ? error.what() : fmt::format("{} ({})", error.what(), hint);
}

}  // namespace

bool ErrorList::full() const { return errors_.size() >= kKept; }

void ErrorList::add(const ConfigError& error) {
  if (!full()) {
    if (!sentences_.insert(error.sentence()).second) return;
    errors_.push_back(error);
  }
  ++count_;
}

void ErrorList::add(const ErrorList& errors) {
  for (const ConfigError& error : errors.errors_) add(error);
  count_ += errors.count_ - static_cast<int64_t>(errors.errors_.size());
}

void ErrorList::throw_if_any(const std::vector<std::string>& files) const {
  if (empty()) return;
  if (count_ == 1) throw ConfigError(errors_.front());
  const auto rank = [&files](const ConfigError& error) {
    if (error.location().file.empty()) return std::pair(files.size() + 1, int64_t{0});
    const auto found = std::find(files.begin(), files.end(), error.location().file);
    return std::pair(static_cast<size_t>(found - files.begin()), error.location().line);
  };
  std::vector<ConfigError> sorted = errors_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&rank](const auto& a, const auto& b) { return rank(a) < rank(b); });
  // The first error's place leads the sentence and fills the JSON line.
  ErrorLocation location = sorted.front().location();
  location.hint.clear();
  std::string text = with_hint(sorted.front());
  const size_t shown = std::min(sorted.size(), kShown);
  for (size_t at = 1; at < shown; ++at) text += "\n" + sorted[at].sentence();
  const int64_t hidden = count_ - static_cast<int64_t>(shown);
  text += hidden == 0 ? fmt::format("\n{} errors", count_)
                      : fmt::format("\n{} errors, of which the first {} are shown", count_, shown);
  throw ConfigError(text, location);
}

}  // namespace convoy::config
