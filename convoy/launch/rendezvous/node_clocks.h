// SPDX-License-Identifier: Apache-2.0
//
// The offsets of the clocks of a job's nodes from this host's: decides when to ask each node for
// its time, and evaluates its answers. Each node with a wrong clock is reported once. For the
// coordinator's thread; questions and answers are sent over its connections.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/launch/rendezvous/clock_skew.h"

namespace convoy::rendezvous {

class NodeClocks {
 public:
  using Clock = std::chrono::steady_clock;

  // True when this node is to be asked for its time now: a few times in a row, since the shortest
  // trip is the most exact, then once a minute, since clocks are set while a job runs. `wall_ns` is
  // this host's time in nanoseconds.
  bool asks(uint64_t node, Clock::time_point now, int64_t wall_ns);

  // Takes an answer; `name` is the node's name in messages. Returns a warning when there is a new
  // one.
  std::optional<std::string> answered(uint64_t node, const std::string& name, int64_t peer_ns,
                                      int64_t wall_ns);
  void forget(uint64_t node);

 private:
  struct Asked {
    std::optional<int64_t> sent_ns;    // when the unanswered question was sent
    std::vector<ClockSample> samples;  // the latest
    Clock::time_point next = {};
    int num_asked = 0;
    bool told = false;
  };

  std::map<uint64_t, Asked> nodes_;
};

}  // namespace convoy::rendezvous
