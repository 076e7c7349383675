// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/charts/matrix_plot.h"

#include <gtest/gtest.h>

namespace convoy::charts {
namespace {

MatrixPlot sample() {
  return {.title = "93 of 100",
          .row_label = "true",
          .column_label = "predicted",
          .names = {"UP & DOWN", "<rest>"},
          .counts = {{57, 3}, {4, 36}}};
}

TEST(MatrixPlot, ShowsEveryCountAndName) {
  const std::string svg = matrix_svg(sample());
  EXPECT_EQ(svg.find("<svg"), svg.find('<')) << svg.substr(0, 80);
  for (const char* const text : {">57<", ">3<", ">4<", ">36<", ">93 of 100<", ">true<",
                                 ">predicted<", ">UP &amp; DOWN<", ">&lt;rest&gt;<"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
}

TEST(MatrixPlot, IsAPictureAlsoOfNoRows) {
  MatrixPlot empty = sample();
  empty.counts = {{0, 0}, {0, 0}};
  EXPECT_NE(matrix_svg(empty).find(">0<"), std::string::npos);
}

}  // namespace
}  // namespace convoy::charts
