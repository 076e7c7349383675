// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/cell_fields.h"

#include <gtest/gtest.h>

#include "convoy/farm/experiments/ball/ball_workload.h"
#include "convoy/farm/experiments/mf/mf_flags.h"
#include "convoy/farm/experiments/ssm/ssm_flags.h"

namespace convoy::experiments {
namespace {

struct CellRefusal {
  std::string key, text;
};

template <class Parameters>
CellRefusal refusal_of_cell(const std::string& text) {
  try {
    Parameters::parse(text);
  } catch (const ConfigError& error) {
    return {error.location().key, error.what()};
  }
  return {"", "it was read"};
}

TEST(CellFields, ErrorsNameTheKeyTheValueAndTheBound) {
  const auto mf = refusal_of_cell<MfParameters>, ssm = refusal_of_cell<SsmParameters>;
  EXPECT_EQ(mf(R"({"n_rows": 4096})").text,
            "n_rows must be at least 1 and at most 1024, found 4096");
  EXPECT_EQ(mf(R"({"n_rows": 4096})").key, "n_rows");
  EXPECT_TRUE(mf(R"({"gd_epochs": 0})").text.starts_with("gd_epochs must be at least 1"));
  EXPECT_EQ(mf(R"({"gd_lr": "fast"})").text, "gd_lr: wanted a number, found \"fast\"");
  EXPECT_EQ(mf(R"({"gd_lr": null})").text, "gd_lr: wanted a number, found nothing");
  EXPECT_EQ(mf(R"({"wdth": 5})").text, "mf has no parameter `wdth`");
  EXPECT_EQ(mf(R"({"shortcut": "auto"})").key, "shortcut");
  EXPECT_EQ(ssm(R"({"student_dim": 2.5})").text, "student_dim: wanted an integer, found \"2.5\"");
  EXPECT_EQ(ssm(R"({"eps_train": 0})").text, "eps_train must be above 0, found 0");
  EXPECT_EQ(ssm(R"({"w": "x"})").text,
            "w: wanted a list of numbers, or of such lists, found `\"x\"`");
  EXPECT_EQ(ssm(R"({"w": [[1, 2, 3, 4], 5]})").key, "w");
  EXPECT_EQ(ssm(R"({"num_measurements": 2})").text, "ssm has no parameter `num_measurements`");
}

TEST(CellFields, AValueInQuotesIsRefusedByItsKey) {
  const auto mf = refusal_of_cell<MfParameters>, ssm = refusal_of_cell<SsmParameters>;
  EXPECT_EQ(mf(R"({"width": "3"})").text, "width: wanted 3 without quotes, found `\"3\"`");
  EXPECT_EQ(mf(R"({"width": "3"})").key, "width");
  EXPECT_EQ(mf(R"({"gd_lr": "1e-3"})").key, "gd_lr");
  EXPECT_EQ(mf(R"({"completion": "true"})").key, "completion");
  EXPECT_EQ(mf(R"({"truth": ["1", 2]})").key, "truth");
  EXPECT_EQ(mf(R"({"truth": "1, 2"})").key, "truth");
  EXPECT_EQ(ssm(R"({"alpha": "0.5"})").key, "alpha");
  EXPECT_EQ(ssm(R"({"alpha": "auto"})").text, "it was read");
  EXPECT_EQ(mf(R"({"width": 3, "gd_lr": 1e-3})").text, "it was read");
}

// A flag and the parameter of a cell come from one entry of one list, so they have the same bounds.
TEST(CellFields, FlagsHaveTheBoundsOfTheirCells) {
  MfFlags large;
  EXPECT_THROW(config::parse_flags({config::list_fields(large)}, {"--n-rows", "1025"}),
               ConfigError);
  SsmFlags ssm;
  EXPECT_THROW(config::parse_flags({config::list_fields(ssm)}, {"--num-measurements", "10001"}),
               ConfigError);
}

TEST(CellFields, AnotherSpellingOfAnActivationGivesTheSameCells) {
  MfFlags mf;
  config::parse_flags({config::list_fields(mf)}, {"--activation", "Leaky ReLU"});
  EXPECT_EQ(mf.common.activation(), MfActivation::LeakyReLU);
  for (const sweep::PlannedCell& planned : plan_mf(mf).cells)
    EXPECT_NE(planned.parameters().find(R"("activation":"LeakyReLU")"), std::string::npos);
}

TEST(CellFields, AScheduleIsRefusedByItsOwnBounds) {
  SsmFlags flags;
  flags.gd = true;
  flags.common.descent.schedule_word = "step";
  flags.gd_scheduler_params = config::OrderedMap<double>{{"gamma", 0.0}};
  EXPECT_THROW(plan_ssm(flags), ConfigError);
}

TEST(CellFields, BallsWithoutASeedAreRefusedInThePlan) {
  BallFlags flags;
  flags.seeds = {-1};
  EXPECT_THROW(plan_ball(flags), ConfigError);
}

}  // namespace
}  // namespace convoy::experiments
