// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "convoy/core/base/error.h"

namespace convoy::evaluate {
namespace {

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

ClassFigures figures_of(const ConfusionMatrix& matrix, int64_t one) {
  int64_t predicted = 0;
  int64_t support = 0;
  for (int64_t other = 0; other < matrix.num_classes(); ++other) {
    predicted += matrix.count(other, one);
    support += matrix.count(one, other);
  }
  const int64_t right = matrix.count(one, one);
  return {.precision = share(right, predicted),
          .recall = share(right, support),
          .f1 = share(2 * right, predicted + support),
          .support = support};
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(int64_t num_classes)
    : num_classes_(num_classes), counts_(static_cast<size_t>(num_classes * num_classes)) {}

void ConfusionMatrix::add(int64_t truth, int64_t predicted) {
  CONVOY_INVARIANT(truth >= 0 && truth < num_classes_ && predicted >= 0 && predicted < num_classes_,
                   "class {} taken for {} of {} classes", truth, predicted, num_classes_);
  ++counts_[static_cast<size_t>(truth * num_classes_ + predicted)];
}

int64_t ConfusionMatrix::count(int64_t truth, int64_t predicted) const {
  return counts_.at(static_cast<size_t>(truth * num_classes_ + predicted));
}

int64_t ConfusionMatrix::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
}

int64_t ConfusionMatrix::correct() const {
  int64_t sum = 0;
  for (int64_t one = 0; one < num_classes_; ++one) sum += count(one, one);
  return sum;
}

ClassificationFigures classification_figures(const ConfusionMatrix& matrix) {
  ClassificationFigures figures;
  figures.accuracy = share(matrix.correct(), matrix.total());
  for (int64_t one = 0; one < matrix.num_classes(); ++one) {
    const ClassFigures of_class = figures_of(matrix, one);
    figures.macro_f1 += of_class.f1 / static_cast<double>(matrix.num_classes());
    figures.weighted_f1 += of_class.f1 * share(of_class.support, matrix.total());
    figures.classes.push_back(of_class);
  }
  return figures;
}

std::string classification_table(const ConfusionMatrix& matrix,
                                 const std::vector<std::string>& names) {
  size_t width = 10;
  for (const std::string& name : names) width = std::max(width, name.size());
  const ClassificationFigures figures = classification_figures(matrix);
  std::string text = fmt::format("{:<{}}  precision  recall      f1    rows", "class", width);
  for (int64_t one = 0; one < matrix.num_classes(); ++one) text += fmt::format(" {:>6}", one + 1);
  text += '\n';
  for (int64_t one = 0; one < matrix.num_classes(); ++one) {
    const auto place = static_cast<size_t>(one);
    const ClassFigures& of_class = figures.classes[place];
    text += fmt::format("{:<{}}  {:>9.4f}  {:>6.4f}  {:>6.4f}  {:>6}", names.at(place), width,
                        of_class.precision, of_class.recall, of_class.f1, of_class.support);
    for (int64_t other = 0; other < matrix.num_classes(); ++other)
      text += fmt::format(" {:>6}", matrix.count(one, other));
    text += '\n';
  }
  text += fmt::format("accuracy {:.4f}, macro f1 {:.4f}, weighted f1 {:.4f}\n", figures.accuracy,
                      figures.macro_f1, figures.weighted_f1);
  return text;
}

}  // namespace convoy::evaluate
