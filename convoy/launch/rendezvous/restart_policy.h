// SPDX-License-Identifier: Apache-2.0
//
// Decides whether a job whose attempt failed starts another one. Pure arithmetic, no clock and no
// I/O: the coordinator of many nodes and the supervisor of one both use it. Failures and resizes
// are counted apart, and only failures use up restarts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace convoy::rendezvous {

struct RestartLimits {
  int max_restarts = 0;
  int max_without_progress = 3;  // failures in a row at the same progress that end in 16
  // Exit codes that end the job however many restarts are left, since a restart cannot help. For
  // our own workers 2, 10, 11, 16 and 75; empty for a foreign program, whose codes have no fixed
  // meaning.
  std::vector<int> final_codes = {};
};

// The final codes of convoy-worker (reliability.md section 2).
std::vector<int> final_codes_of_worker();

struct RestartDecision {
  enum class Kind { Restart, GiveUp };
  Kind kind = Kind::GiveUp;
  int exit_code = 0;      // GiveUp: code of the job; Restart: code of the failure
  std::string reason;     // one clause for people: "restart 1 of 3", "3 failures without progress"
  int restarts_left = 0;  // restarts left after this decision

  bool restart() const { return kind == Kind::Restart; }
};

class RestartPolicy {
 public:
  explicit RestartPolicy(RestartLimits limits);

  // An attempt failed with `exit_code` (not 0). `progress` is the highest step that any rank
  // reached, counted from the start of the job and not of the attempt; absent when the program
  // reports none, and then only max_restarts counts.
  RestartDecision record_failure(int exit_code, std::optional<int64_t> progress);

  // A node was lost, and the remaining nodes are enough (elastic). The resize costs no restart, but
  // counts as a failure without progress, so that a flapping node ends the job at last.
  RestartDecision record_lost_node(std::optional<int64_t> progress);

  // A node came or went in good order: a new attempt that costs no restart.
  void record_resize(std::optional<int64_t> progress);

  int failures() const { return failures_; }
  int resizes() const { return resizes_; }
  int restarts() const { return restarts_; }
  int attempt() const {
    return restarts_ + resizes_;
  }  // number of the attempt that runs or is next

 private:
  void note_progress(std::optional<int64_t> progress);
  bool stuck() const { return without_progress_ >= limits_.max_without_progress; }
  RestartDecision no_progress() const;

  RestartLimits limits_;
  int64_t best_progress_ = 0;
  int without_progress_ = 0;
  int failures_ = 0;
  int resizes_ = 0;
  int restarts_ = 0;
};

}  // namespace convoy::rendezvous
