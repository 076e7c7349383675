// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/postgres/connection_url.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace convoy::jobs {
namespace {

struct Word {
  std::string key;
  std::string value;
  std::string written;  // the value with its quotes
};
using Words = std::vector<Word>;

bool is_url(const std::string& text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

size_t skip_blanks(const std::string& text, size_t at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
  return at;
}

// A value in libpq's syntax: up to a blank, or in single quotes; a backslash escapes the next
// letter.
std::string read_value(const std::string& text, size_t& at) {
  std::string value;
  const bool quoted = at < text.size() && text[at] == '\'';
  if (quoted) ++at;
  for (; at < text.size(); ++at) {
    const bool blank = std::isspace(static_cast<unsigned char>(text[at])) != 0;
    if (quoted ? text[at] == '\'' : blank) break;
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    value += text[at];
  }
  if (quoted && at < text.size()) ++at;
  return value;
}

// Words of a keyword string. Continues after a syntax error: a password behind the error is still a
// password.
Words keyword_words(const std::string& text) {
  Words words;
  for (size_t at = skip_blanks(text, 0); at < text.size(); at = skip_blanks(text, at)) {
    const size_t begin = at;
    while (at < text.size() &&
           (std::islower(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_'))
      ++at;
    std::string key = text.substr(begin, at - begin);
    const size_t key_end = at;
    at = skip_blanks(text, at);
    if (at < text.size() && text[at] == '=' && !key.empty()) {
      const size_t value_begin = at = skip_blanks(text, at + 1);
      std::string value = read_value(text, at);
      words.push_back(
          {std::move(key), std::move(value), text.substr(value_begin, at - value_begin)});
      continue;
    }
    at = key_end;
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) == 0) ++at;
    // The rest of an unquoted password that contains blanks.
    const std::string rest = text.substr(begin, at - begin);
    if (!words.empty() && words.back().key.ends_with("password"))
      words.push_back({words.back().key, rest, rest});
  }
  return words;
}

std::string word_of(const Words& words, std::string_view key) {
  // libpq uses the last word with a key.
  const auto found =
      std::find_if(words.rbegin(), words.rend(), [&](const Word& word) { return word.key == key; });
  return found == words.rend() ? "" : found->value;
}

struct Pieces {
  std::string scheme;  // with "://"
  std::string user;
  std::string password;
  std::string place;  // host:port/database
  std::string query;
};

Pieces pieces_of_words(const Words& words) {
  Pieces pieces{.scheme = "postgresql://",
                .user = word_of(words, "user"),
                .password = word_of(words, "password"),
                .place = word_of(words, "host"),
                .query = {}};
  if (pieces.place.empty()) pieces.place = word_of(words, "hostaddr");
  if (const std::string port = word_of(words, "port"); !port.empty()) pieces.place += ":" + port;
  if (const std::string name = word_of(words, "dbname"); !name.empty()) pieces.place += "/" + name;
  return pieces;
}

Pieces split(const std::string& url) {
  if (url.find("://") == std::string::npos) return pieces_of_words(keyword_words(url));
  Pieces pieces;
  const size_t scheme_end = url.find("://");
  const size_t begin = scheme_end == std::string::npos ? 0 : scheme_end + 3;
  pieces.scheme = url.substr(0, begin);
  std::string rest = url.substr(begin);
  // An unescaped '/', '?' or '@' in a password makes the URL invalid, but the password must still
  // not be shown: use the last '@'.
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

bool names_postgres(const std::string& store) {
  if (is_url(store)) return true;
  constexpr std::array<std::string_view, 7> kPlaces = {"host", "hostaddr", "port",   "dbname",
                                                       "user", "password", "service"};
  const Words words = keyword_words(store);
  return std::any_of(words.begin(), words.end(), [&](const Word& word) {
    return std::find(kPlaces.begin(), kPlaces.end(), word.key) != kPlaces.end();
  });
}

std::string without_secrets(const std::string& url) {
  const Pieces pieces = split(url);
  return pieces.scheme + pieces.user + (pieces.user.empty() ? "" : "@") + pieces.place;
}

std::string strike_secrets(std::string text, const std::string& url) {
  const Pieces pieces = split(url);
  strike(text, url, without_secrets(url));
  std::vector<std::string> secrets = {pieces.password};
  if (url.find("://") == std::string::npos)
    for (const Word& word : keyword_words(url))
      if (word.key.ends_with("password")) secrets.insert(secrets.end(), {word.written, word.value});
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
