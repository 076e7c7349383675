// SPDX-License-Identifier: Apache-2.0
//
// Sixty figures of made-up results. CONVOY_FIGURES=FOLDER writes them there for inspection, as SVG
// and as a sheet of each style (tests/golden/figures).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/pictures/picture.h"
#include "convoy/farm/sweep/results/figure.h"
#include "figures/figure_checks.h"
#include "figures/made_results.h"

namespace convoy::sweep {
namespace {

using nlohmann::json;
using testing::CellPlace;
using testing::made;
using testing::Recipe;

json numbers_up_to(int last) {
  json values = json::array();
  for (int value = 1; value <= last; ++value) values.push_back(value);
  return values;
}

std::vector<std::pair<std::string, Recipe>> recipes() {
  const auto always = [](CellState state) { return [state](CellPlace) { return state; }; };
  std::vector<std::pair<std::string, Recipe>> all;
  all.push_back({"no_cells", {.seeds = 0}});
  all.push_back({"one_value", {.values = json::array({7}), .seeds = 1, .descents = false}});
  all.push_back({"all_censored", {.descents = false, .state = always(CellState::Censored)}});
  all.push_back({"all_failed", {.state = always(CellState::Failed)}});
  all.push_back({"all_unfinished", {.state = always(CellState::Partial)}});
  all.push_back({"six_decades", {.value = [](CellPlace at) {
                   return (at.guesses ? 1 : 1e-6) * (1 + static_cast<double>(at.seed));
                 }}});
  all.push_back({"forty_lines", {.seeds = 3, .groups = 20, .value = [](CellPlace at) {
                                   return 1 + static_cast<double>(at.line + at.place);
                                 }}});
  all.push_back({"one_seed", {.seeds = 1}});
  all.push_back({"hundred_seeds", {.seeds = 100, .value = [](CellPlace at) {
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
  all.push_back({"negative", {.values = json::array({-2, -1, 0, 1}), .value = [](CellPlace at) {
                                return static_cast<double>(at.seed) - 4;
                              }}});
  all.push_back({"zeros", {.value = [](CellPlace at) { return at.guesses ? 1000.0 : 0.0; }}});
  all.push_back({"rates", {.axis = "lr", .values = json::array({1e-5, 1e-4, 1e-3, 0.01, 0.1})}});
  all.push_back({"mixed_states", {.state = [](CellPlace at) {
                   if (at.place == 0 && at.guesses && at.seed < 5) return CellState::Censored;
                   if (at.place == 1 && at.seed == 2) return CellState::Failed;
                   return at.place == 3 && at.seed > 5 ? CellState::Partial : CellState::Value;
                 }}});
  all.push_back(
      {"theory",
       {.axis = "width", .values = json::array({5, 10, 20, 40, 80, 160}), .theory = 0.25}});
  all.push_back({"no_axis", {.axis = "", .seeds = 7}});
  all.push_back({"tiny", {.value = [](CellPlace at) {
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

// Arranges figures side by side, each below its name.
class Sheet {
 public:
  // `scale` is the size of the figures relative to their own.
  Sheet(size_t columns, double scale) : columns_(columns), scale_(scale) {}

  void add(const std::string& name, const std::string& svg, const testing::Drawing& drawing) {
    if (count_++ % columns_ == 0) {
      y_ += row_height_;
      x_ = row_height_ = 0;
    }
    const size_t begin = svg.find('\n') + 1;  // behind the opening tag of the figure
    inside_ += fmt::format(
        "<text x=\"{}\" y=\"{}\" font-size=\"12\">{}</text><g transform=\"translate({} {}) "
        "scale({})\">{}</g>\n",
        x_ + 4, y_ + 13, name, x_, y_ + kNameRow, scale_,
        svg.substr(begin, svg.rfind("</svg>") - begin));
    x_ += scale_ * drawing.width;
    width_ = std::max(width_, x_);
    row_height_ = std::max(row_height_, scale_ * drawing.height + kNameRow);
  }
  std::string svg() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\"><rect "
        "width=\"{0}\" height=\"{1}\" fill=\"#ddd\"/>{2}</svg>\n",
        std::ceil(width_), std::ceil(y_ + row_height_), inside_);
  }

 private:
  static constexpr double kNameRow = 18;

  size_t columns_, count_ = 0;
  double scale_, x_ = 0, y_ = 0, width_ = 0, row_height_ = 0;
  std::string inside_;
};

// Writes the figure into the folder CONVOY_FIGURES, if that is set.
void keep(const std::string& name, const std::string& svg) {
  const char* const folder = std::getenv("CONVOY_FIGURES");
  if (folder == nullptr) return;
  const auto file = std::filesystem::path(folder) / name;
  write_file_atomic(file, pictures::picture_for(file, svg));
}

TEST(FigureCases, ShowEverythingAndOverlapNothing) {
  std::map<std::string, Sheet> sheets = {
      {"screen", {2, 0.5}}, {"paper", {5, 1}}, {"print", {3, 1}}};
  for (const auto& [name, recipe] : recipes()) {
    const SweepResults results = made(recipe);
    const std::vector<std::pair<std::string, FigureOptions>> styles = {
        {"screen", {}}, {"paper", {.style = FigureStyle::Paper}}, {"print", for_print(results)}};
    for (const auto& [style, options] : styles) {
      SCOPED_TRACE(name + "_" + style);
      const std::string svg = figure_svg(results, options);
      keep(name + "_" + style + ".svg", svg);
      for (const char* const word : {"nan", "inf"}) EXPECT_EQ(svg.find(word), std::string::npos);
      const testing::Drawing drawing = testing::DrawingReader(svg).read();
      testing::expect_inside_the_page(drawing);
      testing::expect_no_text_over_another(drawing);
      testing::expect_data_and_words_apart(drawing);
      expect_marked_and_counted(drawing, results, style == "paper" ? 1 : 2);
      sheets.at(style).add(name, svg, drawing);
    }
  }
  for (const auto& [style, sheet] : sheets) keep(style + ".png", sheet.svg());
}

}  // namespace
}  // namespace convoy::sweep
