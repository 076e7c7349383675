// SPDX-License-Identifier: Apache-2.0
//
// Builds, resolves and compares addresses.
#pragma once

#include <string>
#include <string_view>

namespace convoy::hub {

// Escapes a text for an address: "a b/c" -> "a%20b/c". The characters in `keep` are not escaped;
// with "" the slash is escaped too.
std::string escaped_for_url(std::string_view text, std::string_view keep = "/");

// Resolves `location` of a redirect against `url`. Throws DataError when it is no http address, or
// leads from https to http.
std::string redirected_url(const std::string& url, const std::string& location);

// The address without its query and its user: they may hold a signature or a password.
std::string shown_url(std::string_view url);

// True when scheme, host and port are equal.
bool same_origin(std::string_view left, std::string_view right);

}  // namespace convoy::hub
