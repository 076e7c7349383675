// SPDX-License-Identifier: Apache-2.0
//
// The URL of a PostgreSQL store without what must not be shown.
#pragma once

#include <string>
#include <vector>

namespace convoy::jobs {

// postgresql://user@host:port/database: neither password nor query.
std::string without_secrets(const std::string& url);

// `text`, such as an error of libpq, with the URL and its passwords (also percent-decoded) struck out.
std::string strike_secrets(std::string text, const std::string& url);

}  // namespace convoy::jobs
