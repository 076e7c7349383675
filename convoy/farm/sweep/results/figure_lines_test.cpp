// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/figure_lines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/results/example_cell_test.h"
#include "convoy/farm/sweep/results/figure.h"

namespace convoy::sweep {
namespace {

std::vector<double> counted_up(size_t count) {
  std::vector<double> values;
  for (size_t at = 1; at <= count; ++at) values.push_back(static_cast<double>(at));
  return values;
}

// The ranks are those in tables of the sign test, where all n values are on one side with
// probability 2 * 2^-n.
TEST(MedianInterval, IsOfOrderStatistics) {
  using Pair = std::pair<double, double>;
  EXPECT_TRUE(std::isnan(median_interval(counted_up(5)).first));
  EXPECT_EQ(median_interval(counted_up(6)), Pair(1, 6));
  EXPECT_EQ(median_interval(counted_up(8)), Pair(1, 8));
  EXPECT_EQ(median_interval(counted_up(9)), Pair(2, 8));
  EXPECT_EQ(median_interval(counted_up(20)), Pair(6, 15));
  EXPECT_EQ(median_interval(counted_up(100)), Pair(40, 61));
  EXPECT_TRUE(std::isnan(median_interval({}).first));
}

TEST(FigureLines, AreAMethodAndItsPlacesInOrder) {
  const SweepResults results = testing::example_results();
  const FigureLines figure = figure_lines(results, "");
  EXPECT_EQ(figure.axis, "student_dim");
  EXPECT_EQ(figure.values, (std::vector<double>{150, 300}));
  ASSERT_EQ(figure.lines.size(), 2u);
  EXPECT_EQ(figure.lines[0].label, "guess and check");
  EXPECT_EQ(figure.lines[0].places[0].cells.size(), 2u);
  EXPECT_EQ(sorted_measures(figure.lines[0].places[0].cells, {}), std::vector<double>{0.25});
  // The censored cell accepted a share of 0.
  const FigureMeasure share{.kind = FigureMeasure::Kind::AcceptedShare};
  EXPECT_EQ(sorted_measures(figure.lines[0].places[0].cells, share).size(), 2u);
}

TEST(FigureMeasures, AreResultsByTheirNamesAndNumbersOfEveryCell) {
  SweepResults results = testing::example_results();
  results.metrics = {"loss", "seconds"};
  EXPECT_EQ(figure_measures(results, "").size(), 2u);
  EXPECT_EQ(figure_measures(results, "seconds").at(0).result, 1u);
  EXPECT_EQ(figure_measures(results, "train_loss").at(0).kind, FigureMeasure::Kind::TrainLoss);
  EXPECT_TRUE(figure_measures(results, "value").at(0).is_value());
  try {
    figure_measures(results, "accuracy");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.sentence(),
              "--y: no cell has a result `accuracy` (loss, seconds, train_loss, accepted_share or "
              "seconds)");
  }
}

TEST(FigureLines, OfAnUnknownParameterAreRefused) {
  try {
    figure_lines(testing::example_results(), "dim");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(
        error.sentence(),
        "--x: no cell has a parameter `dim` (name a parameter of the sweep, or leave --x out)");
  }
}

TEST(Figures, HaveBandCurvesAndCounts) {
  SweepResults results = testing::example_results();
  results.cells.push_back(testing::example_cell("gnc", 150, 7, CellState::Value, 0.75));
  // A band of height 0 is not drawn.
  EXPECT_EQ(figure_svg(results, {}).find("<polygon"), std::string::npos);
  results.cells.push_back(testing::example_cell("gd", 150, 7, CellState::Value, 2e-5));
  const std::string svg = figure_svg(results, {});
  EXPECT_NE(svg.find("<polygon"), std::string::npos);
  EXPECT_NE(svg.find("1 censored (no guess passed), 1 failed"), std::string::npos);
  EXPECT_NE(svg.find("theory"), std::string::npos);
  EXPECT_NE(svg.find("each seed"), std::string::npos);
}

TEST(Figures, CaptionsAreOfThePanelsThatAreDrawn) {
  SweepResults results = testing::example_results();
  results.cells.push_back(testing::example_cell("gnc", 150, 7, CellState::Value, 0.75));
  const auto begins = [&](const FigureOptions& options, const std::string& caption) {
    const std::string svg = figure_svg(results, options);
    EXPECT_NE(svg.find(">" + caption), std::string::npos) << svg.substr(svg.size() - 800);
  };
  begins({}, "Medians over 3 seeds with quartiles; ");
  begins({.panels = {FigurePanel::Seeds}, .band = FigureBand::None}, "Each of 3 seeds; ");
  begins({.panels = {FigurePanel::Acceptance}},
         "Shares of the guesses of 3 seeds together, and of each; ");
  // No place has six values, the least number that has an interval.
  const FigureOptions intervals{.panels = {FigurePanel::Median}, .band = FigureBand::Interval};
  begins(intervals, "Medians over 3 seeds; ");
  EXPECT_TRUE(lacks_intervals(results, intervals));
  EXPECT_FALSE(lacks_intervals(results, {}));
  for (int64_t seed = 10; seed < 15; ++seed)
    results.cells.push_back(testing::example_cell("gnc", 150, seed, CellState::Value, 0.5));
  begins(intervals, "Medians over 8 seeds with 95 % intervals of the median");
  EXPECT_FALSE(lacks_intervals(results, intervals));
}

TEST(Figures, MarksAndCountsAreOfMethodsThatHaveTheMeasure) {
  SweepResults results = testing::example_results();
  for (CellResult& cell : results.cells)
    cell.outcome.train_loss = cell.cell.method == "gd" ? 0.5 : std::nan("");
  const std::string svg = figure_svg(results, {.y = "train_loss"});
  EXPECT_EQ(svg.find("censored"), std::string::npos) << "guesses have no training loss";
  EXPECT_NE(svg.find("2 cells: 2 values"), std::string::npos);
}

TEST(Figures, EachTeacherRankHasItsOwnTheory) {
  SweepResults results{.workload = "ssm", .version = "1", .axes = {"student_dim"}, .cells = {}};
  for (const int64_t rank : {1, 2})
    for (const int64_t dim : {150, 300}) {
      CellResult cell = testing::example_cell("gnc", dim, 0, CellState::Value, 0.5);
      auto parameters = nlohmann::json::parse(cell.cell.parameters.str());
      parameters["teacher_rank"] = rank;
      cell.cell.parameters = parameters.dump();
      cell.reference.curve = 0.25 * static_cast<double>(rank);
      cell.reference.prior_mean = 2;
      results.cells.push_back(cell);
    }
  const std::string svg = figure_svg(results, {});
  EXPECT_NE(svg.find(">theory, teacher_rank=1<"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">theory, teacher_rank=2<"), std::string::npos);
  // Both ranks have the same curve, which is drawn once.
  EXPECT_NE(svg.find(">prior mean (theory)<"), std::string::npos);
  EXPECT_EQ(svg.find(">prior mean (theory), teacher_rank"), std::string::npos);
}

TEST(Figures, ValuesThatAreNoWholeNumbersStandOnTheAxisByName) {
  SweepResults results{.workload = "run", .version = "1", .axes = {"student_dim"}, .cells = {}};
  for (const std::string word : {"adam", "lion", "sgd"})
    for (const int64_t seed : {0, 1}) {
      CellResult cell;
      cell.cell = {.method = "run",
                   .seed = seed,
                   .parameters = R"({"command":["x"],"values":{"opt":")" + word + R"("}})"};
      cell.state = CellState::Value;
      cell.value = 1;
      if (word == "lion" && seed == 1) {
        cell.state = CellState::Failed;
        cell.value = std::nan("");
      }
      results.cells.push_back(cell);
    }
  const std::string svg = figure_svg(results, {});
  EXPECT_EQ(svg.find("stroke-dasharray"), std::string::npos) << "a line between names";
  for (const char* name : {">adam<", ">sgd<", ">opt<"}) {
    const size_t first = svg.find(name);
    ASSERT_NE(first, std::string::npos) << name;
    EXPECT_NE(svg.find(name, first + 1), std::string::npos) << name << " in the right panel";
  }
}

}  // namespace
}  // namespace convoy::sweep
