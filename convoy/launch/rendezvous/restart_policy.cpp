// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/restart_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::rendezvous {

std::vector<int> final_codes_of_worker() {
  return {static_cast<int>(ExitCode::Usage), static_cast<int>(ExitCode::BadInput),
          static_cast<int>(ExitCode::NoCheckpoint), static_cast<int>(ExitCode::NoProgress),
          static_cast<int>(ExitCode::Stopped)};
}

RestartPolicy::RestartPolicy(RestartLimits limits) : limits_(std::move(limits)) {}

void RestartPolicy::note_progress(std::optional<int64_t> progress) {
  if (!progress) return;
  without_progress_ = *progress > best_progress_ ? 0 : without_progress_ + 1;
  best_progress_ = std::max(best_progress_, *progress);
}

RestartDecision RestartPolicy::no_progress() const {
  return {.kind = RestartDecision::Kind::GiveUp,
          .exit_code = static_cast<int>(ExitCode::NoProgress),
          .reason = fmt::format("{} failures in a row without progress, at step {}",
                                without_progress_, best_progress_),
          .restarts_left = std::max(0, limits_.max_restarts - restarts_)};
}

RestartDecision RestartPolicy::record_failure(int exit_code, std::optional<int64_t> progress) {
  CONVOY_INVARIANT(exit_code != 0, "a failure with exit code 0");
  ++failures_;
  note_progress(progress);
  RestartDecision decision;
  decision.exit_code = exit_code;
  decision.restarts_left = std::max(0, limits_.max_restarts - restarts_);
  const auto& final_codes = limits_.final_codes;
  if (std::find(final_codes.begin(), final_codes.end(), exit_code) != final_codes.end()) {
    decision.reason = fmt::format("a restart does not cure exit code {}", exit_code);
  } else if (limits_.max_restarts > 0 && stuck()) {
    return no_progress();
  } else if (decision.restarts_left == 0) {
    decision.reason = limits_.max_restarts == 0 ? "no restarts are allowed"
                      : limits_.max_restarts == 1
                          ? "the one restart is used up"
                          : fmt::format("all {} restarts are used up", limits_.max_restarts);
  } else {
    ++restarts_;
    --decision.restarts_left;
    decision.kind = RestartDecision::Kind::Restart;
    decision.reason = fmt::format("restart {} of {}", restarts_, limits_.max_restarts);
  }
  return decision;
}

RestartDecision RestartPolicy::record_lost_node(std::optional<int64_t> progress) {
  note_progress(progress);
  if (stuck()) return no_progress();
  ++resizes_;
  return {.kind = RestartDecision::Kind::Restart,
          .exit_code = static_cast<int>(ExitCode::PeerLost),
          .reason = "going on with the nodes that are left",
          .restarts_left = std::max(0, limits_.max_restarts - restarts_)};
}

void RestartPolicy::record_resize(std::optional<int64_t> progress) {
  ++resizes_;
  if (!progress) return;
  if (*progress > best_progress_) without_progress_ = 0;
  best_progress_ = std::max(best_progress_, *progress);
}

}  // namespace convoy::rendezvous
