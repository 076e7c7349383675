// SPDX-License-Identifier: Apache-2.0
//
// Metrics of a classification, as in scikit-learn's precision_recall_fscore_support with
// zero_division=0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::evaluate {

// Counts of (true class, predicted class).
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int64_t num_classes);

  void add(int64_t truth, int64_t predicted);
  int64_t count(int64_t truth, int64_t predicted) const;
  int64_t num_classes() const { return num_classes_; }
  int64_t total() const;
  int64_t correct() const;

 private:
  int64_t num_classes_;
  std::vector<int64_t> counts_;
};

struct ClassFigures {
  double precision = 0;
  double recall = 0;
  double f1 = 0;
  int64_t support = 0;  // rows of this class
};

struct ClassificationFigures {
  double accuracy = 0;
  double macro_f1 = 0;     // mean over classes
  double weighted_f1 = 0;  // mean over rows
  std::vector<ClassFigures> classes;
};

ClassificationFigures classification_figures(const ConfusionMatrix& matrix);

// A table for people: a row per class with its metrics, and the matrix, true classes down. `names`:
// of the classes. Lines end in '\n'.
std::string classification_table(const ConfusionMatrix& matrix,
                                 const std::vector<std::string>& names);

}  // namespace convoy::evaluate
