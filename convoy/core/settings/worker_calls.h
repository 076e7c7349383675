// SPDX-License-Identifier: Apache-2.0
//
// The calls of convoy-worker. Used by both programs: the front takes its own flags from a command
// line and passes the words of lists() on, and the worker parses these words with lists(). Plain
// data.
#pragma once

#include <vector>

#include "convoy/core/config/field_list.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/metric_settings.h"
#include "convoy/core/settings/serve_flags.h"

namespace convoy::settings {

struct ScoreCall {
  ScoreFlags flags = {};
  ModelFlags model = {};

  std::vector<config::Section> lists() {
    return {config::list_fields(flags), config::list_fields(model)};
  }
};

// A call in which a model answers.
struct AnswerCall {
  SamplingFlags sampling = {};
  EngineFlags engine = {};
  ModelFlags model = {};
};

struct EvalCall : AnswerCall {
  EvalFlags flags = {};
  MetricFlags metrics = {};

  std::vector<config::Section> lists() {
    return {config::list_fields(flags), config::list_fields(metrics), config::list_fields(sampling),
            config::list_fields(engine), config::list_fields(model)};
  }
};

struct GenerateCall : AnswerCall {
  GenerateFlags flags = {};

  std::vector<config::Section> lists() {
    return {config::list_fields(flags), config::list_fields(sampling), config::list_fields(engine),
            config::list_fields(model)};
  }
};

struct ServeCall {
  ServeFlags flags = {};
  ServedModelFlags model = {};
  EngineFlags engine = {};

  std::vector<config::Section> lists() {
    return {config::list_fields(flags), config::list_fields(model), config::list_fields(engine)};
  }
};

struct BenchCall {
  BenchFlags flags = {};

  std::vector<config::Section> lists() { return {config::list_fields(flags)}; }
};

struct BenchTrainCall : BenchCall {
  BenchTrainFlags train = {};

  std::vector<config::Section> lists() {
    return {config::list_fields(train), config::list_fields(flags)};
  }
};

struct BenchGenerateCall : BenchCall {
  BenchGenerateFlags generate = {};

  std::vector<config::Section> lists() {
    return {config::list_fields(generate), config::list_fields(flags)};
  }
};

struct MergeCall {
  MergeFlags flags = {};
  ModelSourceFlags model = {};

  std::vector<config::Section> lists() {
    return {config::list_fields(flags), config::list_fields(model)};
  }
};

}  // namespace convoy::settings
