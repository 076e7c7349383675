// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "convoy/core/base/error.h"
#include "convoy/core/base/lower_case.h"

namespace convoy::hub {
namespace {

constexpr std::string_view kSchemeEnd = "://";

// The origin "https://host:port" in lower case, without a user; the port is explicit.
std::string origin_of(std::string_view url) {
  const size_t scheme = url.find(kSchemeEnd);
  if (scheme == std::string_view::npos) return {};
  const size_t begin = scheme + kSchemeEnd.size();
  std::string_view host = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  if (const size_t user = host.rfind('@'); user != std::string_view::npos)
    host.remove_prefix(user + 1);
  std::string origin = lower_case(fmt::format("{}://{}", url.substr(0, scheme), host));
  const bool has_port = host.find(':', host.rfind(']') + 1) != std::string_view::npos;
  if (!has_port) origin += origin.starts_with("https:") ? ":443" : ":80";
  return origin;
}

bool is_web_address(std::string_view url) {
  return url.starts_with("https://") || url.starts_with("http://");
}

}  // namespace

std::string escaped_for_url(std::string_view text, std::string_view keep) {
  std::string escaped;
  for (const unsigned char letter : text) {
    const bool plain = std::isalnum(letter) || letter == '-' || letter == '_' || letter == '.' ||
                       letter == '~' || keep.find(static_cast<char>(letter)) != keep.npos;
    if (plain)
      escaped += static_cast<char>(letter);
    else
      escaped += fmt::format("%{:02X}", letter);
  }
  return escaped;
}

std::string shown_url(std::string_view url) {
  std::string shown(url.substr(0, url.find_first_of("?#")));
  const size_t scheme = shown.find(kSchemeEnd);
  if (scheme == std::string::npos) return shown;
  const size_t begin = scheme + kSchemeEnd.size();
  const size_t user = shown.rfind('@', shown.find('/', begin));
  if (user != std::string::npos && user >= begin) shown.erase(begin, user + 1 - begin);
  return shown;
}

bool same_origin(std::string_view left, std::string_view right) {
  return !origin_of(left).empty() && origin_of(left) == origin_of(right);
}

std::string redirected_url(const std::string& url, const std::string& location) {
  std::string next = location;
  const size_t authority = url.find(kSchemeEnd) + kSchemeEnd.size();
  if (location.starts_with("//")) {
    next = url.substr(0, url.find(kSchemeEnd) + 1) + location;
  } else if (location.starts_with('/')) {
    next = url.substr(0, url.find_first_of("/?#", authority)) + location;
  } else if (location.find(kSchemeEnd) == std::string::npos && !location.empty()) {
    const std::string path = url.substr(0, url.find_first_of("?#"));
    const size_t slash = path.rfind('/');
    next = (slash < authority ? path + "/" : path.substr(0, slash + 1)) + location;
  }
  if (!is_web_address(next) || (url.starts_with("https://") && !next.starts_with("https://")))
    throw DataError(fmt::format("{} redirects to `{:.200}`, which is not allowed", url, location),
                    {.hint = "check HF_ENDPOINT: give it an https:// address"});
  return next;
}

}  // namespace convoy::hub
