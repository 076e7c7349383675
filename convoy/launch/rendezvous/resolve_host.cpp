// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/resolve_host.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "convoy/core/base/quiet_thread.h"
#include "convoy/launch/rendezvous/wake_event.h"

namespace convoy::rendezvous {

SocketAddress::SocketAddress(const sockaddr* address) {
  if (address->sa_family == AF_INET) std::memcpy(&storage_, address, sizeof(sockaddr_in));
  if (address->sa_family == AF_INET6) std::memcpy(&storage_, address, sizeof(sockaddr_in6));
}

SocketAddress::SocketAddress(in_addr address, int port) {
  sockaddr_in full{};
  full.sin_family = AF_INET;
  full.sin_addr = address;
  full.sin_port = htons(static_cast<uint16_t>(port));
  std::memcpy(&storage_, &full, sizeof(full));
}

SocketAddress::SocketAddress(in6_addr address, int port) {
  sockaddr_in6 full{};
  full.sin6_family = AF_INET6;
  full.sin6_addr = address;
  full.sin6_port = htons(static_cast<uint16_t>(port));
  std::memcpy(&storage_, &full, sizeof(full));
}

socklen_t SocketAddress::size() const {
  return storage_.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

Endpoint SocketAddress::endpoint() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage_.ss_family == AF_INET) {
    sockaddr_in full{};
    std::memcpy(&full, &storage_, sizeof(full));
    ::inet_ntop(AF_INET, &full.sin_addr, text.data(), text.size());
    return {text.data(), ntohs(full.sin_port)};
  }
  if (storage_.ss_family != AF_INET6) return {};
  sockaddr_in6 full{};
  std::memcpy(&full, &storage_, sizeof(full));
  if (IN6_IS_ADDR_V4MAPPED(&full.sin6_addr)) {
    ::inet_ntop(AF_INET, &full.sin6_addr.s6_addr[12], text.data(), text.size());
    return {text.data(), ntohs(full.sin6_port)};
  }
  ::inet_ntop(AF_INET6, &full.sin6_addr, text.data(), text.size());
  std::string host = text.data();
  std::array<char, IF_NAMESIZE> interface {};
  if (IN6_IS_ADDR_LINKLOCAL(&full.sin6_addr) &&
      ::if_indextoname(full.sin6_scope_id, interface.data()) != nullptr)
    host += std::string("%") + interface.data();
  return {host, ntohs(full.sin6_port)};
}

std::optional<SocketAddress> peer_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::getpeername(socket, generic, &length) != 0) return std::nullopt;
  return SocketAddress(generic);
}

Resolved resolve_host(const std::string& host, int port) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const std::string service = std::to_string(port);
  int problem = ::getaddrinfo(host.c_str(), service.c_str(), &wanted, &first);
  if (problem == EAI_NONAME) {
    wanted.ai_flags = AI_NUMERICSERV;
    problem = ::getaddrinfo(host.c_str(), service.c_str(), &wanted, &first);
  }
  Resolved resolved;
  if (problem != 0) {
    resolved.problem = problem == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(problem);
    return resolved;
  }
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next)
    resolved.addresses.emplace_back(entry->ai_addr);
  ::freeaddrinfo(first);
  return resolved;
}

struct HostLookup::State {
  std::mutex mutex;
  std::optional<Resolved> result;
  WakeEvent done;
};

HostLookup::HostLookup(const std::string& host, int port) : state_(std::make_shared<State>()) {
  const auto body = [state = state_, host, port] {
    Resolved resolved = resolve_host(host, port);
    const std::lock_guard lock(state->mutex);
    state->result = std::move(resolved);
    state->done.set();
  };
  quiet_thread(body).detach();
}

int HostLookup::descriptor() const { return state_->done.descriptor(); }

std::optional<Resolved> HostLookup::result() const {
  const std::lock_guard lock(state_->mutex);
  return state_->result;
}

}  // namespace convoy::rendezvous
