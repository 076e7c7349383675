// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/server_load.h"

#include <algorithm>

namespace convoy::remote {
namespace {

constexpr std::chrono::milliseconds kFirstWait{250};
constexpr int kMostDoublings = 7;  // longest pause: 32 s
constexpr int kRoundsUntilAside = 3;

}  // namespace

ServerLoad::ServerLoad(size_t servers, uint64_t jitter_seed)
    : servers_(servers), jitter_(jitter_seed) {}

int64_t ServerLoad::allowed(const Server& server) {
  return server.is_set_aside ? 1 : static_cast<int64_t>(server.limit);
}

std::optional<ServerRequest> ServerLoad::choose(Clock::time_point now) {
  Server* least = nullptr;
  for (Server& server : servers_) {
    if (now < server.rests_until || server.in_flight >= allowed(server)) continue;
    const bool is_better =
        least == nullptr || (least->is_set_aside && !server.is_set_aside) ||
        (least->is_set_aside == server.is_set_aside && server.in_flight < least->in_flight);
    if (is_better) least = &server;
  }
  // A server that was set aside is tried in addition to healthy servers; otherwise nothing would
  // show its recovery.
  for (Server& server : servers_)
    if (server.is_set_aside && server.in_flight == 0 && now >= server.rests_until) least = &server;
  if (least == nullptr) return std::nullopt;
  if (++least->in_flight >= allowed(*least)) least->last_full = now;
  return ServerRequest{static_cast<size_t>(least - servers_.data()), now};
}

void ServerLoad::succeed(const ServerRequest& request) {
  Server& server = servers_[request.server];
  // A limit that was not reached since the request was sent shows nothing about the server.
  if (server.last_full >= request.sent) server.limit += server.starts_slowly ? 1 : 1 / server.limit;
  server.rounds = 0;
  server.is_set_aside = false;
  --server.in_flight;
}

void ServerLoad::withdraw(const ServerRequest& request) { --servers_[request.server].in_flight; }

bool ServerLoad::suffer(const ServerRequest& request, Trouble trouble, Clock::time_point now,
                        std::optional<std::chrono::milliseconds> rest) {
  Server& server = servers_[request.server];
  --server.in_flight;
  if (rest) server.rests_until = std::max(server.rests_until, now + *rest);
  if (request.sent <= server.last_trouble) return false;
  server.last_trouble = now;
  ++server.rounds;
  if (trouble == Trouble::Busy) {
    server.limit = std::max(1.0, server.limit / 2);
    server.starts_slowly = false;
  }
  server.rests_until = std::max(server.rests_until, now + wait_after(server.rounds));
  const bool was_aside = server.is_set_aside;
  server.is_set_aside |= trouble == Trouble::Down || server.rounds >= kRoundsUntilAside;
  return server.is_set_aside && !was_aside;
}

int64_t ServerLoad::in_flight() const {
  int64_t all = 0;
  for (const Server& server : servers_) all += server.in_flight;
  return all;
}

Clock::time_point ServerLoad::next_time() const {
  Clock::time_point next = Clock::time_point::max();
  for (const Server& server : servers_)
    if (server.in_flight < allowed(server)) next = std::min(next, server.rests_until);
  return next;
}

Clock::duration ServerLoad::wait_after(int tries) {
  const Clock::duration longest = kFirstWait * (1 << std::clamp(tries - 1, 0, kMostDoublings));
  return std::chrono::duration_cast<Clock::duration>(
      longest * std::uniform_real_distribution<double>(0.5, 1)(jitter_));
}

}  // namespace convoy::remote
