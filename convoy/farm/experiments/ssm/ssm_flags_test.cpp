// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_flags.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/ssm/ssm_parameters.h"

namespace convoy::experiments {
namespace {

std::vector<SsmParameters> parameters_of(const SsmFlags& flags, const std::string& method) {
  std::vector<SsmParameters> all;
  for (const sweep::PlannedCell& planned : plan_ssm(flags).cells)
    if (planned.cell.method == method) all.push_back(SsmParameters::parse(planned.cell.parameters));
  return all;
}

TEST(SsmFlags, PresetsAreDefaultsThatOtherFlagsChange) {
  SsmFlags flags;
  flags.apply_preset("first");
  flags.num_seeds = 2;
  flags.gd = true;
  const auto guesses = parameters_of(flags, "gnc"), descents = parameters_of(flags, "gd");
  ASSERT_EQ(guesses.size(), 26u);
  EXPECT_EQ(guesses.front().student_dim, 3);
  EXPECT_EQ(guesses.back().student_dim, 15);
  for (const auto& each : guesses) {
    EXPECT_EQ(each.teacher_rank, 2);
    EXPECT_EQ(each.teacher_mean, 0);
    EXPECT_EQ(each.prior_sd.value, 1);
    EXPECT_EQ(each.num_sequences, 3);
    EXPECT_EQ(each.eps_train, 1e-3);
  }
  EXPECT_EQ(descents.front().descent.epochs, 100'000);
  flags = {};
  flags.apply_preset("published");
  const auto published = parameters_of(flags, "gnc");
  ASSERT_EQ(published.size(), 28u);
  EXPECT_EQ(published[2].w, (std::vector<std::vector<double>>{{0, 0, 0, 1}}));
  EXPECT_THROW(flags.apply_preset("second"), ConfigError);
}

TEST(SsmFlags, ShortcutsArePartOfTheirCells) {
  SsmFlags flags;
  flags.preset = "published";
  flags.num_seeds = 4;
  flags.student_dims = {150};
  flags.gd = true;
  flags.shortcut = "auto";
  const auto guesses = parameters_of(flags, "gnc");
  EXPECT_EQ(guesses[0].shortcut(), SsmShortcut::Projection);
  for (size_t at = 1; at < 4; ++at) EXPECT_EQ(guesses[at].shortcut(), SsmShortcut::None);
  for (const auto& each : parameters_of(flags, "gd")) EXPECT_EQ(each.shortcut(), SsmShortcut::None);
  flags.shortcut = "projection";
  EXPECT_THROW(plan_ssm(flags), ConfigError);
  flags.preset = "";
  flags.common.sequence_length = 3;
  flags.shortcut = "two_randoms";
  EXPECT_EQ(parameters_of(flags, "gnc")[0].shortcut(), SsmShortcut::TwoRandoms);
}

TEST(SsmFlags, TeachersOfHigherRankAreSaidNotToTakeTheAlpha) {
  SsmFlags flags;
  flags.preset = "published";
  flags.student_dims = {5};
  flags.teacher_ranks = {1};
  EXPECT_TRUE(ssm_warnings(flags).empty());
  flags.teacher_ranks = {1, 2};
  ASSERT_EQ(ssm_warnings(flags).size(), 1u);
  EXPECT_NE(ssm_warnings(flags)[0].find("describes a teacher of rank 1"), std::string::npos);
  flags.preset = "";
  EXPECT_TRUE(ssm_warnings(flags).empty());
}

}  // namespace
}  // namespace convoy::experiments
