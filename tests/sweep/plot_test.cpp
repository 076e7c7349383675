// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy sweep plot` as its users do.
#include "convoy/core/base/files.h"
#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

class SweepPlot : public SweepTest {
 protected:
  void SetUp() override {
    const SweepEnd end = run({"run", "--grid", "lr=0.1,0.001,0.00001", "--num-seeds", "2",
                              "--result", "loss", "--", "echo", R"({{"loss": {lr}}})"});
    ASSERT_EQ(end.status, 0) << end.errors;
  }
  std::string svg(std::vector<std::string> flags) {
    flags.insert(flags.begin(), "plot");
    const SweepEnd end = run(flags);
    EXPECT_EQ(end.status, 0) << end.errors;
    return end.output;
  }
  static bool has(const std::string& text, const std::string& word) {
    return text.find(word) != std::string::npos;
  }
};

TEST_F(SweepPlot, AxesAreLogarithmicByThemselvesAndByFlags) {
  const std::string power = ">10<tspan";
  EXPECT_TRUE(has(svg({"--no-log-x"}), power));
  EXPECT_TRUE(has(svg({"--log-y", "no"}), power));
  EXPECT_FALSE(has(svg({"--log-y=no", "--no-log-x", "--panels", "median", "--x", "lr"}),
                   "10<tspan dy=\"-5.1\" font-size=\"9.6\">\u22124"));
  const std::string both = svg({"--panels", "median"});
  EXPECT_TRUE(has(both, "10<tspan dy=\"-5.1\" font-size=\"9.6\">\u22124"));
  EXPECT_EQ(svg({"--panels", "median", "--log-y", "--log-x"}), both);
}

TEST_F(SweepPlot, SizeTitleAndLettersAreChosen) {
  const std::string text = svg({"--size", "5.5x2.5in", "--title", "Rates < 1", "--font-size", "9"});
  EXPECT_TRUE(has(text, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"528\" height=\"240\""))
      << text.substr(0, 200);
  EXPECT_TRUE(has(text, ">Rates &lt; 1</text>"));
  EXPECT_TRUE(has(text, "font-size=\"12\""));
  EXPECT_TRUE(has(svg({"--size", "203.2x101.6mm"}), "width=\"768\" height=\"384\""));
  EXPECT_TRUE(has(svg({"--width", "700", "--height", "400"}), "width=\"700\" height=\"400\""));
  EXPECT_FALSE(has(svg({"--title", ""}), "sweep run"));
  EXPECT_TRUE(has(run({"plot", "--size", "4x1in", "--output", "flat.svg"}).errors,
                  "need more than the height that was asked for"));
  EXPECT_FALSE(has(run({"plot", "--size", "4x4in", "--output", "flat.svg"}).errors, "need more"));
}

TEST_F(SweepPlot, AFigureForPapersIsTheSamePictureInEveryFormat) {
  const std::vector<std::string> paper = {"--style", "paper", "--size", "4x3in", "--output"};
  for (const char* const name : {"a.svg", "a.png", "a.pdf"}) {
    std::vector<std::string> flags = paper;
    flags.emplace_back(name);
    svg(flags);
  }
  const std::string drawn = read_file(path("a.svg"));
  EXPECT_TRUE(has(drawn, "width=\"384\" height=\"288\""));
  EXPECT_FALSE(has(drawn, "each seed"));
  // A PNG has 300 pixels an inch, and a PDF 72 points.
  const std::string png = read_file(path("a.png"));
  const auto byte = [&png](size_t at) { return static_cast<int>(static_cast<uint8_t>(png[at])); };
  EXPECT_EQ(256 * byte(18) + byte(19), 1200);
  EXPECT_EQ(256 * byte(22) + byte(23), 900);
  EXPECT_TRUE(has(read_file(path("a.pdf")), "/MediaBox [0 0 288 216]"));
}

TEST_F(SweepPlot, EveryResultIsDrawn) {
  ASSERT_EQ(run({"run", "--grid", "lr=0.1,0.2", "--num-seeds", "2", "--result", "loss", "--result",
                 "accuracy", "--", "echo", R"({{"loss": {lr}, "accuracy": {seed}}})"})
                .status,
            0);
  const std::string both = svg({});
  EXPECT_TRUE(has(both, ">loss</text>")) << both;
  EXPECT_TRUE(has(both, ">accuracy</text>"));
  const std::string one = svg({"--y", "accuracy"});
  EXPECT_FALSE(has(one, ">loss</text>"));
  EXPECT_TRUE(has(one, "each seed"));
  const SweepEnd none = run({"plot", "--y", "recall"});
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(has(none.errors, "--y: no cell has a result `recall` (loss, accuracy, train_loss"));
}

TEST_F(SweepPlot, AFolderStandsForTheStoreInIt) {
  const std::string text = svg({});
  EXPECT_EQ(svg({"results"}), text);
  EXPECT_EQ(svg({"--store", "results"}), text);
  EXPECT_EQ(run({"show", "results"}).output, run({"show"}).output);
  EXPECT_EQ(run({"merge", "results", "--into", "all.db"}).status, 0);
  EXPECT_EQ(svg({"all.db"}), text);
}

TEST_F(SweepPlot, WhatItCannotDrawIsSaidInOneLine) {
  const auto refusal = [this](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "plot");
    const SweepEnd end = run(flags);
    EXPECT_EQ(end.status, 2);
    return end.last_line();
  };
  EXPECT_TRUE(has(refusal({"--x", "rate"}), "--x: no cell has a parameter `rate`"));
  EXPECT_TRUE(has(refusal({"--panels", "medians"}), "wanted median, seeds or acceptance"));
  EXPECT_TRUE(has(refusal({"--panels", "acceptance"}), "no cell of this sweep guesses"));
  EXPECT_TRUE(has(refusal({"--size", "5x"}), "--size: wanted WIDTHxHEIGHT"));
  EXPECT_TRUE(has(refusal({"--size", "5x3cm"}), "found `5x3cm`"));
  EXPECT_TRUE(has(refusal({"--size", "0.5x3in"}), "between 1 and 100 inches"));
}

}  // namespace
}  // namespace convoy::testing
