// SPDX-License-Identifier: Apache-2.0
//
// Metrics of a classification, as in scikit-learn's precision_recall_fscore_support with
// zero_division=0.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace convoy::evaluate {

// Counts pairs (true class, predicted class). Only pairs that occur take memory.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int64_t num_classes) : num_classes_(num_classes) {}

  void add(int64_t truth, int64_t predicted);
  int64_t count(int64_t truth, int64_t predicted) const;
  // Counts by (true class, predicted class), without zeros.
  const std::map<std::pair<int64_t, int64_t>, int64_t>& counts() const { return counts_; }
  int64_t num_classes() const { return num_classes_; }
  int64_t total() const;
  int64_t correct() const;

 private:
  int64_t num_classes_;
  std::map<std::pair<int64_t, int64_t>, int64_t> counts_;
};

struct ClassFigures {
  double precision = 0;
  double recall = 0;
  double f1 = 0;
  int64_t support = 0;  // number of rows of this class
};

struct ClassificationFigures {
  double accuracy = 0;
  double macro_f1 = 0;     // mean over the classes that are true or predicted in some row
  double weighted_f1 = 0;  // mean over rows
  std::vector<ClassFigures> classes;
};

ClassificationFigures classification_figures(const ConfusionMatrix& matrix);

// Maximum number of classes for which the matrix is shown; people cannot read a larger one.
inline constexpr int64_t kMostShownClasses = 64;

// A table for people: one row per class with its metrics, then the matrix with the true classes
// from top to bottom. `names`: the names of the classes. With more than kMostShownClasses classes
// it has no matrix, and only the classes with the most rows. Lines end in '\n'.
std::string classification_table(const ConfusionMatrix& matrix,
                                 const std::vector<std::string>& names);

}  // namespace convoy::evaluate
