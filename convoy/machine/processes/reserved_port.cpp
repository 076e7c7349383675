// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/reserved_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <random>

#include "convoy/core/base/error.h"
#include "convoy/core/base/held_name.h"

namespace convoy::processes {
namespace {

constexpr int kLowest = 20'000;
constexpr int kHighest = 32'767;
constexpr int kTries = 2'000;
constexpr int kDefaultOfTorchrun = 29'500;

// The highest port below the range from which the kernel chooses ports. The range begins at 32768
// unless the administrator moved it.
int highest_quiet_port() {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  if (!(range >> first) || first <= kLowest) return kHighest;
  return std::min(kHighest, first - 1);
}

template <class Address>
bool can_bind(int family, const Address& address) {
  const Descriptor probe(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe.open()) return errno == EAFNOSUPPORT;  // a host without IPv6 has no IPv6 port
  if (family == AF_INET6) {
    const int only = 1;
    ::setsockopt(probe.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
  }
  return ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
         errno == EADDRNOTAVAIL;
}

}  // namespace

bool port_is_free(int number) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<uint16_t>(number));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<uint16_t>(number));
  return can_bind(AF_INET, v4) && can_bind(AF_INET6, v6);
}

ReservedPort::ReservedPort() : ReservedPort(kLowest, highest_quiet_port()) {}

ReservedPort::ReservedPort(int lowest, int highest) {
  std::random_device random;
  std::uniform_int_distribution<int> any(lowest, highest);
  for (int turn = 0; turn < kTries; ++turn) {
    const int number = any(random);
    if (number == kDefaultOfTorchrun) continue;
    Descriptor held = hold_name(fmt::format("convoy-port-{}", number));
    if (!held.open() || !port_is_free(number)) continue;
    number_ = number;
    claim_ = std::move(held);
    return;
  }
  throw IoError(fmt::format("no free port was found between {} and {}", lowest, highest),
                {.hint = "name one with --master-port"});
}

}  // namespace convoy::processes
