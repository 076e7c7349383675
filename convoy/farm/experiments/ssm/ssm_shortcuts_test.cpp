// SPDX-License-Identifier: Apache-2.0
//
// Tests that decide whether a shortcut may be offered: its acceptance and losses equal plain
// guessing.
#include "convoy/farm/experiments/ssm/ssm_shortcuts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/ssm/ssm_workload.h"

namespace convoy::experiments {
namespace {

struct Gate {
  const char* shortcut;
  const char* members;
  uint64_t plain_guesses = 1'000'000;
};

constexpr Gate kGates[] = {
    {"two_randoms", R"("alpha": 0.5, "w": [1.0, 0.5], "sequence_length": 3, "student_dim": 150)"},
    {"two_randoms", R"("alpha": 0.5, "w": [0, 1], "sequence_length": 3, "student_dim": 10)"},
    {"two_randoms", R"("alpha": -0.4, "w": [1, 1], "sequence_length": 3, "student_dim": 1)"},
    {"two_randoms", R"("alpha": 0.5, "w": [1, -2], "sequence_length": 3, "student_dim": 2)"},
    {"two_randoms", R"("alpha": 0.5, "w": [2], "sequence_length": 2, "student_dim": 7)"},
    {"two_randoms", R"("sequence_length": 3, "student_dim": 5, "num_sequences": 2)"},
    {"two_randoms", R"("sequence_length": 3, "student_dim": 3, "num_sequences": 3, "prior_sd": 1)"},
    {"two_randoms", R"("alpha": 0.5, "w": [1, 1], "sequence_length": 3, "student_dim": 12,
                       "calc_loss_only_on_last_output": false)"},
    {"projection", R"("alpha": 0.5, "input_e1": true, "student_dim": 150)"},
    {"projection", R"("alpha": 0.5, "w": [-0.3, 0, 0, 0], "student_dim": 1)"},
    {"projection", R"("alpha": -0.7, "w": [2, 0, 0, 0, 0, 0, 0, 0], "student_dim": 5,
                      "sequence_length": 9)"},
    {"projection", R"("alpha": 0.5, "w": [[1, 0, 0, 0], [3, 0, 0, 0]], "num_sequences": 2,
                      "student_dim": 30)"},
    {"projection", R"("alpha": 0.5, "w": [0, 0, 0, 0], "student_dim": 9)", 200'000},
    {"projection", R"("teacher_rank": 2, "input_e1": true, "student_dim": 4)"},
};

sweep::Tally shortcut_tally_of(const std::string& members, const char* shortcut, uint64_t first,
                               uint64_t count, Precision precision,
                               CpuLevel level = best_cpu_level()) {
  const sweep::Cell cell{
      "gnc", 1, fmt::format(R"({{{}, "eps_train": 0.01, "shortcut": "{}"}})", members, shortcut)};
  return SsmWorkload(precision, level).guesses(cell)->run(first, count);
}

class EachPrecisionOfShortcuts : public ::testing::TestWithParam<Precision> {};
INSTANTIATE_TEST_SUITE_P(Ssm, EachPrecisionOfShortcuts,
                         ::testing::Values(Precision::Exact, Precision::Fast));

TEST_P(EachPrecisionOfShortcuts, AcceptAndLoseAsPlainGuessesDo) {
  for (const Gate& gate : kGates) {
    const auto n = static_cast<double>(gate.plain_guesses);
    const sweep::Tally plain =
        shortcut_tally_of(gate.members, "none", 0, gate.plain_guesses, GetParam());
    const sweep::Tally quick =
        shortcut_tally_of(gate.members, gate.shortcut, 0, gate.plain_guesses, GetParam());
    const auto plain_accepted = static_cast<double>(plain.accepted),
               quick_accepted = static_cast<double>(quick.accepted);
    EXPECT_GT(plain.accepted, 1000) << gate.members;
    EXPECT_NEAR(plain_accepted, quick_accepted,
                4 * std::sqrt(2 * plain_accepted * (1 - plain_accepted / n)) + 1e-9)
        << gate.members;
    EXPECT_NEAR(plain.mean(), quick.mean(),
                4 * std::hypot(plain.standard_error(), quick.standard_error()))
        << gate.members;
    EXPECT_EQ(quick.guesses, plain.guesses);
  }
}

TEST_P(EachPrecisionOfShortcuts, GiveTheSameBitsForEverySplitAndLevel) {
  for (const Gate& gate : kGates) {
    const uint64_t first = (uint64_t{1} << 32) - 1000;  // the upper word changes
    const sweep::Tally whole =
        shortcut_tally_of(gate.members, gate.shortcut, first, 3000, GetParam());
    sweep::Tally sum = shortcut_tally_of(gate.members, gate.shortcut, first, 1007, GetParam());
    sum.merge(shortcut_tally_of(gate.members, gate.shortcut, first + 1007, 1, GetParam()));
    sum.merge(shortcut_tally_of(gate.members, gate.shortcut, first + 1008, 1992, GetParam()));
    EXPECT_EQ(sum, whole) << gate.members;
    for (const CpuLevel level : usable_cpu_levels())
      EXPECT_EQ(shortcut_tally_of(gate.members, gate.shortcut, first, 3000, GetParam(), level),
                whole)
          << gate.members << cpu_level_name(level);
  }
}

TEST(SsmShortcuts, AreRefusedWhereTheyDoNotHold) {
  const auto problem_of = [](const char* parameters) {
    return draw_problem(SsmParameters::parse(parameters), 0);
  };
  EXPECT_EQ(best_shortcut(problem_of(R"({"sequence_length": 3})")), SsmShortcut::TwoRandoms);
  EXPECT_EQ(best_shortcut(problem_of(R"({"input_e1": true})")), SsmShortcut::Projection);
  EXPECT_EQ(best_shortcut(problem_of("{}")), SsmShortcut::None);
  EXPECT_EQ(best_shortcut(problem_of(R"({"w": [0, 0, 0, 1]})")), SsmShortcut::None);
  const SsmWorkload workload;
  EXPECT_THROW(workload.guesses({"gnc", 0, R"({"shortcut": "two_randoms"})"}), ConfigError);
  EXPECT_THROW(workload.guesses({"gnc", 0, R"({"w": [0, 1, 0, 0], "shortcut": "projection"})"}),
               ConfigError);
  EXPECT_THROW(workload.guesses({"gnc", 0, R"({"input_e1": true, "shortcut": "projection",
                                               "calc_loss_only_on_last_output": false,
                                               "input_e1": false, "w": [1, 1, 0, 0]})"}),
               ConfigError);
}

}  // namespace
}  // namespace convoy::experiments
