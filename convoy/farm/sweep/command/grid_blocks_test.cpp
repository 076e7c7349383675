// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/grid_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/command/space_samples.h"
#include "files/temporary_folder.h"

namespace convoy::sweep {
namespace {

std::vector<std::string> cells_of(const CommandFlags& flags) {
  std::vector<std::string> cells;
  for (const PlannedCell& planned : plan_command(flags, {"./train"}).cells)
    cells.push_back(
        fmt::format("{} {}", nlohmann::json::parse(planned.cell.parameters.str())["values"].dump(),
                    planned.cell.seed));
  return cells;
}

TEST(GridBlocks, ZippedNamesGoTogether) {
  CommandFlags flags;
  flags.grid = config::NameList({"a=1,2"});
  flags.zip = config::NameList({"lr=0.1,0.01", "steps=10,100"});
  EXPECT_EQ(
      cells_of(flags),
      (std::vector<std::string>{
          R"({"a":"1","lr":"0.1","steps":"10"} 0)", R"({"a":"1","lr":"0.01","steps":"100"} 0)",
          R"({"a":"2","lr":"0.1","steps":"10"} 0)", R"({"a":"2","lr":"0.01","steps":"100"} 0)"}));
  flags.zip.names[1] = "steps=10";
  EXPECT_THROW(cells_of(flags), ConfigError);
  flags.zip.names = {"a=3,4"};  // `a` is a name of the grid too
  EXPECT_THROW(cells_of(flags), ConfigError);
  flags.zip.names = {"b=1,1.0"};
  EXPECT_THROW(cells_of(flags), ConfigError);
}

TEST(GridBlocks, RowsOfAFileAreCells) {
  const testing::TemporaryFolder folder;
  CommandFlags flags;
  flags.cells = (folder / "cells.csv").string();
  std::ofstream(flags.cells) << "\xef\xbb\xbflr,name,seed\r\n0.1,\"a, \"\"b\"\"\",3\n\n0.2,,4";
  EXPECT_EQ(cells_of(flags), (std::vector<std::string>{R"({"lr":"0.1","name":"a, \"b\""} 3)",
                                                       R"({"lr":"0.2","name":""} 4)"}));
  flags.num_seeds = 2;
  EXPECT_THROW(cells_of(flags), ConfigError);
  std::ofstream(flags.cells) << "lr\n0.1\n0.2\n";
  EXPECT_EQ(cells_of(flags).size(), 4u);
  std::ofstream(flags.cells) << "lr\r0.1\r0.2\r";  // line ends of old spreadsheets
  EXPECT_EQ(cells_of(flags).size(), 4u);
  std::ofstream(flags.cells) << "lr\r\r\n0.1\r\r\n0.2\r\r\n";
  EXPECT_EQ(cells_of(flags).size(), 4u);
  for (const char* const wrong : {"lr\n", "lr,lr\n1,2\n", "a,b\n1\n", "a\n\"1\n", "a\n1\n1.0\n"}) {
    std::ofstream(flags.cells) << wrong;
    EXPECT_THROW(cells_of(flags), Error) << wrong;
  }
}

// The first eight points of three axes without a shift, as scipy.stats.qmc.Sobol computes them.
TEST(SpaceSamples, AreThoseOfSobolUpToAShift) {
  const double eighths[8][3] = {{0, 0, 0}, {4, 4, 4}, {6, 2, 2}, {2, 6, 6},
                                {3, 3, 5}, {7, 7, 1}, {5, 1, 7}, {1, 5, 3}};
  const auto points = unit_points(Sampling::Sobol, 3, 8, 7);
  for (int axis = 0; axis < 3; ++axis) {
    const auto word = [&](int point) {
      return static_cast<uint32_t>(points[point][axis] * 0x1p32);
    };
    for (int point = 0; point < 8; ++point)
      EXPECT_EQ(word(point) ^ word(0), static_cast<uint32_t>(eighths[point][axis] * 0x1p29))
          << point << " " << axis;
  }
}

TEST(SpaceSamples, EachAxisOfSobolIsEvenAndGrows) {
  const auto points = unit_points(Sampling::Sobol, kMostSobolAxes, 1024, 0);
  for (size_t axis = 0; axis < kMostSobolAxes; ++axis) {
    std::set<int> cells;
    for (const auto& point : points) cells.insert(static_cast<int>(point[axis] * 1024));
    EXPECT_EQ(cells.size(), 1024u) << axis;
  }
  const auto fewer = unit_points(Sampling::Sobol, kMostSobolAxes, 10, 0);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), points.begin()));
  EXPECT_THROW(unit_points(Sampling::Sobol, kMostSobolAxes + 1, 1, 0), ConfigError);
  EXPECT_NE(unit_points(Sampling::Random, 30, 2, 0), unit_points(Sampling::Random, 30, 2, 1));
}

TEST(SpaceSamples, StayInTheirRange) {
  const SpaceAxis rate = SpaceAxis::parse("lr=1e-5..1e-1,log");
  EXPECT_EQ(rate.value(0), "1e-05");
  EXPECT_EQ(rate.value(0.5), "0.001");
  const SpaceAxis layers = SpaceAxis::parse("layers=1..4,int");
  EXPECT_EQ(layers.value(0), "1");
  EXPECT_EQ(layers.value(0.24), "1");
  EXPECT_EQ(layers.value(0.26), "2");
  EXPECT_EQ(layers.value(0.999999), "4");
  const SpaceAxis batch = SpaceAxis::parse("batch=1..1000,log,int");
  EXPECT_EQ(batch.value(0), "1");
  EXPECT_EQ(batch.value(0.9999999), "1000");
  EXPECT_EQ(SpaceAxis::parse("act=relu,tanh").value(0.5), "tanh");
  const SpaceAxis spaced = SpaceAxis::parse(" a = 1 .. 10 , int ");
  EXPECT_EQ(spaced.name, "a");
  EXPECT_EQ(std::pair(spaced.low, spaced.high), std::pair(1.0, 10.0));
  EXPECT_TRUE(spaced.whole);
  for (const char* const wrong :
       {"lr", "lr=", "lr=1..0", "lr=0..1,log", "n=0.5..3,int", "n=1..2,x"})
    EXPECT_THROW(SpaceAxis::parse(wrong), ConfigError) << wrong;
}

TEST(GridBlocks, SamplesGrowAndEqualOnesAreOne) {
  CommandFlags flags;
  flags.space = config::NameList({"lr=1e-4..1e-1,log", "layers=1..2,int"});
  EXPECT_THROW(cells_of(flags), ConfigError);  // --samples is missing
  flags.samples = 4;
  const auto four = cells_of(flags);
  flags.samples = 16;
  const auto more = cells_of(flags);
  EXPECT_EQ(more.size(), 16u);
  EXPECT_TRUE(std::equal(four.begin(), four.end(), more.begin()));
  flags.space = config::NameList({"layers=1..2,int"});
  EXPECT_EQ(cells_of(flags).size(), 2u);
}

}  // namespace
}  // namespace convoy::sweep
