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
  int64_t rows = 0;  // rows that this start finished
  int64_t new_tokens = 0;
  int64_t prompt_tokens = 0;
  int64_t workers_lost = 0;
  // Seconds of the engines per stage; only their ratios matter.
  std::map<std::string, double> seconds_by_stage = {};
};

// The estimate made before the start.
struct RunEstimate {
  int64_t rows = 0;
  int64_t requests = 0;    // upper limit
  int64_t new_tokens = 0;  // upper limit
};

class RunReport {
 public:
  // Adds one row of the output; rejected rows are added too.
  void add(const nlohmann::ordered_json& row);

  // The member "last_start" is null if `start` had nothing left to do.
  nlohmann::ordered_json json(const StartFigures& start, const RunEstimate& estimate) const;
  nlohmann::ordered_json rows_by_state() const;
  nlohmann::ordered_json cost() const;  // in tokens
  // True when there are rows and none of them has a text. failures() gives the reasons.
  bool all_failed() const;
  // The number of rows in state bad_input or engine_error, and their most common reason; null if
  // there are no such rows.
  nlohmann::ordered_json failures() const;

 private:
  // Verdicts on answers, for rows that have a reference answer.
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
  void add_pass_at_k(const nlohmann::ordered_json& row);
  nlohmann::ordered_json pass_at_k() const;

  int64_t rows_ = 0;
  std::map<std::string, int64_t> states_;
  // Rows that failed for one reason. Reasons that differ only in numbers count as one.
  struct Failure {
    std::string example;
    int64_t rows = 0;
  };

  std::map<std::string, Failure> failures_;
  struct Mean {
    double sum = 0;
    int64_t rows = 0;
  };

  std::map<int64_t, Mean> pass_at_k_;  // by k
  Tally rows_verified_;
  int64_t unanswered_ = 0;  // rows that have a reference but no text to compare with it
  Tally samples_;           // the versions that were kept
  Tally first_versions_;    // the first version of each sample
  int64_t rows_with_any_yes_ = 0;
  int64_t judged_ = 0;
  int64_t unread_judgements_ = 0;
  int64_t cut_judgements_ = 0;  // judgements without a score because the judge's text was cut
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
