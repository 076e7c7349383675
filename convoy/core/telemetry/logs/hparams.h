// SPDX-License-Identifier: Apache-2.0
//
// Parameters and results of many trainings for TensorBoard's HParams page: one experiment, and the
// values of each run. Plain data and functions over an EventWriter.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "convoy/core/telemetry/logs/tensorboard.h"

namespace convoy::telemetry {

// Numbers are not converted to text: the page sorts and colours runs by them.
using HparamValue = std::variant<bool, double, std::string>;
using Hparams = std::map<std::string, HparamValue>;

struct HparamsExperiment {
  // A parameter of any run. `values`: all its values, in the order in which the page shows them;
  // empty = too many to list, and `kind` then holds a value of their type.
  struct Parameter {
    std::string name = {};
    std::vector<HparamValue> values = {};
    HparamValue kind = std::string();
  };
  std::string description = {};
  std::vector<Parameter> parameters = {};
  std::vector<std::string> metric_tags = {};
};

// Writes the experiment, once, in the folder above the runs' folders. Without it the page collects
// the values from the runs.
void add_experiment(EventWriter& writer, const HparamsExperiment& experiment);

struct HparamsSession {
  Hparams values = {};
  std::string group = {};     // sessions of one group differ by their seed alone; empty = none
  double begin_seconds = -1;  // since 1970; below 0 = now
};

// Writes the session in the run's own folder, which also holds its metrics as scalars.
void add_session(EventWriter& writer, const HparamsSession& session);
void add_session_end(EventWriter& writer, bool succeeded, double end_seconds = -1);

}  // namespace convoy::telemetry
