// SPDX-License-Identifier: Apache-2.0
//
// A new connection to the coordinator. It connects, then proves the job token, without blocking.
// One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "convoy/launch/rendezvous/channel.h"
#include "convoy/launch/rendezvous/handshake.h"
#include "convoy/launch/rendezvous/job_token.h"
#include "convoy/launch/rendezvous/resolve_host.h"

namespace convoy::rendezvous {

class ClientConnection {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class State { Connecting, Proving, Proven, Failed };
  enum class Problem {
    None,
    Unreachable,  // no listener, no route, no answer to the first packet
    Stranger,     // a listener that does not use the coordinator's protocol
    WrongToken,   // the server refused this token
    WrongServer,  // the server does not hold this token itself
  };

  ClientConnection(const SocketAddress& address, JobToken token, TimePoint deadline);

  int descriptor() const;  // to poll for events()
  short events() const;
  // Goes on as far as it can; call it when the descriptor is ready or the deadline has passed.
  State advance(TimePoint now);
  TimePoint deadline() const { return deadline_; }

  Problem problem() const { return problem_; }
  const std::string& words() const { return words_; }  // the problem in words: "Connection refused"
  Channel take_channel();                              // once, after Proven

 private:
  void check_connected();
  void go_on_proving();
  State fail(Problem problem, const std::string& words);

  std::optional<Channel> channel_;
  Descriptor socket_;
  JobToken token_;
  TimePoint deadline_;
  ClientHandshake handshake_;
  std::string bytes_;
  State state_ = State::Connecting;
  Problem problem_ = Problem::None;
  std::string words_;
};

}  // namespace convoy::rendezvous
