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

// Checks the tags, nesting, quotes and entities of `text`, and no other rule of XML.
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
  // The raw line and the smoothed line have 50 points each. Three dots show evaluations and a
  // fourth stands in the legend; a dot is drawn as two arcs.
  int64_t lines_of_50 = 0;
  for (size_t at = svg.find("points=\""); at != std::string::npos;
       at = svg.find("points=\"", at + 1)) {
    const std::string points = svg.substr(at + 8, svg.find('"', at + 8) - at - 8);
    if (std::count(points.begin(), points.end(), ',') == 50) ++lines_of_50;
  }
  EXPECT_EQ(lines_of_50, 2);
  EXPECT_EQ(count_of(svg, " 0 1,0 "), 2 * 4);
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
    for (const std::vector<PlotPoint>& points :
         {std::vector<PlotPoint>{},
          {{5, 2.0}},
          {{1, 1.0}, {2, 1.0}},
          {{1, 0.0}, {2, 0.0}},
          {{1, nan}, {2, 1.0}, {3, nan}, {4, INFINITY}, {5, 2.0}},
          {{1, -3.0}, {1000000000, 1e30}}}) {
      const std::vector<PlotSeries> series = {{.label = "x", .points = points, .smooth = true}};
      const AxisScale scale = log_y ? AxisScale::Log : AxisScale::Linear;
      const std::string svg = plot_svg(series, {.y_scale = scale});
      expect_well_formed(svg);
      EXPECT_EQ(svg.find("nan"), std::string::npos);
      EXPECT_EQ(svg.find("inf"), std::string::npos);
      EXPECT_FALSE(plot_text(series, {.log_y = log_y}).empty());
    }
}

TEST(Plot, ALogarithmicAxisHasTwoTicksAtLeast) {
  // No number of the form 1, 2 or 5 times a power of ten lies strictly between `low` and `high`; in
  // the last pair, they are the same value.
  for (const auto& [low, high] :
       {std::pair{0.23, 0.41}, {0.0021, 0.0049}, {1e-7, 1.01e-7}, {6.0, 6.0}}) {
    const std::vector<PlotSeries> series = {{.points = {{1, low}, {2, high}}}};
    const std::string svg = plot_svg(series, {.y_scale = AxisScale::Log});
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
      plot_svg({.panels = {{.options = {.width = 300, .height = 200}, .series = series},
                           {.options = {.width = 500, .height = 400}, .series = series}}});
  expect_well_formed(svg);
  EXPECT_NE(svg.find("width=\"800\" height=\"400\""), std::string::npos);
  EXPECT_NE(svg.find("translate(300 0)"), std::string::npos);
}

// Returns the texts of the group of `svg` that begins with `from`.
std::vector<std::string> texts_of(const std::string& svg, const std::string& from) {
  std::vector<std::string> texts;
  const size_t begin = svg.find(from);
  for (size_t at = svg.find("<text", begin); at < svg.find("</g>", begin);
       at = svg.find("<text", at + 1)) {
    const size_t open = svg.find('>', at) + 1;
    texts.push_back(svg.substr(open, svg.find("</text>", open) - open));
  }
  return texts;
}

double number_after(const std::string& svg, const std::string& word, size_t from) {
  return std::stod(svg.substr(svg.find(word, from) + word.size()));
}

TEST(Plot, LongTitlesAndNamesGoOnInFurtherLines) {
  const std::string title =
      "a title of far more words than a figure of a single column has room for, in all its letters";
  const PlotOptions options{.title = title,
                            .x_label = "a_parameter_whose_name_is_longer_than_the_axis_below_it_is",
                            .y_label = "a result whose name is longer than the axis beside it is",
                            .width = 300,
                            .height = 250};
  const std::string svg = plot_svg({.title = title, .panels = {{.options = options}}});
  EXPECT_EQ(svg.find("\u2026"), std::string::npos) << svg;
  for (const char* const word : {">a title of", "letters<", "below_it_is<", "beside it is<"})
    EXPECT_NE(svg.find(word), std::string::npos) << word << svg;
}

TEST(Plot, LargeLettersMakeAFigureLarger) {
  const auto width_of = [](double font_size) {
    const std::string svg =
        plot_svg({{.points = {{1, 1}, {2, 2}}}}, {.width = 300, .font_size = font_size});
    return std::stod(svg.substr(svg.find("width=\"") + 7));
  };
  EXPECT_EQ(width_of(10), 300);
  EXPECT_GT(width_of(40), 700);
}

TEST(Plot, TicksStandAtTheSweptValues) {
  const std::vector<PlotSeries> series = {{.points = {{5, 1}, {10, 1}, {40, 1}, {160, 2}}}};
  const PlotOptions options{
      .x_scale = AxisScale::Auto, .x_values = {5, 10, 20, 40, 80, 160}, .smoothing = 0};
  const auto texts = texts_of(plot_svg(series, options), "class=\"axes\"");
  for (const char* const value : {"5", "10", "20", "40", "80", "160"})
    EXPECT_EQ(std::count(texts.begin(), texts.end(), value), 1) << value;
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "50"), 0);
}

