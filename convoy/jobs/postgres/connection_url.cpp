// SPDX-License-Identifier: Apache-2.0
#include "convoy/jobs/postgres/connection_url.h"

#include <cstdlib>

namespace convoy::jobs {
namespace {

struct Pieces {
  std::string scheme;  // with "://"
  std::string user;
  std::string password;
  std::string place;  // host:port/database
  std::string query;
};

Pieces split(const std::string& url) {
  Pieces pieces;
  const size_t scheme_end = url.find("://");
  const size_t begin = scheme_end == std::string::npos ? 0 : scheme_end + 3;
  pieces.scheme = url.substr(0, begin);
  std::string rest = url.substr(begin);
  // An unescaped '/', '?' or '@' in a password makes the URL wrong, but must not make it public: take the last '@'.
  const size_t at = rest.rfind('@');
  if (at != std::string::npos) {
    const std::string credentials = rest.substr(0, at);
    const size_t colon = credentials.find(':');
    pieces.user = credentials.substr(0, colon);
    if (colon != std::string::npos) pieces.password = credentials.substr(colon + 1);
    rest = rest.substr(at + 1);
  }
  const size_t question = rest.find('?');
  pieces.place = rest.substr(0, question);
  if (question != std::string::npos) pieces.query = rest.substr(question + 1);
  return pieces;
}

std::string percent_decoded(const std::string& text) {
  std::string decoded;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 2 < text.size()) {
      decoded.push_back(
          static_cast<char>(std::strtol(text.substr(at + 1, 2).c_str(), nullptr, 16)));
      at += 2;
    } else {
      decoded.push_back(text[at]);
    }
  }
  return decoded;
}

void strike(std::string& text, const std::string& secret, const std::string& instead) {
  if (secret.empty()) return;
  for (size_t at = text.find(secret); at != std::string::npos;
       at = text.find(secret, at + instead.size()))
    text.replace(at, secret.size(), instead);
}

}  // namespace

std::string without_secrets(const std::string& url) {
  const Pieces pieces = split(url);
  return pieces.scheme + pieces.user + (pieces.user.empty() ? "" : "@") + pieces.place;
}

std::string strike_secrets(std::string text, const std::string& url) {
  const Pieces pieces = split(url);
  strike(text, url, without_secrets(url));
  std::vector<std::string> secrets = {pieces.password};
  for (const char* const key : {"password=", "sslpassword="}) {
    const size_t at = pieces.query.find(key);
    if (at == std::string::npos) continue;
    const size_t begin = pieces.query.find('=', at) + 1;
    secrets.push_back(pieces.query.substr(begin, pieces.query.find('&', begin) - begin));
  }
  for (const std::string& secret : secrets) {
    strike(text, secret, "***");
    strike(text, percent_decoded(secret), "***");
  }
  return text;
}

}  // namespace convoy::jobs
