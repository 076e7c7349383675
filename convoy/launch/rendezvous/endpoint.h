// SPDX-License-Identifier: Apache-2.0
//
// host:port pairs and the sockets behind them, IPv4 and IPv6. The address of this host as others
// see it is read from connected sockets, never from its own name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"

namespace convoy::rendezvous {

struct Endpoint {
  std::string host;  // a name or a numeric address, without brackets
  int port = 0;

  std::string text() const;  // "host:port", "[v6]:port"
  bool operator==(const Endpoint&) const = default;
};

// "host", "host:port", "[v6]:port", a bare IPv6 address. `what` names the setting in errors. Throws
// ConfigError.
Endpoint parse_endpoint(std::string_view text, int default_port, std::string_view what);

struct BoundListener {
  Descriptor socket;  // listening, non-blocking, close-on-exec
  Endpoint endpoint;  // with the real port if port 0 was requested
};

// Another program listens on the port.
class PortTakenError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

// Listens on `host`:`port`: an address or a name of this host, or "" for every interface in both
// families. Port 0 takes a free one. When `host` is not an address of this host (a service's
// address, a container's host, a name that does not resolve here or resolves to loopback only), it
// listens on every interface, since connections to `host` may reach this host, and endpoint.host is
// 127.0.0.1. Blocks while a name resolves. Throws PortTakenError, and ConfigError when the address
// cannot be listened on.
BoundListener listen_on(const std::string& host, int port);

// True when `host` is an address of this host, its name, or resolves to one of its addresses: then
// this host runs the rendezvous if no node rank is given. Blocks while a name resolves.
bool is_this_host(const std::string& host);

// This host's address on the interface that routes to `host`; empty when there is no route or the
// name does not resolve. Sends nothing. Blocks while a name resolves.
std::string address_towards(const std::string& host);

// The numeric address of this end or the other end of a connected socket; IPv4-mapped IPv6 as IPv4.
Endpoint local_endpoint(int socket);
Endpoint peer_endpoint(int socket);

}  // namespace convoy::rendezvous
