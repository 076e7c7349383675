// SPDX-License-Identifier: Apache-2.0
//
// The host that a request names.
#pragma once

#include <string>
#include <string_view>

namespace convoy::http {

// "[::1]:6007" is "[::1]" and "6007".
struct HostAndPort {
  std::string host;
  std::string port;
};
HostAndPort read_host(std::string_view header);

// True for localhost and for an address (in brackets if it has colons). Any other name that leads
// to this machine may have been chosen by another site's page (DNS rebinding).
bool belongs_to_no_site(const std::string& host);

// The host in the form that an URL needs.
std::string in_brackets(const std::string& host);

}  // namespace convoy::http
