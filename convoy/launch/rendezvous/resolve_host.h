// SPDX-License-Identifier: Apache-2.0
//
// Names to socket addresses.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "convoy/launch/rendezvous/endpoint.h"

namespace convoy::launch {

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

struct Resolved {
  std::vector<SocketAddress> addresses;
  std::string problem;  // why there are none
};

// A numeric address costs no look-up. Blocks as long as the resolver takes.
Resolved resolve_host(const std::string& host, int port);

}  // namespace convoy::launch