TEST(Plot, ValuesWithoutRoomKeepATickAndLoseTheirName) {
  PlotOptions options{.width = 400};
  for (int value = 1000; value < 1100; ++value) options.x_values.push_back(value);
  const std::string svg = plot_svg({{.points = {{1000, 1}, {1099, 1}}}}, options);
  const auto texts = texts_of(svg, "class=\"axes\"");
  EXPECT_LT(texts.size(), 25u);
  EXPECT_GT(texts.size(), 8u);
  EXPECT_GE(count_of(svg, "<polyline"), 100);
}

TEST(Plot, AnAxisIsLogarithmicByItselfBeyondTwoDecades) {
  const PlotOptions options{.y_scale = AxisScale::Auto};
  const auto ticks = [&](double low, double high) {
    const auto texts =
        texts_of(plot_svg({{.points = {{1, low}, {2, high}}}}, options), "class=\"axes\"");
    return std::count_if(texts.begin(), texts.end(),
                         [](const auto& text) { return text.starts_with("10<tspan"); });
  };
  EXPECT_EQ(ticks(1, 99), 0);
  EXPECT_GE(ticks(1, 101), 3);
  EXPECT_GE(ticks(1e-7, 1), 3);
  EXPECT_EQ(ticks(0, 1000), 0);
}

TEST(Plot, WhiskersDoNotDecideTheScale) {
  const std::vector<PlotSeries> series = {{.points = {{1, 1e-3}, {2, 1}, {3, 1}},
                                           .band = {{1, -1, 1}, {2, 1e-9, 2}, {3, 0.5, 2}},
                                           .whiskers = true}};
  const auto texts = texts_of(plot_svg(series, {.y_scale = AxisScale::Auto}), "class=\"axes\"");
  const auto powers = std::count_if(texts.begin(), texts.end(),
                                    [](const auto& text) { return text.starts_with("10<tspan"); });
  EXPECT_EQ(powers, 5);  // the labels 10^-4 to 10^0
}

TEST(Plot, NumbersFarFromOneAreRaisedPowersOfTen) {
  EXPECT_EQ(number_label(0), "0");
  EXPECT_EQ(number_label(0.05), "0.05");
  EXPECT_EQ(number_label(1e6), "10^{6}");
  EXPECT_EQ(number_label(2e-5), "2\u00d710^{\u22125}");
  EXPECT_EQ(number_label(-2500000), "\u22122.5\u00d710^{6}");
  const std::string svg = plot_svg({}, {.title = "1 < 10^{6}"});
  EXPECT_NE(svg.find(">1 &lt; 10<tspan dy=\"-5.7\" font-size=\"10.8\">6</tspan></text>"),
            std::string::npos)
      << svg;
}

TEST(Plot, TheLegendIsBelowTheAxesHoweverLong) {
  std::vector<PlotSeries> series;
  for (int at = 0; at < 40; ++at)
    series.push_back({.label = "curve " + std::to_string(at), .points = {{1, 1}, {2, 2}}});
  const std::string svg = plot_svg(series, {.width = 500, .height = 300});
  const size_t frame = svg.find("class=\"frame\"");
  const std::string corners = svg.substr(svg.find("points=\"", frame) + 8, 60);
  const double bottom = std::stod(corners.substr(corners.rfind(',', corners.find('"')) + 1));
  const size_t legend = svg.find("class=\"legend\"");
  ASSERT_EQ(texts_of(svg, "class=\"legend\"").size(), 40u);
  EXPECT_GT(number_after(svg, " y=\"", legend), bottom + 13);
  // The legend does not squeeze the axes; the picture becomes higher than was asked for.
  EXPECT_GT(bottom, 100);
  EXPECT_GT(number_after(svg, " height=\"", 0), 300);
}

