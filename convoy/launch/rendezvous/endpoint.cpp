// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/endpoint.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/loopback.h"
#include "convoy/core/base/text_as.h"
#include "convoy/launch/rendezvous/resolve_host.h"

namespace convoy::rendezvous {
namespace {

constexpr int kBacklog = 4096;

std::vector<std::string> addresses_of_this_host() {
  std::vector<std::string> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const std::string text = SocketAddress(entry->ifa_addr).endpoint().host;
    if (!text.empty()) addresses.push_back(text);
  }
  ::freeifaddrs(first);
  return addresses;
}

std::string own_host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

bool same_name(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](char a, char b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return lower(a) == lower(b);
  });
}

bool is_own_name(std::string_view host) {
  const std::string own = own_host_name();
  const std::string_view short_own = std::string_view(own).substr(0, own.find('.'));
  return same_name(host, own) || same_name(host, short_own) ||
         same_name(host.substr(0, host.find('.')), own);
}

// Returns an empty socket and sets errno on failure.
Descriptor try_listen(const SocketAddress& address, bool both_families) {
  Descriptor socket(
      ::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) return {};
  const int on = 1;
  const int only_v6 = both_families ? 0 : 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.get()->sa_family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6));
  if (::bind(socket.get(), address.get(), address.size()) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    const int error = errno;
    socket.reset();
    errno = error;
  }
  return socket;
}

[[noreturn]] void refuse_to_listen(const Endpoint& endpoint, int error) {
  const std::string found =
      fmt::format("the rendezvous cannot listen on {}: {}", endpoint.text(), std::strerror(error));
  if (error == EADDRINUSE)
    throw PortTakenError(found,
                         {.hint = fmt::format("another program or job holds port {}: choose "
                                              "another one in --rdzv-endpoint, on every node",
                                              endpoint.port)});
  throw ConfigError(found, {.hint = "--rdzv-endpoint names the node that hosts the rendezvous"});
}

BoundListener listen_everywhere(int port) {
  Descriptor socket = try_listen(SocketAddress(in6addr_any, port), /*both_families=*/true);
  // A kernel without IPv6 has no such socket, so try IPv4. A port that is taken is taken in both.
  if (!socket.open() && errno != EADDRINUSE)
    socket = try_listen(SocketAddress(in_addr{INADDR_ANY}, port), /*both_families=*/false);
  if (!socket.open()) refuse_to_listen({"every interface", port}, errno);
  const int bound_port = local_endpoint(socket.get()).port;
  return {std::move(socket), {"127.0.0.1", bound_port}};
}

}  // namespace

std::string Endpoint::text() const {
  return host.find(':') != std::string::npos ? fmt::format("[{}]:{}", host, port)
                                             : fmt::format("{}:{}", host, port);
}

Endpoint parse_endpoint(std::string_view text, int default_port, std::string_view what) {
  const auto fail = [&] {
    return ConfigError(fmt::format("{} must be HOST:PORT or [IPV6]:PORT, found `{}`", what, text),
                       {.hint = "such as node0:29500"});
  };
  Endpoint endpoint{std::string(text), default_port};
  std::string_view port;
  if (!text.empty() && text.front() == '[') {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) throw fail();
    endpoint.host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') throw fail();
    if (!rest.empty()) port = rest.substr(1);
    if (!rest.empty() && port.empty()) throw fail();
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    const size_t colon = text.find(':');
    endpoint.host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) throw fail();
  }
  if (!port.empty()) {
    const auto number = text_as<int>(port);
    if (!number) throw fail();
    endpoint.port = *number;
  }
  if (endpoint.host.empty() || endpoint.port < 0 || endpoint.port > 65535) throw fail();
  return endpoint;
}

BoundListener listen_on(const std::string& host, int port) {
  if (host.empty()) return listen_everywhere(port);
  const std::vector<SocketAddress> found = resolve_host(host, port).addresses;
  const bool loopback_meant = is_loopback_address(host) || same_name(host, "localhost");
  int error = 0;
  for (const SocketAddress& address : found) {
    // Debian gives a host's own name a loopback address, which no other host can reach.
    if (!loopback_meant && is_loopback_address(address.endpoint().host)) continue;
    Descriptor socket = try_listen(address, /*both_families=*/false);
    if (socket.open()) {
      const Endpoint bound = local_endpoint(socket.get());
      return {std::move(socket), bound};
    }
    error = errno;
    if (error != EADDRNOTAVAIL) break;
  }
  if (error != 0 && error != EADDRNOTAVAIL) refuse_to_listen({host, port}, error);
  if (loopback_meant) refuse_to_listen({host, port}, error == 0 ? EADDRNOTAVAIL : error);
  // `host` is a name that only others resolve, a service's address or a container's host: its
  // connections reach this host anyway.
  return listen_everywhere(port);
}

bool is_this_host(const std::string& host) {
  if (is_loopback_address(host) || same_name(host, "localhost") || is_own_name(host)) return true;
  const std::vector<std::string> own = addresses_of_this_host();
  const std::vector<SocketAddress> found = resolve_host(host, 0).addresses;
  return std::any_of(found.begin(), found.end(), [&](const SocketAddress& address) {
    const std::string text = address.endpoint().host;
    return is_loopback_address(text) || std::find(own.begin(), own.end(), text) != own.end();
  });
}

std::string address_towards(const std::string& host) {
  constexpr int kAnyPort = 9;  // connecting a datagram socket only looks up the route
  for (const SocketAddress& address : resolve_host(host, kAnyPort).addresses) {
    const Descriptor socket(::socket(address.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket.open() && ::connect(socket.get(), address.get(), address.size()) == 0)
      return local_endpoint(socket.get()).host;
  }
  return {};
}

Endpoint local_endpoint(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  return ::getsockname(socket, generic, &length) == 0 ? SocketAddress(generic).endpoint()
                                                      : Endpoint{};
}

Endpoint peer_endpoint(int socket) {
  const std::optional<SocketAddress> peer = peer_address(socket);
  return peer ? peer->endpoint() : Endpoint{};
}

}  // namespace convoy::rendezvous
