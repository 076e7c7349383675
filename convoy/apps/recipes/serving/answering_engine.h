// SPDX-License-Identifier: Apache-2.0
//
// Turns requests into rows of the engine, and its completions into answers. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/serving/running_answer.h"
#include "convoy/core/base/log.h"
#include "convoy/data/datasets/encode_sample.h"
#include "convoy/generate/engine/engine.h"

namespace convoy::recipes {

// The names that requests may use, and the adapter of each: 0 = none.
using ServedNames = std::map<std::string, int64_t>;

struct AnsweringOptions {
  ServedNames names;
  Json template_kwargs = Json::object();  // a request's override them
  int64_t most_rows = 0;                  // running and waiting; a request beyond them gets 429
};

class AnsweringEngine {
 public:
  // Engine, encoder and model must outlive it.
  AnsweringEngine(generate::Engine& engine, const data::SampleEncoder& encoder,
                  const LoadedModel& loaded, AnsweringOptions options, const Log& log);

  bool is_idle() const { return rows_.empty(); }
  // Answers at once where the request is at fault.
  void take(ExchangePtr exchange);
  // Blocks for one step of the engine. Rows for clients that left are cancelled first. A step that
  // fails ends all answers with status 500.
  void step();
  void fail_all(const ApiError& error);

 private:
  struct Row {
    std::shared_ptr<RunningAnswer> answer;
    int64_t choice;
  };

  void begin(ExchangePtr& exchange);
  std::vector<generate::Request> rows_of(const ApiRequest& request, int64_t adapter);
  std::vector<std::vector<int32_t>> encode(const ApiRequest& request) const;
  const std::vector<int32_t>& checked(const std::vector<int32_t>& ids) const;
  void submit(const std::vector<generate::Request>& rows);
  void end(generate::Completion completion);
  void cancel_where(const std::function<bool(const RunningAnswer&)>& is_meant);

  generate::Engine& engine_;
  const data::SampleEncoder& encoder_;
  const LoadedModel& loaded_;
  AnsweringOptions options_;
  Log log_;
  std::mt19937_64 random_{std::random_device()()};
  int64_t next_number_ = 1;
  std::map<int64_t, Row> rows_;  // by the engine's number
};

}  // namespace convoy::recipes
