// SPDX-License-Identifier: Apache-2.0
//
// The results of a run: counted while its rows are published, shown at its end and kept in
// metrics.json. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convoy::process {

// The time and tokens of one start of the run; a stopped run has several starts.
struct StartFigures {
  double seconds = 0;
  int64_t workers = 0;
  int64_t rows = 0;  // finished by this start
  int64_t new_tokens = 0;
  int64_t prompt_tokens = 0;
  int64_t workers_lost = 0;
  // Seconds of the engines; only their shares matter.
  std::map<std::string, double> seconds_by_stage = {};
};

// The estimate made before the start.
struct RunEstimate {
  int64_t rows = 0;
  int64_t requests = 0;    // at most
  int64_t new_tokens = 0;  // at most
};

class RunReport {
 public:
  // One row of the output, rejected ones too.
  void add(const nlohmann::ordered_json& row);

  // "last_start" is null where `start` had nothing left to do.
  nlohmann::ordered_json json(const StartFigures& start, const RunEstimate& estimate) const;
  nlohmann::ordered_json rows_by_state() const;
  nlohmann::ordered_json cost() const;  // in tokens
  // True when there are rows and none of them has a text. failures() gives the reasons.
  bool all_failed() const;
  // Rows in state bad_input or engine_error, and the most common reason; null: there are none.
  nlohmann::ordered_json failures() const;

 private:
  // Answers against the reference's, of rows that have one.
  struct Tally {
    int64_t yes = 0;
    int64_t no = 0;
    int64_t unknown = 0;

    void add(const nlohmann::ordered_json& verdict);
    int64_t all() const { return yes + no + unknown; }
    nlohmann::ordered_json share() const;
  };

  nlohmann::ordered_json start_json(const StartFigures& start) const;
  void add_samples(const nlohmann::ordered_json& row);
  void add_failure(const nlohmann::ordered_json& row);

  int64_t rows_ = 0;
  std::map<std::string, int64_t> states_;
  // Rows with one reason: reasons that differ in numbers alone are one.
  struct Failure {
    std::string example;
    int64_t rows = 0;
  };

  std::map<std::string, Failure> failures_;
  Tally rows_verified_;
  int64_t unanswered_ = 0;  // have a reference, and no text to compare with it
  Tally samples_;           // the versions that stand
  Tally first_versions_;    // the first version of each sample
  int64_t rows_with_any_yes_ = 0;
  int64_t judged_ = 0;
  int64_t unread_judgements_ = 0;
  int64_t cut_judgements_ = 0;  // unread because the judge's text was cut off
  int64_t accepted_ = 0;
  int64_t improved_ = 0;
  double score_sum_ = 0;
  int64_t scored_ = 0;
  int64_t prompt_tokens_ = 0;
  int64_t new_tokens_ = 0;
  std::map<std::string, int64_t> tokens_by_stage_;
};

// The report as lines for people; empty figures are left out.
std::vector<std::string> report_lines(const nlohmann::ordered_json& report);

}  // namespace convoy::process
