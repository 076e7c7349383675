// SPDX-License-Identifier: Apache-2.0
//
// What names a PostgreSQL store, a URL or a keyword string of libpq ("host=db dbname=jobs"),
// without what must not be shown.
#pragma once

#include <string>
#include <vector>

namespace convoy::jobs {

// A URL, or words KEYWORD=VALUE of which one is a place, user, password or database to connect to.
// Anything else is a file: one that is called "host=db" is "./host=db" or "sqlite:host=db".
bool names_postgres(const std::string& store);

// postgresql://user@host:port/database: neither password nor query, whichever way the store is
// named.
std::string without_secrets(const std::string& url);

// `text`, such as an error of libpq, with the URL and its passwords (also percent-decoded) struck
// out.
std::string strike_secrets(std::string text, const std::string& url);

}  // namespace convoy::jobs
