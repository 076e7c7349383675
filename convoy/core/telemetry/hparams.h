// SPDX-License-Identifier: Apache-2.0
//
// Parameters and results of many trainings as TensorBoard's HParams page reads them: one
// experiment, and of each run the values that it had. Plain data and functions over an EventWriter.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "convoy/core/telemetry/tensorboard.h"

namespace convoy::telemetry {

// A number stays a number: the page sorts and colours by it.
using HparamValue = std::variant<bool, double, std::string>;
using Hparams = std::map<std::string, HparamValue>;

struct HparamsExperiment {
  // Of every parameter that any run has, the values that there are, in the order in which the page
  // shows them; none = too many to list, and of this kind.
  struct Parameter {
    std::string name = {};
    std::vector<HparamValue> values = {};
    HparamValue kind = std::string();
  };
  std::string description = {};
  std::vector<Parameter> parameters = {};
  std::vector<std::string> metric_tags = {};
};

// Once, in the folder above those of the runs. A page without it takes what the runs say together.
void add_experiment(EventWriter& writer, const HparamsExperiment& experiment);

struct HparamsSession {
  Hparams values = {};
  std::string group = {};     // sessions of one group differ by their seed alone; empty = none
  double begin_seconds = -1;  // since 1970; below 0 = now
};

// In the run's own folder, which also has its metrics as scalars.
void add_session(EventWriter& writer, const HparamsSession& session);
void add_session_end(EventWriter& writer, bool succeeded, double end_seconds = -1);

}  // namespace convoy::telemetry
