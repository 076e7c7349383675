// SPDX-License-Identifier: Apache-2.0
//
// An engine that replaces a language model in tests and benchmarks of the other parts of `convoy
// process`. Its texts follow a rule and come at a set pace.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "convoy/farm/process/pipeline/row_program.h"
#include "convoy/farm/process/text_engine.h"

namespace convoy::process {

struct NoopEngineOptions {
  int64_t batch = 32;                      // requests that run at once
  std::chrono::microseconds step_time{0};  // the sleep of each step, as if on a device
  int64_t tokens_per_step = 1;             // for each running request
  int64_t min_tokens = 1;                  // tokens of the shortest text
  int64_t max_tokens = 1;
  // Returns an error to report in place of the text, or "". Called once per request, when its text
  // is ready. An empty function means that no request fails.
  std::function<std::string(const TextRequest&)> error_of = {};
  bool error_may_pass = false;
};

// An engine whose text depends only on the prompt and the draw.
class NoopEngine : public TextEngine {
 public:
  explicit NoopEngine(NoopEngineOptions options);
  void submit(TextRequest request) override;
  void cancel(int64_t number) override;
  int64_t unfinished() const override;
  std::vector<TextResult> step() override;
  EngineFigures figures() const override;

 private:
  struct Running {
    TextRequest request;
    uint64_t word = 0;  // determines the text
    int64_t tokens = 0;
    int64_t tokens_left = 0;
  };
  TextResult finish(const Running& running) const;

  NoopEngineOptions options_;
  std::deque<TextRequest> waiting_;
  std::vector<Running> running_;
  EngineFigures figures_;
};

// Generates `samples` texts from the row's "problem", and then a judgement of each text. The
// finished row holds all of them.
class NoopProgram : public RowProgram {
 public:
  struct Options {
    int candidates = 2;
    bool judges = true;
    uint64_t seed = 42;
  };
  explicit NoopProgram(Options options) : options_(options) {}
  NextSteps next(const InputRow& row, std::span<const KeptStep> kept) const override;
  int64_t expected_cost(const InputRow& row) const override;  // the row's "cost", or 0

 private:
  Options options_;
};

}  // namespace convoy::process