TEST(Plot, ALegendWiderThanTheFigureIsBrokenIntoLines) {
  std::vector<PlotSeries> series;
  for (const std::string end : {"adam", "sgd"})
    series.push_back({.label = "model=/a/very/long/path/to/one/of/the/models optimizer=" + end,
                      .points = {{1, 1}, {2, 2}}});
  const std::string svg = plot_svg(series, {.width = 320, .height = 300});
  const std::vector<std::string> words = texts_of(svg, "class=\"legend\"");
  EXPECT_EQ(words.size(), 4u);
  for (const std::string end : {"optimizer=adam", "optimizer=sgd"})
    EXPECT_EQ(std::count_if(words.begin(), words.end(),
                            [&](const std::string& line) { return line.ends_with(end); }),
              1)
        << end;
}

TEST(Plot, MarksOfOnePlaceStandSideBySideWhereThereIsRoom) {
  const auto marks = [](double width) {
    const std::string svg = plot_svg(
        {{.points = {{1, 1}, {8, 2}}, .marker = Marker::Disc}},
        {.width = width,
         .x_values = {1, 8},
         .rows = {{.label = "censored",
                   .marks = {{.x = 1, .color = 0, .marker = Marker::Down, .count = 123'456},
                             {.x = 1, .color = 1, .marker = Marker::Down, .count = 3},
                             {.x = 2, .color = 1, .marker = Marker::Down}}}}});
    return texts_of(svg, "class=\"rows\"");
  };
  EXPECT_EQ(marks(1200), (std::vector<std::string>{"censored", "123456", "3"}));
  EXPECT_EQ(marks(300), (std::vector<std::string>{"censored", "123459"}));
}

TEST(Plot, NamesThatWouldOverlapStandUpright) {
  PlotOptions options{.width = 300};
  for (int at = 0; at < 12; ++at) options.x_names.push_back("optimizer " + std::to_string(at));
  const std::string svg = plot_svg({{.points = {{0, 1}, {11, 1}}}}, options);
  EXPECT_GE(count_of(svg, "rotate(-90"), 12);
}

TEST(Plot, ACurveOfOnePointIsShownWithItsRange) {
  const std::string svg =
      plot_svg({{.points = {{5, 1}}, .band = {{5, 0.5, 2}}}}, {.x_values = {5}, .smoothing = 0});
  const std::string curve = svg.substr(svg.find("class=\"series\""));
  EXPECT_EQ(count_of(curve, "<polyline"), 1) << curve;
  // Three of the strokes are the range: a stem and two caps.
  const std::string before = svg.substr(svg.find("class=\"frame\""), svg.find("class=\"series\""));
  EXPECT_EQ(count_of(before, "stroke=\"#0072b2\""), 3 + 1);
}

TEST(Plot, WidthsOfLettersAreThoseOfThePictures) {
  EXPECT_NEAR(text_width("width", 10), 7.22 + 2.22 + 5.56 + 2.78 + 5.56, 1e-9);
  EXPECT_NEAR(text_width("10^{6}", 10), 2 * 5.56 + 0.72 * 5.56, 1e-9);
  EXPECT_NEAR(text_width("\xe6\x8d\x9f\xe5\xa4\xb1", 10), 20, 1e-9);  // two Chinese letters
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
  for (const PlotPoint& point : flat) EXPECT_NEAR(point.value, 2.0, 1e-12);
  const auto gap = smoothed({{1, 1.0}, {2, std::nan("")}, {3, 1.0}}, 0.9);
  EXPECT_TRUE(std::isnan(gap[1].value));
  EXPECT_NEAR(gap[2].value, 1.0, 1e-12);
}

}  // namespace
}  // namespace convoy::charts
