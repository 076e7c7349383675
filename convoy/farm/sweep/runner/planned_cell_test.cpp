// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/planned_cell.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::sweep {
namespace {

PlannedCell planned(int64_t seed) {
  PlannedCell one;
  one.cell = {.method = "gnc", .seed = seed, .parameters = R"({"student_dim":20})"};
  one.guesses = 1000;
  return one;
}

TEST(PlannedCells, TheIdentityHoldsWhatDecidesTheNumbersAndReadsBack) {
  PlannedCell one = planned(3);
  one.stop = {.standard_error = 0.25, .accepted = 7};
  EXPECT_EQ(one.parameters(),
            R"({"cell":{"student_dim":20},"guesses":1000,"method":"gnc","seed":3,)"
            R"("target_accepted":7,"target_standard_error":0.25})");
  EXPECT_EQ(PlannedCell::parse(one.parameters()), one);
  EXPECT_EQ(one.task().units, 1000);
  PlannedCell descent = planned(3);
  descent.guesses = 0;
  EXPECT_EQ(descent.task().units, 1);
  EXPECT_THROW(PlannedCell::parse("{}"), DataError);
}

TEST(PlannedCells, ThePlansNameDependsOnItsCellsNotOnTheirOrder) {
  SweepPlan plan{.label = "ssm", .workload = "ssm", .mode = "", .version = "1", .cells = {}};
  plan.cells = {planned(1), planned(2)};
  SweepPlan turned = plan;
  turned.cells = {planned(2), planned(1)};
  turned.version = "2";
  EXPECT_EQ(plan.name(), turned.name());
  turned.cells.push_back(planned(3));
  EXPECT_NE(plan.name(), turned.name());
}

TEST(Checkpoints, BlocksTileTheGuessesAndGrowSlowly) {
  EXPECT_EQ(checkpoint_begin(0), 0);
  EXPECT_EQ(checkpoint_begin(1), 65536);
  EXPECT_EQ(checkpoint_begin(5), 2 * 65536);
  for (int64_t block = 0; block < 180; ++block) {
    const int64_t begin = checkpoint_begin(block), end = checkpoint_begin(block + 1);
    ASSERT_LT(begin, end);
    EXPECT_EQ(checkpoint_block(begin), block);
    EXPECT_EQ(checkpoint_block(end - 1), block);
    if (block > 0) {
      EXPECT_LT(static_cast<double>(end), 1.2 * static_cast<double>(begin));
    }
  }
}

TEST(SweepNames, AreRefusedWhereTheyCannotBeginTheNameOfAFile) {
  for (const std::string& name :
       {std::string("run"), std::string("lr sweep, 2"), std::string("é"), std::string("a..b"),
        std::string("s\u00e9rie-\u4e00-\u200d"), std::string(128, 'a')})
    EXPECT_NO_THROW(check_sweep_name(name)) << name;
  for (const std::string& name :
       {std::string(), std::string("../out"), std::string(".."), std::string(".hidden"),
        std::string("a/b"), std::string("two\nlines"), std::string("a\0b", 3),
        std::string("report_\u202egpj.exe"), std::string("next\u0085line"),
        std::string("\u2066turned"), std::string("\x1b[31mred"), std::string("\xff"),
        std::string(129, 'a')})
    EXPECT_THROW(check_sweep_name(name), ConfigError) << name;
}

Tally tally_of(int64_t guesses, int64_t accepted = 0) {
  Tally tally;
  tally.guesses = guesses;
  tally.accepted = accepted;
  return tally;
}

TEST(PlannedCells, AreWholeWithAllGuessesOrAtTheEndOfTheirRule) {
  PlannedCell planned;
  planned.guesses = 1'000'000;
  EXPECT_TRUE(planned.is_whole(tally_of(1'000'000)));
  EXPECT_FALSE(planned.is_whole(tally_of(0)));
  EXPECT_FALSE(planned.is_whole(tally_of(65'536, 900)));
  planned.stop.accepted = 500;
  EXPECT_TRUE(planned.is_whole(tally_of(65'536, 900)));
  EXPECT_FALSE(planned.is_whole(tally_of(65'536, 400)));
  EXPECT_FALSE(planned.is_whole(tally_of(65'537, 900)));
}

}  // namespace
}  // namespace convoy::sweep
