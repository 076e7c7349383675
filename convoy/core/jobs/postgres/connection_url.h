// SPDX-License-Identifier: Apache-2.0
//
// The name of a PostgreSQL store, a URL or a keyword string of libpq ("host=db dbname=jobs"), and
// that name without its secrets.
#pragma once

#include <string>
#include <vector>

namespace convoy::jobs {

// True for a URL, or for words KEYWORD=VALUE of which one is a host, user, password or database.
// Anything else is a file; write "./host=db" or "sqlite:host=db" for a file called "host=db".
bool names_postgres(const std::string& store);

// postgresql://user@host:port/database: without password and query, for both ways to name the
// store.
std::string without_secrets(const std::string& url);

// Returns `text`, such as an error of libpq, with the URL and its passwords (also percent-decoded)
// replaced.
std::string strike_secrets(std::string text, const std::string& url);

}  // namespace convoy::jobs
