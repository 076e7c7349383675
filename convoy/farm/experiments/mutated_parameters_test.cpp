// SPDX-License-Identifier: Apache-2.0
//
// Damaged data files and parameters of experiments are read, or refused as one of Convoy's errors.
#include <gtest/gtest.h>

#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/core/config/flags.h"
#include "convoy/farm/experiments/mf/mf_parameters.h"
#include "convoy/farm/experiments/ssm/ssm_flags.h"
#include "convoy/farm/experiments/ssm/ssm_parameters.h"
#include "files/mutated_texts.h"
#include "files/temporary_folder.h"

namespace convoy::experiments {
namespace {

using convoy::testing::count;
using convoy::testing::MutatedTexts;
using convoy::testing::Outcome;
using convoy::testing::TemporaryFolder;

// dump() and copies of a text that is nested a hundred thousand times would overflow the stack and
// end the process.
TEST(MutatedParameters, NestedTextsAreRefused) {
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  EXPECT_THROW(SsmParameters::parse("{\"alpha\": " + deep + "}"), ConfigError);
  EXPECT_THROW(MfParameters::parse("{\"truth\": " + deep + "}"), ConfigError);
  const TemporaryFolder folder;
  SsmFlags flags;
  flags.data_file = folder / "data.json";
  std::ofstream(flags.data_file) << "[{\"alpha\": " << deep << "}]";
  EXPECT_THROW(plan_ssm(flags), DataError);
}

TEST(MutatedParameters, DataFilesAndParameters) {
  const TemporaryFolder folder;
  MutatedTexts data(
      {R"([{"alpha": 0.5, "w": [0, 0, 0, 1]}, {"alpha": 0.25, "w_sequences": [[1, 0, 0, 0]]}])"});
  MutatedTexts ssm(
      {R"({"student_dim": 20, "alpha": 0.5, "w": [[0, 0, 0, 1]], "gd_optimizer": "adam", "input_e1": false})"});
  MutatedTexts mf(
      {R"({"n_rows": 5, "width": 3, "activation": "Tanh", "truth": [1, 2], "measurements": [[1, 2], [3, 4]]})"});
  MutatedTexts schedules({R"({"step_size": 100, "gamma": 0.5})"});
  Outcome outcome;
  SsmFlags flags;
  flags.num_seeds = 2;
  flags.student_dims = {20};
  flags.gd = true;
  flags.common.descent.schedule_word = "step";
  flags.data_file = folder / "data.json";
  for (int round = 0; round < 400; ++round) {
    std::ofstream(flags.data_file, std::ios::trunc) << data.next();
    count<Error>(outcome, [&] {
      config::parse_flags({config::list_fields(flags)},
                          {"--gd-scheduler-params", schedules.next()});
    });
    count<Error>(outcome, [&] { plan_ssm(flags); });
    count<Error>(outcome, [&] { SsmParameters::parse(ssm.next()).json(); });
    count<Error>(outcome, [&] { MfParameters::parse(mf.next()).json(); });
  }
  EXPECT_GT(outcome.read, 10);
  EXPECT_GT(outcome.refused, 200);
}

}  // namespace
}  // namespace convoy::experiments
