// SPDX-License-Identifier: Apache-2.0
//
// Heartbeats over a second connection while the first one is silent. After a cut, the packets of
// the first one wait for TCP's retransmission, whose pauses double: longer than the cut itself
// lasted, and longer than the time limit for a silent node. A new connection gets through at once.
// One thread.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "convoy/launch/rendezvous/client_connection.h"

namespace convoy::rendezvous {

class BackupConnection {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  BackupConnection(const SocketAddress& coordinator, JobToken token, uint64_t session,
                   std::chrono::milliseconds heartbeat);

  // Opens the connection, proves the token, sends heartbeats and reads answers, as far as it can
  // now. A try to connect lasts two heartbeats.
  void advance(TimePoint now);
  void close();  // call it when the first connection works again

  std::optional<TimePoint> last_heard() const { return last_heard_; }
  // True when the coordinator answered that this node is no longer a member.
  bool is_unknown() const { return is_unknown_; }

  std::array<pollfd, 2> watched() const;

 private:
  void send_heartbeat(TimePoint now);

  SocketAddress coordinator_;
  JobToken token_;
  uint64_t session_;
  std::chrono::milliseconds heartbeat_;
  std::optional<ClientConnection> try_;
  std::optional<Channel> channel_;
  std::optional<TimePoint> last_heard_;
  TimePoint heard_on_channel_;
  TimePoint next_beat_;
  bool is_unknown_ = false;
};

}  // namespace convoy::rendezvous
