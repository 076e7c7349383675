// SPDX-License-Identifier: Apache-2.0
//
// Names to socket addresses.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/launch/rendezvous/endpoint.h"

namespace convoy::rendezvous {

// An IPv4 or IPv6 address with its port, as system calls take it.
class SocketAddress {
 public:
  explicit SocketAddress(const sockaddr* address);  // another family gives an empty endpoint()
  SocketAddress(in_addr address, int port);
  SocketAddress(in6_addr address, int port);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const;
  Endpoint endpoint() const;  // numeric; an IPv4-mapped IPv6 address as IPv4

 private:
  sockaddr_storage storage_{};
};

std::optional<SocketAddress> peer_address(int socket);  // absent when it is not connected

struct Resolved {
  std::vector<SocketAddress> addresses;
  std::string problem;  // the reason when there are no addresses
};

// A numeric address costs no look-up. Blocks as long as the resolver takes.
Resolved resolve_host(const std::string& host, int port);

// Calls resolve_host() on a thread of its own: a resolver may take many seconds and cannot be
// interrupted. The destructor does not wait for that thread, which ends by itself.
class HostLookup {
 public:
  HostLookup(const std::string& host, int port);
  int descriptor() const;                  // readable once there is a result
  std::optional<Resolved> result() const;  // absent until the look-up has ended

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may end later
};

}  // namespace convoy::rendezvous
