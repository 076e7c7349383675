// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "convoy/core/base/error.h"

namespace convoy::evaluate {
namespace {

// Maximum length of a name, in letters, that heads a column of the matrix.
constexpr size_t kLongestHead = 10;

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

size_t longest(const std::vector<std::string>& names) {
  size_t most = 0;
  for (const std::string& name : names) most = std::max(most, name.size());
  return most;
}

// Indices of the classes to show: all classes, or the classes with the most rows, in ascending
// order.
std::vector<size_t> shown_classes(const std::vector<ClassFigures>& classes) {
  std::vector<size_t> shown(classes.size());
  std::iota(shown.begin(), shown.end(), size_t{0});
  if (static_cast<int64_t>(shown.size()) <= kMostShownClasses) return shown;
  std::stable_sort(shown.begin(), shown.end(), [&](size_t one, size_t other) {
    return classes[one].support > classes[other].support;
  });
  shown.resize(static_cast<size_t>(kMostShownClasses));
  std::sort(shown.begin(), shown.end());
  return shown;
}

// The heads of the matrix columns: the names, or numbers from 1 if a name is too long.
std::vector<std::string> column_heads(const std::vector<std::string>& names) {
  if (static_cast<int64_t>(names.size()) > kMostShownClasses) return {};
  if (longest(names) <= kLongestHead) return names;
  std::vector<std::string> heads;
  for (size_t place = 1; place <= names.size(); ++place) heads.push_back(std::to_string(place));
  return heads;
}

}  // namespace

void ConfusionMatrix::add(int64_t truth, int64_t predicted) {
  CONVOY_INVARIANT(truth >= 0 && truth < num_classes_ && predicted >= 0 && predicted < num_classes_,
                   "class {} taken for {} of {} classes", truth, predicted, num_classes_);
  ++counts_[{truth, predicted}];
}

int64_t ConfusionMatrix::count(int64_t truth, int64_t predicted) const {
  const auto found = counts_.find({truth, predicted});
  return found == counts_.end() ? 0 : found->second;
}

int64_t ConfusionMatrix::total() const {
  int64_t sum = 0;
  for (const auto& [pair, rows] : counts_) sum += rows;
  return sum;
}

int64_t ConfusionMatrix::correct() const {
  int64_t sum = 0;
  for (const auto& [pair, rows] : counts_)
    if (pair.first == pair.second) sum += rows;
  return sum;
}

ClassificationFigures classification_figures(const ConfusionMatrix& matrix) {
  ClassificationFigures figures;
  const int64_t total = matrix.total();
  figures.accuracy = share(matrix.correct(), total);
  figures.classes.resize(static_cast<size_t>(matrix.num_classes()));
  std::vector<int64_t> predicted(figures.classes.size());
  for (const auto& [pair, rows] : matrix.counts()) {
    figures.classes[static_cast<size_t>(pair.first)].support += rows;
    predicted[static_cast<size_t>(pair.second)] += rows;
  }
  int64_t occurring = 0;
  for (size_t one = 0; one < figures.classes.size(); ++one) {
    ClassFigures& of_class = figures.classes[one];
    const int64_t right = matrix.count(static_cast<int64_t>(one), static_cast<int64_t>(one));
    of_class.precision = share(right, predicted[one]);
    of_class.recall = share(right, of_class.support);
    of_class.f1 = share(2 * right, predicted[one] + of_class.support);
    if (predicted[one] + of_class.support == 0) continue;
    ++occurring;
    figures.macro_f1 += of_class.f1;
    figures.weighted_f1 += of_class.f1 * share(of_class.support, total);
  }
  if (occurring > 0) figures.macro_f1 /= static_cast<double>(occurring);
  return figures;
}

std::string classification_table(const ConfusionMatrix& matrix,
                                 const std::vector<std::string>& names) {
  const size_t width = std::max<size_t>(10, longest(names));
  const ClassificationFigures figures = classification_figures(matrix);
  const std::vector<std::string> heads = column_heads(names);
  const size_t cell = std::max<size_t>(6, longest(heads));
  std::string text = fmt::format("{:<{}}  precision  recall      f1    rows", "class", width);
  for (const std::string& head : heads) text += fmt::format(" {:>{}}", head, cell);
  text += '\n';
  const std::vector<size_t> shown = shown_classes(figures.classes);
  for (const size_t place : shown) {
    const ClassFigures& of_class = figures.classes[place];
    text += fmt::format("{:<{}}  {:>9.4f}  {:>6.4f}  {:>6.4f}  {:>6}", names.at(place), width,
                        of_class.precision, of_class.recall, of_class.f1, of_class.support);
    for (size_t other = 0; other < heads.size(); ++other)
      text += fmt::format(
          " {:>{}}", matrix.count(static_cast<int64_t>(place), static_cast<int64_t>(other)), cell);
    text += '\n';
  }
  if (shown.size() < figures.classes.size())
    text += fmt::format("{} more classes\n", figures.classes.size() - shown.size());
  text += fmt::format("accuracy {:.4f}, macro f1 {:.4f}, weighted f1 {:.4f}\n", figures.accuracy,
                      figures.macro_f1, figures.weighted_f1);
  return text;
}

}  // namespace convoy::evaluate
