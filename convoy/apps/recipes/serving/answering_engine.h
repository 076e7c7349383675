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
#include "convoy/apps/recipes/serving/server_metrics.h"
#include "convoy/apps/recipes/serving/tokenizing.h"
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
  std::string tool_call_parser = "auto";  // as --tool-call-parser
  int64_t engine_number = 0;              // among the engines of the server, for its metrics
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
    RowTimes times;
  };

  void direct(ExchangePtr& exchange);
  void begin(ExchangePtr& exchange, ApiKind kind);
  int64_t adapter_of(const std::string& model) const;
  // Throws where the model cannot answer it.
  void check_tools(const ApiRequest& request) const;
  void check_sizes(const std::vector<generate::Request>& rows, ApiKind kind) const;
  std::vector<generate::Request> rows_of(const ApiRequest& request, int64_t adapter);
  void submit(const std::vector<generate::Request>& rows);
  // `began` and `now`: of the step that was just run.
  void grow(int64_t number, Row& row, ServerMetrics::Clock::time_point began,
            ServerMetrics::Clock::time_point now);
  void end(generate::Completion completion, ServerMetrics::Clock::time_point began,
           ServerMetrics::Clock::time_point now);
  void cancel_where(const std::function<bool(const RunningAnswer&)>& is_meant);

  generate::Engine& engine_;
  const LoadedModel& loaded_;
  AnsweringOptions options_;
  Log log_;
  Tokenizing tokenizing_;
  ServerMetrics metrics_;
  ToolFormat tool_format_;
  bool has_special_tags_;
  std::mt19937_64 random_{std::random_device()()};
  int64_t next_number_ = 1;
  std::map<int64_t, Row> rows_;  // by the engine's number
};

}  // namespace convoy::recipes
