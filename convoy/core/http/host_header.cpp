// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/host_header.h"

#include <arpa/inet.h>

#include <array>

#include "convoy/core/base/lower_case.h"

namespace convoy::http {

HostAndPort read_host(std::string_view header) {
  const size_t host_end = header.starts_with('[') ? header.find(']') : 0;
  if (host_end == std::string_view::npos) return {};
  const size_t colon = header.find(':', host_end);
  HostAndPort read{.host = std::string(header.substr(0, colon)), .port = {}};
  if (colon != std::string_view::npos) read.port = header.substr(colon + 1);
  return read;
}

bool belongs_to_no_site(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (host.size() > 2 && host.starts_with('[') && host.ends_with(']'))
    return ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), bytes.data()) == 1;
  // A name with a point at its end is absolute, and means the same host.
  const std::string name = lower_case(host.ends_with('.') ? host.substr(0, host.size() - 1) : host);
  return name == "localhost" || ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1;
}

std::string in_brackets(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace convoy::http
