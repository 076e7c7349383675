// SPDX-License-Identifier: Apache-2.0
//
// Runs of the tasks of preferences, by pairs and by single answers, for the tests of both.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "resume/train_process.h"

namespace convoy::testing {

// A run that learns `rows` and is evaluated on them, with scores and tokens in the folder `cache`
// beside them.
Settings compared_settings(const TrainFixture& fixture, const std::string& task,
                           const std::string& rows, const Settings& more);

// Both runs of one command line, the second one killed after step 6 and started again.
struct BrokenRun {
  Ended unbroken;
  Ended resumed;
};
// Runs both as `unbroken` and `killed`, and expects the same result and evaluations.
void expect_resumed_equals_unbroken(const TrainFixture& fixture, const Settings& settings,
                                    BrokenRun& ends);

// The figures that `convoy eval` finds over the held-out rows, with the configuration of `run` and
// what it made.
nlohmann::json evaluated(const TrainFixture& fixture, const std::string& run);

}  // namespace convoy::testing
