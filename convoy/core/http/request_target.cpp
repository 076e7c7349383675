// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/request_target.h"

#include <algorithm>

namespace convoy::http {
namespace {

int hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  const char low = static_cast<char>(letter | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

std::string decoded(std::string_view text, bool plus_is_blank) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool coded = text[at] == '%' && at + 2 < text.size() && hex_digit(text[at + 1]) >= 0 &&
                       hex_digit(text[at + 2]) >= 0;
    if (coded) {
      plain += static_cast<char>(hex_digit(text[at + 1]) * 16 + hex_digit(text[at + 2]));
      at += 2;
    } else {
      plain += plus_is_blank && text[at] == '+' ? ' ' : text[at];
    }
  }
  return plain;
}

}  // namespace

std::string RequestTarget::parameter(const std::string& name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? "" : found->second;
}

RequestTarget parse_target(std::string_view target) {
  const size_t question = std::min(target.find('?'), target.size());
  RequestTarget parsed{.path = decoded(target.substr(0, question), false)};
  std::string_view query = target.substr(std::min(question + 1, target.size()));
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    if (!pair.empty())
      parsed.parameters.emplace(decoded(pair.substr(0, equals), true), decoded(value, true));
  }
  return parsed;
}

}  // namespace convoy::http
