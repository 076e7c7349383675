// SPDX-License-Identifier: Apache-2.0
//
// Has the runs that the tests of preference tasks share, with pairs and with single answers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "resume/train_process.h"

namespace convoy::testing {

// Returns the settings of a run that learns `rows` and is evaluated on them. The folder `cache`
// beside them holds scores and tokens.
Settings compared_settings(const TrainFixture& fixture, const std::string& task,
                           const std::string& rows, const Settings& more);

// The ends of two runs with the same command line. The second one is killed after step 6 and
// started again.
struct BrokenRun {
  Ended unbroken;
  Ended resumed;
};
// Runs both, as `unbroken` and `killed`, and expects the same result and evaluations.
void expect_resumed_equals_unbroken(const TrainFixture& fixture, const Settings& settings,
                                    BrokenRun& ends);

// Returns the figures of `convoy eval` over the held-out rows, for the configuration of `run` and
// the model that the run wrote.
nlohmann::json evaluated(const TrainFixture& fixture, const std::string& run);

}  // namespace convoy::testing
