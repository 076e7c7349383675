// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/charts/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace convoy::charts {
namespace {

std::vector<telemetry::CurvePoint> falling(int64_t count) {
  std::vector<telemetry::CurvePoint> points;
  for (int64_t step = 1; step <= count; ++step)
    points.push_back({step, 1 + 3 * std::exp(-static_cast<double>(step) / 20)});
  return points;
}

telemetry::RunHistory run_named(const std::string& name) {
  telemetry::RunHistory run;
  run.name = name;
  run.train_loss = falling(50);
  run.eval_loss = {{10, 3}, {20, 2.5}, {30, 2}};
  return run;
}

int64_t count_of(const std::string& text, const std::string& word) {
  int64_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// Checks tags, nesting, quotes and entities; not more of XML.
void expect_well_formed(const std::string& text) {
  std::vector<std::string> open;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      const size_t end = text.find(';', at);
      ASSERT_NE(end, std::string::npos);
      ASSERT_LE(end - at, 6u) << text.substr(at, 20);
    }
    if (text[at] != '<') continue;
    const size_t end = text.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = text.substr(at + 1, end - at - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    ASSERT_EQ(count_of(tag, "\"") % 2, 0) << tag;
    if (tag.front() == '/') {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
}

TEST(Plot, SvgIsWellFormedAndHoldsEveryPoint) {
  const std::string svg =
      plot_svg(loss_series({run_named("a<b & \"c\"")}), {.title = "a<b & \"c\"\x01"});
  expect_well_formed(svg);
  // The raw and the smoothed line have 50 points each, the evaluations 3 dots and one in the
  // legend.
  int64_t lines_of_50 = 0;
  for (size_t at = svg.find("points=\""); at != std::string::npos;
       at = svg.find("points=\"", at + 1)) {
    const std::string points = svg.substr(at + 8, svg.find('"', at + 8) - at - 8);
    if (std::count(points.begin(), points.end(), ',') == 50) ++lines_of_50;
  }
  EXPECT_EQ(lines_of_50, 2);
  EXPECT_EQ(count_of(svg, "<circle"), 4);
  EXPECT_NE(svg.find(">train<"), std::string::npos);
  EXPECT_NE(svg.find("a&lt;b &amp; &quot;c&quot; <"), std::string::npos);
}

TEST(Plot, SeveralRunsHaveTheirOwnColourAndName) {
  const auto series = loss_series({run_named("one"), run_named("two")});
  ASSERT_EQ(series.size(), 4u);
  EXPECT_EQ(series[0].color, series[1].color);
  EXPECT_NE(series[0].color, series[2].color);
  EXPECT_EQ(series[3].label, "two eval");
}

TEST(Plot, OddCurvesDoNotBreakTheChart) {
  const double nan = std::nan("");
  for (const bool log_y : {false, true})
    for (const std::vector<telemetry::CurvePoint>& points :
         {std::vector<telemetry::CurvePoint>{},
          {{5, 2.0}},
          {{1, 1.0}, {2, 1.0}},
          {{1, 0.0}, {2, 0.0}},
          {{1, nan}, {2, 1.0}, {3, nan}, {4, INFINITY}, {5, 2.0}},
          {{1, -3.0}, {1000000000, 1e30}}}) {
      const std::vector<PlotSeries> series = {{.label = "x", .points = points, .smooth = true}};
      const std::string svg = plot_svg(series, {.log_y = log_y});
      expect_well_formed(svg);
      EXPECT_EQ(svg.find("nan"), std::string::npos);
      EXPECT_EQ(svg.find("inf"), std::string::npos);
      EXPECT_FALSE(plot_text(series, {.log_y = log_y}).empty());
    }
}

TEST(Plot, ALogarithmicAxisHasTwoTicksAtLeast) {
  // Values between two of 1, 2 and 5 times a power of ten, and one such value alone.
  for (const auto& [low, high] :
       {std::pair{0.23, 0.41}, {0.0021, 0.0049}, {1e-7, 1.01e-7}, {6.0, 6.0}}) {
    const std::vector<PlotSeries> series = {{.points = {{1, low}, {2, high}}}};
    const std::string svg = plot_svg(series, {.log_y = true});
    const std::string label = "text-anchor=\"end\"";
    EXPECT_GE(count_of(svg, label), 2) << low << " " << high << svg;
  }
}

TEST(Plot, BarsStandOnTheAxis) {
  const std::vector<PlotSeries> series = {{.bars = {{0, 10, 4}, {10, 20, 2}}}};
  const std::string svg = plot_svg(series, {.width = 400, .height = 300});
  expect_well_formed(svg);
  double bottoms[2] = {};
  double heights[2] = {};
  size_t at = svg.find("<rect", svg.find("<polyline"));
  for (size_t bar = 0; bar < 2; ++bar, at = svg.find("<rect", at + 1)) {
    ASSERT_NE(at, std::string::npos) << svg;
    const double top = std::stod(svg.substr(svg.find(" y=\"", at) + 4));
    heights[bar] = std::stod(svg.substr(svg.find(" height=\"", at) + 9));
    bottoms[bar] = top + heights[bar];
  }
  EXPECT_NEAR(bottoms[0], bottoms[1], 0.02);
  EXPECT_NEAR(heights[0], 2 * heights[1], 0.03);
}

TEST(Plot, PanelsStandSideBySide) {
  const auto series = loss_series({run_named("a")});
  const std::string svg =
      panels_svg({{.options = {.width = 300, .height = 200}, .series = series},
                  {.options = {.width = 500, .height = 400}, .series = series}});
  expect_well_formed(svg);
  EXPECT_NE(svg.find("width=\"800\" height=\"400\""), std::string::npos);
  EXPECT_NE(svg.find("translate(300.00 0)"), std::string::npos);
}

TEST(Plot, TextFitsItsFrame) {
  const std::string text = plot_text(loss_series({run_named("a")}), {.columns = 60, .rows = 15});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 15);
  EXPECT_NE(text.find("step 50"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(plot_text(loss_series({run_named("a")}), {.color = true}).find("\x1b[34m"),
            std::string::npos);
}

TEST(Plot, TicksAreRoundAndCover) {
  EXPECT_EQ(nice_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  const auto ticks = nice_ticks(0.93, 4.1, 7);
  EXPECT_LE(ticks.front(), 0.93);
  EXPECT_GE(ticks.back(), 4.1);
  EXPECT_NEAR(ticks[1] - ticks[0], 0.5, 1e-12);
}

TEST(Plot, SmoothingIsDebiasedAndSkipsNan) {
  const auto flat = smoothed({{1, 2.0}, {2, 2.0}, {3, 2.0}}, 0.9);
  for (const telemetry::CurvePoint& point : flat) EXPECT_NEAR(point.value, 2.0, 1e-12);
  const auto gap = smoothed({{1, 1.0}, {2, std::nan("")}, {3, 1.0}}, 0.9);
  EXPECT_TRUE(std::isnan(gap[1].value));
  EXPECT_NEAR(gap[2].value, 1.0, 1e-12);
}

}  // namespace
}  // namespace convoy::charts
