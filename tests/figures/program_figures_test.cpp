// SPDX-License-Identifier: Apache-2.0
//
// Tests the figures of programs' results: several results, samples, long names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "convoy/farm/sweep/results/figure.h"
#include "figures/figure_checks.h"

namespace convoy::sweep {
namespace {

using nlohmann::json;

// Returns the results of a program. A sample gives `lr` and the parameters that vary with it.
SweepResults of_program(const std::vector<std::map<std::string, std::string>>& samples,
                        std::vector<std::string> results_of_each = {"loss"}, int64_t seeds = 2) {
  SweepResults results{.workload = "run",
                       .version = "1",
                       .axes = {},
                       .cells = {},
                       .metrics = std::move(results_of_each)};
  for (const auto& values : samples)
    for (int64_t seed = 0; seed < seeds; ++seed) {
      CellResult cell;
      cell.cell = {.method = "run",
                   .seed = seed,
                   .parameters = json{{"command", {"x"}}, {"values", values}}.dump()};
      cell.state = CellState::Value;
      cell.value = 0.1 * static_cast<double>(1 + results.cells.size() % 7);
      for (size_t more = 1; more < results.metrics.size(); ++more)
        cell.outcome.more.push_back(10.0 * static_cast<double>(more));
      results.cells.push_back(cell);
    }
  return results;
}

TEST(Figures, LongWordsAreBrokenIntoLinesAndWhole) {
  SweepResults results = of_program({{{"a_parameter_with_a_long_name_of_many_words_that_no_axis_of_"
                                       "one_column_has_room_for",
                                       "1"}},
                                     {{"a_parameter_with_a_long_name_of_many_words_that_no_axis_of_"
                                       "one_column_has_room_for",
                                       "2"}}},
                                    {"validation.accuracy_after_the_last_epoch_of_the_training"});
  for (const FigureStyle style : {FigureStyle::Screen, FigureStyle::Paper}) {
    const testing::Drawing drawing =
        testing::DrawingReader(
            figure_svg(results, {.title = "The loss of a model that was trained for a very long "
                                          "time, over learning rates, optimizers and seeds that "
                                          "nobody has tried before, on one machine",
                                 .style = style}))
            .read();
    testing::expect_sound(drawing);
    std::string words = drawing.all_words();
    std::erase(words, '\n');
    EXPECT_NE(words.find("after_the_last_epoch_of_the_training"), std::string::npos) << words;
  }
}

// Counts the curves with more than three points.
size_t long_curves(const testing::Drawing& drawing) {
  return static_cast<size_t>(std::count_if(
      drawing.curves.begin(), drawing.curves.end(), [](const testing::DrawnCurve& curve) {
        return curve.part == "series" && curve.points.size() > 3;
      }));
}

TEST(Figures, SamplesOfASpaceArePointsWithoutALine) {
  const std::vector<std::map<std::string, std::string>> samples = {
      {{"lr", "0.1"}, {"layers", "1"}}, {{"lr", "0.03"}, {"layers", "2"}},
      {{"lr", "0.2"}, {"layers", "1"}}, {{"lr", "0.07"}, {"layers", "2"}},
      {{"lr", "0.4"}, {"layers", "3"}}, {{"lr", "0.35"}, {"layers", "1"}}};
  for (const std::string x : {"", "lr", "layers"}) {
    const std::string svg = figure_svg(
        of_program(samples),
        {.panels = {FigurePanel::Median, FigurePanel::Seeds}, .x = x, .band = FigureBand::None});
    for (size_t at = svg.find("<g class=\"series\""); at != svg.npos;
         at = svg.find("<g class=\"series\"", at + 1))
      EXPECT_EQ(svg.substr(at, svg.find("</g>", at) - at).find("<polyline"), svg.npos) << x << svg;
    const auto drawing = testing::DrawingReader(svg).read();
    EXPECT_EQ(drawing.all_words().find("lr="), std::string::npos) << drawing.all_words();
    // Each sample has a median, even samples that share a place on the axis.
    size_t medians = 0;
    for (const testing::DrawnCurve& curve : drawing.curves)
      if (curve.panel == 1 && curve.part == "series") medians += curve.points.size();
    EXPECT_EQ(medians, samples.size()) << x;
  }
}

TEST(Figures, ManySamplesHaveRoundTicks) {
  std::vector<std::map<std::string, std::string>> samples;
  for (int at = 0; at < 16; ++at)
    samples.push_back({{"lr", fmt::format("{:.5g}", std::pow(10, -5 + 0.26 * at))},
                       {"dropout", fmt::format("{:.5g}", 0.5 + 0.4 * std::sin(at))}});
  const auto drawing =
      testing::DrawingReader(
          figure_svg(of_program(samples), {.panels = {FigurePanel::Median}, .x = "lr"}))
          .read();
  EXPECT_EQ(drawing.count("axes", "10^{\u22123}"), 1u) << drawing.all_words();
  EXPECT_EQ(drawing.all_words().find("\u00d7"), std::string::npos) << drawing.all_words();
}

TEST(Figures, ZippedValuesAreASeries) {
  const std::vector<std::map<std::string, std::string>> zipped = {
      {{"lr", "0.1"}, {"steps", "100"}, {"size", "small"}},
      {{"lr", "0.03"}, {"steps", "300"}, {"size", "small"}},
      {{"lr", "0.01"}, {"steps", "1000"}, {"size", "medium"}},
      {{"lr", "0.003"}, {"steps", "3000"}, {"size", "large"}}};
  const auto drawing =
      testing::DrawingReader(figure_svg(of_program(zipped), {.panels = {FigurePanel::Median}}))
          .read();
  EXPECT_EQ(long_curves(drawing), 2u);  // the line, and its marks
  // A single line needs no legend.
  EXPECT_EQ(drawing.all_words().find("run\n"), std::string::npos) << drawing.all_words();
}

TEST(Figures, EveryResultHasAPanel) {
  const SweepResults results =
      of_program({{{"lr", "0.1"}}, {{"lr", "0.2"}}}, {"loss", "accuracy", "recall", "f1"});
  for (const FigureStyle style : {FigureStyle::Screen, FigureStyle::Paper}) {
    const auto drawing = testing::DrawingReader(figure_svg(results, {.style = style})).read();
    testing::expect_sound(drawing);
    for (const std::string& name : results.metrics)
      EXPECT_NE(drawing.all_words().find(name + "\n"), std::string::npos) << name;
    EXPECT_NE(drawing.frame(4), nullptr);
    EXPECT_EQ(drawing.frame(5), nullptr);
  }
}

}  // namespace
}  // namespace convoy::sweep
