// SPDX-License-Identifier: Apache-2.0
//
// Turns parsed requests into rows of the engine, and its completions into answers. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "convoy/apps/recipes/serving/request_reader.h"
#include "convoy/apps/recipes/serving/running_answer.h"
#include "convoy/apps/recipes/serving/server_metrics.h"
#include "convoy/core/base/log.h"
#include "convoy/generate/engine/engine.h"

namespace convoy::recipes {

struct AnsweringOptions {
  std::string model_name;     // the base model's name, for the metrics
  int64_t engine_number = 0;  // among the engines of the server, for the metrics
  int64_t most_rows = 0;      // running and waiting; a request beyond them gets 429
};

class AnsweringEngine {
 public:
  // Engine and tokenizer must outlive it.
  AnsweringEngine(generate::Engine& engine, const text::Tokenizer& tokenizer,
                  const AnsweringOptions& options, const Log& log);

  bool is_idle() const { return rows_.empty(); }
  // Answers an invalid request at once.
  void take(ReadRequest read);
  // Blocks for one step of the engine. Rows for clients that left are cancelled first. A step that
  // fails ends all answers with status 500.
  void step();
  void fail_all(const ApiError& error);

 private:
  struct Row {
    std::shared_ptr<RunningAnswer> answer;
    int64_t choice;
    std::string form_field;  // the field that asks for the answer's form; empty: none does
    RowTimes times;
  };

  void begin(ReadRequest& read);
  std::vector<generate::Request> rows_of(const AskedAnswers& asked);
  void submit(const std::vector<generate::Request>& rows);
  // `began` and `now`: begin and end of the step that was just run.
  void grow(int64_t number, Row& row, ServerMetrics::Clock::time_point began,
            ServerMetrics::Clock::time_point now);
  void end(generate::Completion completion, ServerMetrics::Clock::time_point began,
           ServerMetrics::Clock::time_point now);
  void cancel_where(const std::function<bool(const RunningAnswer&)>& is_meant);

  generate::Engine& engine_;
  const text::Tokenizer& tokenizer_;
  int64_t most_rows_;
  Log log_;
  ServerMetrics metrics_;
  std::mt19937_64 random_{std::random_device()()};
  int64_t next_number_ = 1;
  std::map<int64_t, Row> rows_;  // rows by their number in the engine
};

}  // namespace convoy::recipes
