// SPDX-License-Identifier: Apache-2.0
//
// The number of requests that each of several servers gets at once, learnt from the servers'
// answers. The number of a server doubles per round of answers until the first trouble, then grows
// by one per round, and is halved by each round of trouble (Chiu and Jain's additive increase and
// multiplicative decrease, with the slow start of RFC 5681). A server with trouble gets no requests
// for a while, longer each time. After more trouble the server is set aside: only one request at a
// time tries it again. Plain data; the caller passes the time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace convoy::remote {

using Clock = std::chrono::steady_clock;

// Busy: the server asked for fewer requests, or was too slow. Down: the server cannot be reached.
// Faulty: the server answered with neither a text nor an error of the request.
enum class Trouble { Busy, Down, Faulty };

struct ServerRequest {
  size_t server = 0;
  Clock::time_point sent = {};
};

class ServerLoad {
 public:
  ServerLoad(size_t servers, uint64_t jitter_seed);

  // The least busy server that may have a request now. The request counts as sent.
  std::optional<ServerRequest> choose(Clock::time_point now);
  // Call succeed() when a request ended without trouble, withdraw() when it ended without an
  // answer.
  void succeed(const ServerRequest& request);
  void withdraw(const ServerRequest& request);
  // `rest`: the server's Retry-After, if the answer had one. Returns true if this trouble set the
  // server aside.
  bool suffer(const ServerRequest& request, Trouble trouble, Clock::time_point now,
              std::optional<std::chrono::milliseconds> rest = {});

  int64_t in_flight() const;
  int64_t limit(size_t server) const { return static_cast<int64_t>(servers_[server].limit); }
  bool is_set_aside(size_t server) const { return servers_[server].is_set_aside; }
  // The earliest time at which choose() may use a resting server again.
  Clock::time_point next_time() const;

  // The time to wait before the next try. It grows with `tries` from a quarter of a second to half
  // a minute, and a random part of up to half of it is left out.
  Clock::duration wait_after(int tries);

 private:
  struct Server {
    int64_t in_flight = 0;
    double limit = 16;
    bool starts_slowly = true;
    bool is_set_aside = false;
    int rounds = 0;  // consecutive rounds of trouble
    // Last time at which the server had all requests that it may have.
    Clock::time_point last_full = {};
    // A request that was sent before this time belongs to a round of trouble that is over.
    Clock::time_point last_trouble = {};
    Clock::time_point rests_until = {};
  };

  static int64_t allowed(const Server& server);

  std::vector<Server> servers_;
  std::mt19937_64 jitter_;
};

}  // namespace convoy::remote
