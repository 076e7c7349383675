// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/loopback.h"

#include <arpa/inet.h>

namespace convoy {

bool is_loopback_address(const std::string& numeric_address) {
  in_addr four{};
  if (::inet_pton(AF_INET, numeric_address.c_str(), &four) == 1)
    return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
  in6_addr six{};
  return ::inet_pton(AF_INET6, numeric_address.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

bool is_loopback_host(const std::string& host) {
  return host == "localhost" || is_loopback_address(host);
}

}  // namespace convoy
