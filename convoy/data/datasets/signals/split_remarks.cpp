// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/signals/split_remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "convoy/core/base/counted.h"

namespace convoy::data {
namespace {

// The words as text; a long list is shortened.
std::string listed(const std::vector<std::string>& words) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t place = 0; place < std::min(words.size(), kMost); ++place)
    text += (place == 0 ? "" : ", ") + words[place];
  if (words.size() > kMost) text += fmt::format(" and {} more", words.size() - kMost);
  return text;
}

std::vector<std::string> lacked_classes(const SignalWindows& windows,
                                        const std::vector<std::string>& names) {
  std::vector<bool> there(names.size());
  for (const int64_t one : windows.classes) there[static_cast<size_t>(one)] = true;
  std::vector<std::string> lacked;
  for (size_t one = 0; one < names.size(); ++one)
    if (!there[one]) lacked.push_back(names[one]);
  return lacked;
}

std::string class_words(const std::vector<std::string>& names) {
  return fmt::format("{} {}", names.size() == 1 ? "class" : "classes", listed(names));
}

void remark_lacked_classes(const SignalDivision& division, std::vector<std::string>& remarks) {
  const auto in_train = lacked_classes(division.train, division.class_names);
  if (!in_train.empty())
    remarks.push_back(
        fmt::format("no training window is of {}: the network cannot learn {}{}",
                    class_words(in_train), in_train.size() == 1 ? "it" : "them",
                    division.held_share > 0
                        ? "; where the windows held out have all of one, take another seed or "
                          "classify.val_ratio"
                        : ""));
  const std::pair<const SignalWindows*, const char*> parts[] = {
      {&division.validation, "validation"}, {&division.test, "test"}};
  for (const auto& [windows, word] : parts) {
    if (windows->num_windows == 0) continue;
    const auto lacked = lacked_classes(*windows, division.class_names);
    if (!lacked.empty())
      remarks.push_back(fmt::format("no {} window is of {}: its figures say nothing about {}", word,
                                    class_words(lacked), lacked.size() == 1 ? "it" : "them"));
  }
}

void remark_share(const SignalDivision& division, std::vector<std::string>& remarks) {
  constexpr double kFarOff = 0.5;  // limit of |held share / wanted share - 1|
  if (division.held_share <= 0) return;
  const auto held = static_cast<double>(division.validation.num_windows);
  const double all = held + static_cast<double>(division.train.num_windows);
  if (std::abs(held / all - division.held_share) <= kFarOff * division.held_share) return;
  const std::set<int64_t> subjects(division.validation.subjects.begin(),
                                   division.validation.subjects.end());
  remarks.push_back(fmt::format(
      "classify.val_ratio asks for {:.4g} % of the training windows, and {:.4g} % are held out{}",
      100 * division.held_share, 100 * held / all,
      subjects.empty() ? std::string()
                       : fmt::format(": all windows of {}, because subjects are not divided; "
                                     "another seed holds out others, a folder val holds out yours",
                                     counted(static_cast<int64_t>(subjects.size()), "subject"))));
}

void remark_shared_subjects(const SignalDivision& division, std::vector<std::string>& remarks) {
  struct Part {
    const SignalWindows& windows;
    const char* word;
  };
  const Part parts[] = {
      {division.train, "training"}, {division.validation, "validation"}, {division.test, "test"}};
  for (size_t one = 0; one < std::size(parts); ++one)
    for (size_t other = one + 1; other < std::size(parts); ++other) {
      const std::set<int64_t> first(parts[one].windows.subjects.begin(),
                                    parts[one].windows.subjects.end());
      std::set<int64_t> both;
      for (const int64_t subject : parts[other].windows.subjects)
        if (first.contains(subject)) both.insert(subject);
      if (both.empty()) continue;
      std::vector<std::string> words;
      for (const int64_t subject : both) words.push_back(std::to_string(subject));
      remarks.push_back(fmt::format(
          "{} {} {} windows in the {} and in the {} part: windows of one person are alike, so the "
          "{} figures are too good for persons who are new",
          words.size() == 1 ? "subject" : "subjects", listed(words),
          words.size() == 1 ? "has" : "have", parts[one].word, parts[other].word,
          parts[other].word));
    }
}

void remark_many_classes(const SignalDivision& division, std::vector<std::string>& remarks) {
  const auto classes = static_cast<int64_t>(division.class_names.size());
  const int64_t windows = division.train.num_windows + division.validation.num_windows;
  if (classes > 2 && 2 * classes > windows)
    remarks.push_back(fmt::format(
        "{} for {}: each label is the code of a class; measured values or running numbers are none",
        counted(classes, "class", "classes"), counted(windows, "training window")));
}

}  // namespace

std::vector<std::string> split_remarks(const SignalDivision& division) {
  std::vector<std::string> remarks;
  remark_many_classes(division, remarks);
  remark_share(division, remarks);
  remark_lacked_classes(division, remarks);
  remark_shared_subjects(division, remarks);
  return remarks;
}

}  // namespace convoy::data
