// SPDX-License-Identifier: Apache-2.0
#include "figures/figure_checks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace convoy::testing {

void expect_inside_the_page(const Drawing& drawing) {
  constexpr double kSlack = 1;
  for (const DrawnText& text : drawing.texts) {
    EXPECT_GE(text.left, -kSlack) << text.words;
    EXPECT_LE(text.right, drawing.width + kSlack) << text.words;
    EXPECT_GE(text.top, -kSlack) << text.words;
    EXPECT_LE(text.bottom, drawing.height + kSlack) << text.words;
  }
}

void expect_no_text_over_another(const Drawing& drawing) {
  for (size_t at = 0; at < drawing.texts.size(); ++at)
    for (size_t other = at + 1; other < drawing.texts.size(); ++other) {
      const DrawnText& left = drawing.texts[at];
      const DrawnText& right = drawing.texts[other];
      const double wide = std::min(left.right, right.right) - std::max(left.left, right.left);
      const double tall = std::min(left.bottom, right.bottom) - std::max(left.top, right.top);
      EXPECT_FALSE(wide > 1 && tall > 1) << left.words << " | " << right.words;
    }
}

void expect_data_and_words_apart(const Drawing& drawing) {
  constexpr double kMarker = 5;
  double lowest = 0;
  for (size_t panel = 1; drawing.frame(panel) != nullptr; ++panel) {
    const auto& corners = drawing.frame(panel)->points;
    lowest = std::max(lowest, corners[1].y);
    for (const DrawnCurve& curve : drawing.curves) {
      if (curve.panel != panel || curve.part != "series") continue;
      for (const charts::ChartPoint& point : curve.points) {
        EXPECT_GE(point.x, corners[0].x - kMarker);
        EXPECT_LE(point.x, corners[2].x + kMarker);
        EXPECT_GE(point.y, corners[0].y - kMarker);
        EXPECT_LE(point.y, corners[1].y + kMarker);
      }
    }
  }
  for (const DrawnText& text : drawing.texts)
    EXPECT_TRUE(text.part != "legend" || text.top > lowest) << text.words;
}

void expect_sound(const Drawing& drawing) {
  expect_inside_the_page(drawing);
  expect_no_text_over_another(drawing);
  expect_data_and_words_apart(drawing);
  for (const DrawnText& text : drawing.texts)
    EXPECT_EQ(text.words.find("\u2026"), std::string::npos) << text.words;
  for (size_t panel = 1; drawing.frame(panel) != nullptr; ++panel) {
    const auto& corners = drawing.frame(panel)->points;
    EXPECT_GT(corners[1].y - corners[0].y, 40);
    EXPECT_GT(corners[2].x - corners[1].x, 40);
  }
}

}  // namespace convoy::testing
