// SPDX-License-Identifier: Apache-2.0
//
// Sixty figures of made-up results. CONVOY_FIGURES=FOLDER keeps them, to be looked at.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/farm/sweep/results/figure.h"
#include "convoy/farm/sweep/results/figure_drawing_test.h"

namespace convoy::sweep {
namespace {

using nlohmann::json;

struct Place {
  size_t line = 0, place = 0, seed = 0;
  bool guesses = false;
};

// Two methods over an axis and seeds.
struct Recipe {
  std::string workload = "mf";
  std::string axis = "depth";
  json values = json::array({2, 3, 4, 5});
  size_t seeds = 8;
  size_t groups = 1;
  bool descents = true;
  std::function<double(Place)> value = [](Place at) {
    return (at.guesses ? 0.2 : 0.1) + 0.01 * static_cast<double>(at.place + at.seed % 5);
  };
  std::function<CellState(Place)> state = [](Place) { return CellState::Value; };
  double theory = NAN;
};

CellResult made_cell(const Recipe& recipe, const Place& at, size_t group) {
  json parameters = {{"workload_detail", "x"}};
  if (!recipe.axis.empty()) parameters[recipe.axis] = recipe.values[at.place];
  if (recipe.groups > 1) parameters["teacher_rank"] = group;
  if (at.guesses) parameters["gnc_eps_train"] = 0.0035;
  CellResult cell;
  cell.cell = {.method = at.guesses ? "gnc" : "gd",
               .seed = static_cast<int64_t>(at.seed),
               .parameters = parameters.dump()};
  cell.state = recipe.state(at);
  cell.seconds = 1.5;
  if (cell.state == CellState::Value) cell.value = recipe.value(at);
  if (at.guesses) {
    cell.planned_guesses = 1'000'000;
    cell.tally.guesses = cell.state == CellState::Partial ? 10 : 1'000'000;
    cell.tally.accepted =
        cell.state == CellState::Value ? static_cast<int64_t>(10 * (at.place + 1) + at.seed) : 0;
    cell.theory.prior_mean = recipe.theory;
    cell.theory.curve = 0.9 * recipe.theory * static_cast<double>(group + 1);
  } else {
    cell.descent.train_loss = 1e-9;
  }
  if (cell.state == CellState::Failed)
    cell.failure = std::make_shared<jobs::Failure>(jobs::Failure{.kind = "crash"});
  return cell;
}

SweepResults made(const Recipe& recipe) {
  SweepResults results{
      .workload = recipe.workload, .version = "1", .axes = {"width", "depth"}, .cells = {}};
  const size_t places = recipe.axis.empty() ? 1 : recipe.values.size();
  size_t line = 0;
  for (const bool guesses : {true, false})
    for (size_t group = 0; group < recipe.groups; ++group, ++line)
      for (size_t place = 0; place < places; ++place)
        for (size_t seed = 0; seed < recipe.seeds; ++seed)
          if (guesses || recipe.descents)
            results.cells.push_back(made_cell(recipe, {line, place, seed, guesses}, group));
  return results;
}

json numbers_up_to(int last) {
  json values = json::array();
  for (int value = 1; value <= last; ++value) values.push_back(value);
  return values;
}

std::vector<std::pair<std::string, Recipe>> recipes() {
  const auto always = [](CellState state) { return [state](Place) { return state; }; };
  std::vector<std::pair<std::string, Recipe>> all;
  all.push_back({"no_cells", {.seeds = 0}});
  all.push_back({"one_value", {.values = json::array({7}), .seeds = 1, .descents = false}});
  all.push_back({"all_censored", {.descents = false, .state = always(CellState::Censored)}});
  all.push_back({"all_failed", {.state = always(CellState::Failed)}});
  all.push_back({"all_unfinished", {.state = always(CellState::Partial)}});
  all.push_back({"six_decades", {.value = [](Place at) {
                   return (at.guesses ? 1 : 1e-6) * (1 + static_cast<double>(at.seed));
                 }}});
  all.push_back({"forty_lines", {.seeds = 3, .groups = 20, .value = [](Place at) {
                                   return 1 + static_cast<double>(at.line + at.place);
                                 }}});
  all.push_back({"one_seed", {.seeds = 1}});
  all.push_back({"hundred_seeds", {.seeds = 100, .value = [](Place at) {
                                     return 0.1 + 0.3 * std::fabs(std::sin(static_cast<double>(
                                                            17 * at.seed + at.place)));
                                   }}});
  all.push_back({"names", {.axis = "opt", .values = json::array({"adam", "sgd", "lion"})}});
  all.push_back({"long_names",
                 {.axis = "recipe",
                  .values = json::array(
                      {"a recipe whose name is far longer than the room below an axis <&>", "plain",
                       "another recipe with a long name", "recipe four", "recipe five",
                       "recipe six", "seven", "recipe eight of many", "nine"})}});
  all.push_back({"hundred_places", {.values = numbers_up_to(100), .seeds = 3}});
  all.push_back({"negative", {.values = json::array({-2, -1, 0, 1}), .value = [](Place at) {
                                return static_cast<double>(at.seed) - 4;
                              }}});
  all.push_back({"zeros", {.value = [](Place at) { return at.guesses ? 1000.0 : 0.0; }}});
  all.push_back({"rates", {.axis = "lr", .values = json::array({1e-5, 1e-4, 1e-3, 0.01, 0.1})}});
  all.push_back({"mixed_states", {.state = [](Place at) {
                   if (at.place == 0 && at.guesses && at.seed < 5) return CellState::Censored;
                   if (at.place == 1 && at.seed == 2) return CellState::Failed;
                   return at.place == 3 && at.seed > 5 ? CellState::Partial : CellState::Value;
                 }}});
  all.push_back(
      {"theory",
       {.axis = "width", .values = json::array({5, 10, 20, 40, 80, 160}), .theory = 0.25}});
  all.push_back({"no_axis", {.axis = "", .seeds = 7}});
  all.push_back({"tiny", {.value = [](Place at) {
                   return 2e-12 * (1 + 0.1 * static_cast<double>(at.seed));
                 }}});
  all.push_back({"groups_with_theory", {.seeds = 6, .groups = 3, .theory = 0.3}});
  return all;
}

FigureOptions for_print(const SweepResults& results) {
  FigureOptions options{.panels = {FigurePanel::Median, FigurePanel::Seeds},
                        .y_scale = charts::AxisScale::Linear,
                        .band = FigureBand::Interval,
                        .title = "loss < 10^{-3} & more",
                        .width = 6.9 * 96,
                        .height = 2.9 * 96,
                        .font_size = 7,
                        .style = FigureStyle::Paper};
  if (!results.cells.empty()) options.panels.push_back(FigurePanel::Acceptance);
  return options;
}

void expect_inside_the_page(const testing::Drawing& drawing) {
  constexpr double kSlack = 1;
  for (const testing::DrawnText& text : drawing.texts) {
    EXPECT_GE(text.left, -kSlack) << text.words;
    EXPECT_LE(text.right, drawing.width + kSlack) << text.words;
    EXPECT_GE(text.top, -kSlack) << text.words;
    EXPECT_LE(text.bottom, drawing.height + kSlack) << text.words;
  }
}

void expect_no_text_over_another(const testing::Drawing& drawing) {
  for (size_t at = 0; at < drawing.texts.size(); ++at)
    for (size_t other = at + 1; other < drawing.texts.size(); ++other) {
      const testing::DrawnText& left = drawing.texts[at];
      const testing::DrawnText& right = drawing.texts[other];
      const double wide = std::min(left.right, right.right) - std::max(left.left, right.left);
      const double tall = std::min(left.bottom, right.bottom) - std::max(left.top, right.top);
      EXPECT_FALSE(wide > 1 && tall > 1) << left.words << " | " << right.words;
    }
}

// Data stay within the axes; the legend and the caption stay out of them.
void expect_data_and_words_apart(const testing::Drawing& drawing) {
  constexpr double kMarker = 5;
  double lowest = 0;
  for (size_t panel = 1; drawing.frame(panel) != nullptr; ++panel) {
    const auto& corners = drawing.frame(panel)->points;
    lowest = std::max(lowest, corners[1].y);
    for (const testing::DrawnCurve& curve : drawing.curves) {
      if (curve.panel != panel || curve.part != "series") continue;
      for (const charts::ChartPoint& point : curve.points) {
        EXPECT_GE(point.x, corners[0].x - kMarker);
        EXPECT_LE(point.x, corners[2].x + kMarker);
        EXPECT_GE(point.y, corners[0].y - kMarker);
        EXPECT_LE(point.y, corners[1].y + kMarker);
      }
    }
  }
  for (const testing::DrawnText& text : drawing.texts)
    EXPECT_TRUE(text.part != "legend" || text.top > lowest) << text.words;
}

void expect_marked_and_counted(const testing::Drawing& drawing, const SweepResults& results,
                               size_t panels_of_values) {
  const std::string words = drawing.all_words();
  for (const auto& [state, row] : {std::pair{CellState::Censored, "censored"},
                                   {CellState::Failed, "failed"},
                                   {CellState::Partial, "unfinished"}}) {
    const bool any = results.count(state) > 0;
    EXPECT_GE(drawing.count("rows", row), any ? panels_of_values : 0) << row;
    EXPECT_EQ(drawing.count("rows", row) > 0, any) << row;
  }
  std::string one_line = words;
  std::replace(one_line.begin(), one_line.end(), '\n', ' ');
  EXPECT_NE(one_line.find(fmt::format("{} failed", results.count(CellState::Failed))),
            std::string::npos)
      << words;
}

void keep(const std::string& name, const std::string& svg) {
  if (const char* const folder = std::getenv("CONVOY_FIGURES"))
    write_file_atomic(std::filesystem::path(folder) / (name + ".svg"), svg);
}

TEST(FigureCases, ShowEverythingAndOverlapNothing) {
  for (const auto& [name, recipe] : recipes()) {
    const SweepResults results = made(recipe);
    const std::vector<std::pair<std::string, FigureOptions>> styles = {
        {"screen", {}}, {"paper", {.style = FigureStyle::Paper}}, {"print", for_print(results)}};
    for (const auto& [style, options] : styles) {
      SCOPED_TRACE(name + "_" + style);
      const std::string svg = figure_svg(results, options);
      keep(name + "_" + style, svg);
      for (const char* const word : {"nan", "inf"}) EXPECT_EQ(svg.find(word), std::string::npos);
      const testing::Drawing drawing = testing::DrawingReader(svg).read();
      expect_inside_the_page(drawing);
      expect_no_text_over_another(drawing);
      expect_data_and_words_apart(drawing);
      expect_marked_and_counted(drawing, results, style == "paper" ? 1 : 2);
    }
  }
}

testing::Drawing drawing_of(const Recipe& recipe, const FigureOptions& options = {}) {
  return testing::DrawingReader(figure_svg(made(recipe), options)).read();
}

TEST(Figures, TheCaptionSaysThresholdGuessesSeedsAndStates) {
  const Recipe recipe{.seeds = 6, .state = [](Place at) {
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
  const testing::Drawing drawing = drawing_of({.state = [](Place) { return CellState::Failed; }},
                                              {.panels = {FigurePanel::Median}});
  EXPECT_EQ(drawing.count("axes", "0.2"), 0u);
  EXPECT_EQ(drawing.count("panel", "no values"), 1u);
}

TEST(Figures, CensoredSeedsAreMarkedCountedAndBounded) {
  const Recipe recipe{.state = [](Place at) {
    return at.guesses && at.place == 1 && at.seed < 3 ? CellState::Censored : CellState::Value;
  }};
  const testing::Drawing drawing = drawing_of(recipe);
  // In the two panels of losses; the third has their bound, 3 / guesses, as marks of data.
  EXPECT_EQ(drawing.count("rows", "censored"), 2u);
  EXPECT_EQ(drawing.count("rows", "3"), 2u);
  EXPECT_EQ(drawing.count("legend", "no guess of a seed passed: below this at 95 %"), 1u);
}

TEST(Figures, ASeedsLineIsNamedTransparentAndBridgesItsGaps) {
  const Recipe recipe{.descents = false, .state = [](Place at) {
                        return at.place == 1 && at.seed == 3 ? CellState::Failed : CellState::Value;
                      }};
  const std::string svg = figure_svg(made(recipe), {.panels = {FigurePanel::Seeds}});
  EXPECT_NE(svg.find("data-seed=\"3\"><title>guess and check, seed 3</title>"), std::string::npos);
  EXPECT_NE(svg.find("stroke-opacity=\"0.62\""), std::string::npos) << svg;
  const testing::Drawing drawing = testing::DrawingReader(svg).read();
  size_t lines = 0;
  for (const testing::DrawnCurve& curve : drawing.curves)
    if (curve.seed == "3" && curve.points.size() == 2) ++lines;
  EXPECT_EQ(lines, 3u);  // from the third place to the fourth, their marks, and over the gap
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
  // A stem and two caps.
  EXPECT_EQ(curves(FigureBand::Interval), curves(FigureBand::Quartiles) + 3);
  const std::string svg = figure_svg(results, {.band = FigureBand::Interval});
  EXPECT_NE(svg.find("seeds with those of their means"), std::string::npos);
}

TEST(Figures, OneOfTwoThousandthsAndOneIsOnALogarithmicAxis) {
  const auto powers = [](const FigureOptions& options) {
    const testing::Drawing drawing =
        drawing_of({.value = [](Place at) { return at.guesses ? 0.25 : 1e-5; }}, options);
    return drawing.count("axes", "10^{\u22122}");
  };
  EXPECT_EQ(powers({.panels = {FigurePanel::Median}}), 1u);
  EXPECT_EQ(powers({.panels = {FigurePanel::Median}, .y_scale = charts::AxisScale::Linear}), 0u);
}

TEST(Figures, ALogarithmicAxisMarksWhatItCannotShow) {
  const testing::Drawing drawing =
      drawing_of({.value = [](Place at) { return at.guesses ? 0.25 : 0.0; }},
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
  EXPECT_NE(over_rank.find("sweep mf over teacher_rank"), std::string::npos);
  EXPECT_NE(over_rank.find("guess and check depth=2"), std::string::npos);
  // Descents have no threshold.
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
