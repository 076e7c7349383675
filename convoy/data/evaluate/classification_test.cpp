// SPDX-License-Identifier: Apache-2.0
//
// Compares with scikit-learn (tests/golden/evaluate).
#include "convoy/data/evaluate/classification.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"

namespace convoy::evaluate {
namespace {

using nlohmann::json;

ConfusionMatrix counted(const json& one) {
  ConfusionMatrix matrix(one["classes"]);
  for (size_t row = 0; row < one["truth"].size(); ++row)
    matrix.add(one["truth"][row], one["predicted"][row]);
  return matrix;
}

TEST(Classification, FiguresAreThoseOfScikitLearn) {
  const json cases = json::parse(read_file(std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) /
                                           "tests/golden/evaluate/classification.json"));
  ASSERT_GE(cases.size(), 8U);
  for (const json& one : cases) {
    const ConfusionMatrix matrix = counted(one);
    const ClassificationFigures figures = classification_figures(matrix);
    EXPECT_NEAR(figures.accuracy, one["accuracy"], 1e-12);
    EXPECT_NEAR(figures.macro_f1, one["macro_f1"], 1e-12);
    EXPECT_NEAR(figures.weighted_f1, one["weighted_f1"], 1e-12);
    for (size_t place = 0; place < figures.classes.size(); ++place) {
      EXPECT_NEAR(figures.classes[place].precision, one["precision"][place], 1e-12) << place;
      EXPECT_NEAR(figures.classes[place].recall, one["recall"][place], 1e-12) << place;
      EXPECT_NEAR(figures.classes[place].f1, one["f1"][place], 1e-12) << place;
      EXPECT_EQ(figures.classes[place].support, one["support"][place].get<int64_t>());
      for (size_t other = 0; other < figures.classes.size(); ++other)
        EXPECT_EQ(matrix.count(static_cast<int64_t>(place), static_cast<int64_t>(other)),
                  one["matrix"][place][other].get<int64_t>());
    }
  }
}

TEST(Classification, TableHasARowForEachClassAndTheMatrix) {
  ConfusionMatrix matrix(2);
  for (int row = 0; row < 3; ++row) matrix.add(0, 0);
  matrix.add(0, 1);
  matrix.add(1, 1);
  EXPECT_EQ(classification_table(matrix, {"SITTING", "LAYING"}),
            "class       precision  recall      f1    rows SITTING  LAYING\n"
            "SITTING        1.0000  0.7500  0.8571       4       3       1\n"
            "LAYING         0.5000  1.0000  0.6667       1       0       1\n"
            "accuracy 0.8000, macro f1 0.7619, weighted f1 0.8190\n");
}

// Columns of classes with long names are numbered. With very many classes, the counts of single
// cells are not shown.
TEST(Classification, TableStaysReadable) {
  ConfusionMatrix pair(2);
  pair.add(1, 0);
  EXPECT_NE(
      classification_table(pair, {"WALKING_UPSTAIRS", "SITTING"}).find("rows      1      2\n"),
      std::string::npos);
  ConfusionMatrix many(100'000);
  for (int64_t one = 0; one < 100; ++one) many.add(999 * one, 999 * one);
  many.add(5, 7);
  std::vector<std::string> names;
  for (int64_t one = 0; one < many.num_classes(); ++one) names.push_back(std::to_string(one));
  const std::string text = classification_table(many, names);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), kMostShownClasses + 3);
  EXPECT_NE(text.find("99936 more classes\naccuracy 0.9901"), std::string::npos) << text;
}

TEST(Classification, RefusesClassesThatAreNotThere) {
  ConfusionMatrix matrix(3);
  EXPECT_THROW(matrix.add(3, 0), StateError);
  EXPECT_THROW(matrix.add(0, -1), StateError);
  EXPECT_EQ(classification_figures(matrix).accuracy, 0);
}

}  // namespace
}  // namespace convoy::evaluate
