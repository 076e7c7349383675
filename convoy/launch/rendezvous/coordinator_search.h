// SPDX-License-Identifier: Apache-2.0
//
// Connects to the coordinator repeatedly until it answers. Reports the cause of failures, and stops
// at a time limit. One thread, never blocks except while a name resolves.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/launch/rendezvous/client_connection.h"
#include "convoy/launch/rendezvous/node_link.h"

namespace convoy::rendezvous {

class CoordinatorSearch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Keeps no references. `options` are the options of the NodeLink.
  CoordinatorSearch(NodeLinkOptions options, JobToken token, TimePoint now);

  // Continues the search as far as it can. Returns a proven connection, once.
  std::optional<Channel> advance(TimePoint now);
  // Set when the search has failed: Refused with exit code 2 or 13, or CoordinatorLost.
  const std::optional<Notice>& outcome() const { return outcome_; }

  // Call it when the coordinator cannot take this node yet: the search tries again for a while.
  void retry_later(const Notice& refusal, TimePoint now);

  int descriptor() const;  // -1 = nothing to poll
  short events() const;
  TimePoint wake_at() const;

 private:
  using Problem = ClientConnection::Problem;

  void start_try(TimePoint now);
  bool addresses_known(TimePoint now);
  void note_failure(Problem problem, const std::string& words, TimePoint now);
  void pause(TimePoint now);
  void give_up(Notice::Kind kind, ExitCode code, const std::string& words);
  std::string token_words(Problem problem) const;
  std::string place() const { return options_.coordinator.text(); }

  NodeLinkOptions options_;
  JobToken token_;
  TimePoint started_;
  TimePoint next_try_;
  TimePoint notice_at_;
  std::chrono::milliseconds pause_;
  std::vector<SocketAddress> addresses_;  // not tried yet
  std::optional<HostLookup> lookup_;
  TimePoint lookup_since_{};
  std::optional<ClientConnection> try_;
  // Start of a problem that waiting rarely solves.
  std::optional<TimePoint> hopeless_since_;
  Problem last_problem_ = Problem::None;
  std::optional<Notice> outcome_;
};

}  // namespace convoy::rendezvous
