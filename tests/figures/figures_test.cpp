// SPDX-License-Identifier: Apache-2.0
//
// Tests the figures of built-in experiments: captions, marks, axes, bands.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/results/figure.h"
#include "figures/figure_checks.h"
#include "figures/made_results.h"

namespace convoy::sweep {
namespace {

using nlohmann::json;
using testing::CellPlace;
using testing::made;
using testing::Recipe;

testing::Drawing drawing_of(const Recipe& recipe, const FigureOptions& options = {}) {
  return testing::DrawingReader(figure_svg(made(recipe), options)).read();
}

TEST(Figures, TheCaptionSaysThresholdGuessesSeedsAndStates) {
  const Recipe recipe{.seeds = 6, .state = [](CellPlace at) {
                        return at.guesses && at.place == 0 && at.seed < 3 ? CellState::Censored
                                                                          : CellState::Value;
                      }};
  std::string words = drawing_of(recipe).all_words();
  std::replace(words.begin(), words.end(), '\n', ' ');
  EXPECT_NE(words.find("Medians over 6 seeds with quartiles; a guess passes with a training loss "
                       "below 0.0035; 10^{6} guesses a cell; 48 cells: 45 values, 3 censored (no "
                       "guess passed), 0 failed."),
            std::string::npos)
      << words;
}

TEST(Figures, LargeLettersMakeThemLarger) {
  for (const double points : {40, 72})
    for (const FigureStyle style : {FigureStyle::Screen, FigureStyle::Paper})
      testing::expect_sound(drawing_of({.theory = 0.25}, {.font_size = points, .style = style}));
}

TEST(Figures, OneSeedHasNoMedian) {
  const std::string words = drawing_of({.seeds = 1}).all_words();
  EXPECT_NE(words.find("Seed 0 alone; "), std::string::npos) << words;
  EXPECT_EQ(words.find("edian"), std::string::npos) << words;
  EXPECT_NE(words.find("seed 0\n"), std::string::npos) << words;
}

TEST(Figures, TicksStandAtTheSweptValuesAlone) {
  const testing::Drawing depth = drawing_of({});
  for (const char* const value : {"2", "3", "4", "5"}) EXPECT_EQ(depth.count("axes", value), 3u);
  EXPECT_EQ(depth.count("axes", "2.5"), 0u);
  const testing::Drawing width =
      drawing_of({.axis = "width", .values = json::array({5, 10, 20, 40, 80, 160})});
  EXPECT_EQ(width.count("axes", "40"), 3u);
}

TEST(Figures, PowersOfTenAreWrittenAsSuchAlongTheAxis) {
  const testing::Drawing rates =
      drawing_of({.axis = "lr", .values = json::array({1e-4, 1e-3, 0.01, 0.1})});
  for (const char* const power : {"4", "3", "2", "1"})
    EXPECT_EQ(rates.count("axes", fmt::format("10^{{\u2212{}}}", power)) >= 2, true) << power;
}

TEST(Figures, WithoutValuesHaveNoNumbersAlongTheAxis) {
  const testing::Drawing drawing = drawing_of(
      {.state = [](CellPlace) { return CellState::Failed; }}, {.panels = {FigurePanel::Median}});
  EXPECT_EQ(drawing.count("axes", "0.2"), 0u);
  EXPECT_EQ(drawing.count("panel", "no values"), 1u);
}

TEST(Figures, CensoredSeedsAreMarkedCountedAndBounded) {
  const Recipe recipe{.state = [](CellPlace at) {
    return at.guesses && at.place == 1 && at.seed < 3 ? CellState::Censored : CellState::Value;
  }};
  const testing::Drawing drawing = drawing_of(recipe);
  // The two panels of losses have these marks; the third panel shows the bound 3 / guesses as data.
  EXPECT_EQ(drawing.count("rows", "censored"), 2u);
  EXPECT_EQ(drawing.count("rows", "3"), 2u);
  EXPECT_EQ(drawing.count("legend", "no guess of a seed passed; the share is below this with 95 %"),
            1u);
}

TEST(Figures, ASeedsLineIsNamedTransparentAndBridgesItsGaps) {
  const Recipe recipe{.descents = false, .state = [](CellPlace at) {
                        return at.place == 1 && at.seed == 3 ? CellState::Failed : CellState::Value;
                      }};
  const std::string svg = figure_svg(made(recipe), {.panels = {FigurePanel::Seeds}});
  EXPECT_NE(svg.find("data-seed=\"3\"><title>guess and check, seed 3</title>"), std::string::npos);
  EXPECT_NE(svg.find("stroke-opacity=\"0.62\""), std::string::npos) << svg;
  const testing::Drawing drawing = testing::DrawingReader(svg).read();
  size_t lines = 0;
  for (const testing::DrawnCurve& curve : drawing.curves)
    if (curve.seed == "3" && curve.points.size() == 2) ++lines;
  EXPECT_EQ(lines, 3u);  // place 3 to 4, their marks, the gap
}

TEST(Figures, SeedsHaveTheIntervalsOfTheirMeansByChoice) {
  SweepResults results = made({.values = json::array({2}), .seeds = 1, .descents = false});
  CellResult& cell = results.cells.front();
  cell.tally.accepted = 2;
  cell.tally.loss.add(0.1);
  cell.tally.loss.add(0.3);
  cell.tally.loss_squared.add(0.01);
  cell.tally.loss_squared.add(0.09);
  cell.value = 0.2;
  const auto curves = [&](FigureBand band) {
    return testing::DrawingReader(
               figure_svg(results, {.panels = {FigurePanel::Seeds}, .band = band}))
        .read()
        .curves.size();
  };
  // An interval is drawn as a stem and two caps.
  EXPECT_EQ(curves(FigureBand::Interval), curves(FigureBand::Quartiles) + 3);
  const std::string svg = figure_svg(results, {.band = FigureBand::Interval});
  EXPECT_NE(svg.find("Seed 0 alone with 95 % intervals of its means"), std::string::npos);
}

TEST(Figures, OneOfTwoThousandthsAndOneIsOnALogarithmicAxis) {
  const auto powers = [](const FigureOptions& options) {
    const testing::Drawing drawing =
        drawing_of({.value = [](CellPlace at) { return at.guesses ? 0.25 : 1e-5; }}, options);
    return drawing.count("axes", "10^{\u22122}");
  };
  EXPECT_EQ(powers({.panels = {FigurePanel::Median}}), 1u);
  EXPECT_EQ(powers({.panels = {FigurePanel::Median}, .y_scale = charts::AxisScale::Linear}), 0u);
}

TEST(Figures, ALogarithmicAxisMarksWhatItCannotShow) {
  const testing::Drawing drawing =
      drawing_of({.value = [](CellPlace at) { return at.guesses ? 0.25 : 0.0; }},
                 {.panels = {FigurePanel::Median}, .y_scale = charts::AxisScale::Log});
  EXPECT_EQ(drawing.count("rows", "not above 0"), 1u);
  EXPECT_EQ(drawing.count("rows", "8"), 4u);
}

TEST(Figures, TheoryIsDashedUnderTheDataWithoutMarks) {
  Recipe recipe{.theory = 0.25};
  const std::string svg = figure_svg(made(recipe), {.panels = {FigurePanel::Median}});
  const size_t dashed = svg.find("stroke-dasharray");
  ASSERT_NE(dashed, std::string::npos);
  const size_t group = svg.rfind("<g", dashed);
  const std::string theory = svg.substr(group, svg.find("</g>", group) - group);
  EXPECT_EQ(theory.find("<path"), std::string::npos) << theory;
  EXPECT_EQ(group, svg.find("<g class=\"series\""));
}

TEST(Figures, OtherNumbersAndParametersStandOnTheAxes) {
  const SweepResults results = made({.groups = 2});
  const auto words = [&](const FigureOptions& options) {
    return testing::DrawingReader(figure_svg(results, options)).read().all_words();
  };
  EXPECT_NE(words({.y = "seconds"}).find("seconds of computing"), std::string::npos);
  EXPECT_NE(words({.y = "train_loss"}).find("training loss\n"), std::string::npos);
  const std::string over_rank = words({.x = "teacher_rank"});
  EXPECT_NE(over_rank.find("sweep mf over teacher rank"), std::string::npos);
  EXPECT_NE(over_rank.find("guess and check, depth=2"), std::string::npos);
  // Cells of gradient descent have no gnc_eps_train.
  EXPECT_NE(words({.x = "gnc_eps_train"}).find("64 cells without gnc_eps_train left out"),
            std::string::npos);
  EXPECT_THROW(figure_svg(results, {.x = "deepth"}), ConfigError);
}

TEST(Figures, RefuseAnAxisWithoutALogarithmAndAPanelWithoutGuesses) {
  EXPECT_THROW(
      figure_svg(made({.values = json::array({0, 1})}), {.x_scale = charts::AxisScale::Log}),
      ConfigError);
  EXPECT_THROW(figure_svg(made({.axis = "opt", .values = json::array({"adam", "sgd"})}),
                          {.x_scale = charts::AxisScale::Log}),
               ConfigError);
  SweepResults descents = made({});
  std::erase_if(descents.cells, [](const CellResult& cell) { return cell.planned_guesses > 0; });
  EXPECT_THROW(figure_svg(descents, {.panels = {FigurePanel::Acceptance}}), ConfigError);
}

}  // namespace
}  // namespace convoy::sweep
