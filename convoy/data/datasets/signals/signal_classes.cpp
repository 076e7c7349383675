// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/signals/signal_classes.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/text_as.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLineBlanks = " \t\r";
constexpr const char* kKey = "classify.data_dir";

struct NamedLabel {
  int64_t label = 0;
  std::string name;
};

NamedLabel parse_named_label(const std::string& row, const ErrorLocation& location) {
  const size_t label_end = row.find_first_of(kLineBlanks);
  const size_t name_begin = row.find_first_not_of(kLineBlanks, label_end);
  const auto label = text_as<int64_t>(std::string_view(row).substr(0, label_end));
  if (!label || label_end == std::string::npos || name_begin == std::string::npos)
    throw DataError(fmt::format("wanted `LABEL NAME` with a whole number, found `{}`", row),
                    {.file = location.file,
                     .line = location.line,
                     .key = location.key,
                     .hint = "write a line such as 1 WALKING"});
  return {*label, row.substr(name_begin)};
}

std::map<int64_t, std::string> read_named_labels(const fs::path& path) {
  std::istringstream lines(read_file(path));
  std::map<int64_t, std::string> names;
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const ErrorLocation location{.file = path.string(), .line = ++number, .key = kKey};
    const size_t begin = line.find_first_not_of(kLineBlanks);
    if (begin == std::string::npos) continue;
    const auto one = parse_named_label(
        line.substr(begin, line.find_last_not_of(kLineBlanks) + 1 - begin), location);
    if (!names.emplace(one.label, one.name).second)
      throw DataError(fmt::format("label {} stands on an earlier line too", one.label),
                      {.file = location.file,
                       .line = location.line,
                       .key = location.key,
                       .hint = "keep one of them"});
  }
  if (names.empty())
    throw DataError("the file names no class",
                    {.file = path.string(), .key = kKey, .hint = "list them, or remove the file"});
  return names;
}

// The labels as text; a long list is shortened to its first and last ones.
std::string labels_text(const std::vector<int64_t>& labels) {
  constexpr size_t kMost = 12;
  std::string text;
  for (size_t place = 0; place < labels.size(); ++place) {
    if (place + 1 == kMost && labels.size() > kMost) {
      text += ", ...";
      place = labels.size() - 1;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ", ", labels[place]);
  }
  return text;
}

}  // namespace

namespace {

void require_two_classes(const SignalClasses& classes, const fs::path& labels_of_windows) {
  if (classes.labels.size() > 1) return;
  throw DataError(
      fmt::format("wanted two classes at least in {}, found {} alone", kKey, classes.names.front()),
      {.file = (classes.file.empty() ? labels_of_windows : classes.file).string(),
       .key = kKey,
       .hint = "a model learns what tells classes apart: add windows with another label"});
}

}  // namespace

SignalClasses read_signal_classes(const fs::path& folder, const SignalWindows& train) {
  SignalClasses classes;
  const fs::path labels_of_windows = folder / "train" / "y_train.txt";
  const fs::path path = folder / "activity_labels.txt";
  if (fs::exists(path)) {
    classes.file = path;
    for (const auto& [label, name] : read_named_labels(path)) {
      classes.labels.push_back(label);
      classes.names.push_back(name);
    }
    require_two_classes(classes, labels_of_windows);
    return classes;
  }
  const std::set<int64_t> labels(train.classes.begin(), train.classes.end());
  for (const int64_t label : labels) {
    classes.labels.push_back(label);
    classes.names.push_back(std::to_string(label));
  }
  if (!labels.empty()) require_two_classes(classes, labels_of_windows);
  return classes;
}

void number_classes(SignalWindows& windows, const SignalClasses& classes, const fs::path& file) {
  for (size_t window = 0; window < windows.classes.size(); ++window) {
    int64_t& of_window = windows.classes[window];
    const auto found = std::lower_bound(classes.labels.begin(), classes.labels.end(), of_window);
    if (found == classes.labels.end() || *found != of_window)
      throw DataError(
          fmt::format("label {} is no class: {} {}", of_window,
                      classes.file.empty() ? "the training windows have the labels"
                                           : classes.file.string() + " lists",
                      labels_text(classes.labels)),
          {.file = file.string(),
           .line = static_cast<int64_t>(window) + 1,
           .key = kKey,
           .hint = fmt::format("correct it, or list it in {}/activity_labels.txt as `{} NAME`",
                               kKey, of_window)});
    of_window = found - classes.labels.begin();
  }
}

}  // namespace convoy::data
