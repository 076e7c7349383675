// SPDX-License-Identifier: Apache-2.0
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"
#include "convoy/launch/place/preflight.h"
#include "convoy/machine/processes/port_holder.h"

namespace convoy::launch {
namespace {

// Returns 0 when the address can be bound and listened on, else errno.
int try_address(const addrinfo& address) {
  const Descriptor probe(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe.open()) return errno;
  const int on = 1;
  // Real listeners set this too: a port whose last connections linger counts as free.
  ::setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6)
    ::setsockopt(probe.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  const bool free = ::bind(probe.get(), address.ai_addr, address.ai_addrlen) == 0 &&
                    ::listen(probe.get(), 1) == 0;
  return free ? 0 : errno;
}

// Returns 0 when the port can be listened on, else errno, or -1 when `address` is neither an
// address nor a name. An empty address means every interface, IPv4 and IPv6.
int try_port(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const char* const name = address.empty() ? nullptr : address.c_str();
  if (::getaddrinfo(name, std::to_string(port).c_str(), &hints, &found) != 0) return -1;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  if (!address.empty()) return try_address(*found);
  int failure = 0;
  for (const addrinfo* next = found; next != nullptr && failure == 0; next = next->ai_next) {
    failure = try_address(*next);
    // A host without IPv6 has no IPv6 port to check.
    if (failure == EAFNOSUPPORT || failure == EADDRNOTAVAIL) failure = 0;
  }
  return failure;
}

std::string place_of(const std::string& address, int port) {
  return address.empty() ? fmt::format("port {}", port) : fmt::format("{}:{}", address, port);
}

}  // namespace

Finding foreign_address(const std::string& address, int port) {
  return {Severity::Warning, "port",
          fmt::format("{} is not an address of this host", place_of(address, port)),
          "node rank 0 must hold the address of --rdzv-endpoint or --master-addr, unless a service "
          "or a router forwards it here"};
}

Finding port_finding(const std::string& address, int port, const std::filesystem::path& proc) {
  const std::string place = place_of(address, port);
  int failure = try_port(address, port);
  const bool foreign = failure == EADDRNOTAVAIL || failure == -1;
  if (foreign) failure = try_port("", port);
  if (failure == EADDRINUSE) {
    const std::string holder = processes::port_holder(port, proc);
    return {Severity::Error, "port",
            fmt::format("{} is taken{}", place,
                        holder.empty() ? " by another user's process" : " by " + holder),
            "give another port in --rdzv-endpoint or --master-port, or end that process"};
  }
  if (failure != 0)
    return {Severity::Error, "port",
            fmt::format("{} cannot be bound: {}", place, std::strerror(failure)),
            failure == EACCES ? "choose a port from 1024 on" : "choose another address or port"};
  if (foreign) return foreign_address(address, port);
  return {Severity::Ok, "port", place + " is free", ""};
}

}  // namespace convoy::launch
