// SPDX-License-Identifier: Apache-2.0
//
// The finished and the running work of an engine, as Prometheus text under vLLM's names: dashboards
// made for vLLM show it. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/generate/engine/request.h"
#include "convoy/generate/scheduler/engine_figures.h"

namespace convoy::recipes {

// Counts the values up to each bound. The bounds are ascending.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void add(double value);
  // The lines of the metric `name`; `labels`: `a="b",c="d"`.
  std::string text(std::string_view name, std::string_view labels) const;

 private:
  std::vector<double> bounds_;
  // By interval between bounds; the last counts values above all bounds.
  std::vector<int64_t> counts_;
  double sum_ = 0;
};

// The times of one row of an engine.
struct RowTimes {
  using Clock = std::chrono::steady_clock;

  Clock::time_point came = {};
  Clock::time_point began = {};  // start of computing; not set while the row waits
  Clock::time_point first_token = {};
  Clock::time_point last_token = {};
  int64_t prompt_tokens = 0;
  int64_t tokens = 0;

  bool has_begun() const { return began != Clock::time_point(); }
};

class ServerMetrics {
 public:
  using Clock = RowTimes::Clock;

  // `engine`: its number among the server's engines.
  ServerMetrics(std::string model_name, int64_t engine);

  // `tokens`: number of all new tokens of the row so far.
  void note_tokens(RowTimes& row, int64_t tokens, Clock::time_point now);
  void note_end(const RowTimes& row, generate::FinishReason reason, Clock::time_point now);
  void note_abort() { ++ends_["abort"]; }

  std::string text(const scheduler::EngineFigures& figures) const;

 private:
  std::string labels_;
  int64_t prompt_tokens_ = 0;
  int64_t generation_tokens_ = 0;
  std::map<std::string, int64_t> ends_;  // rows by reason
  std::vector<Histogram> histograms_;
};

}  // namespace convoy::recipes
