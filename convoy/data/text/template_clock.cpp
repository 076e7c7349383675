// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/text/template_clock.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/time_text.h"

namespace convoy::text {
namespace {

constexpr std::string_view kFunction = "strftime_now";

std::string_view without_leading_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

// The format in the arguments of a call, which `rest` begins with; empty when it is no plain
// string.
std::optional<std::string> literal_format(std::string_view rest) {
  rest = without_leading_blanks(rest.substr(1));
  if (rest.empty() || (rest[0] != '"' && rest[0] != '\'')) return std::nullopt;
  const size_t end = rest.find(rest[0], 1);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view format = rest.substr(1, end - 1);
  const bool is_whole = without_leading_blanks(rest.substr(end + 1)).starts_with(')');
  if (!is_whole || format.find('\\') != std::string_view::npos) return std::nullopt;
  return std::string(format);
}

}  // namespace

void TemplateClock::add(std::string_view source) {
  for (size_t at = source.find(kFunction); at != std::string_view::npos;
       at = source.find(kFunction, at + 1)) {
    const std::string_view rest = without_leading_blanks(source.substr(at + kFunction.size()));
    if (rest.starts_with("is ")) continue;  // a test whether the function exists
    is_read_ = true;
    const auto format = rest.starts_with('(') ? literal_format(rest) : std::nullopt;
    if (!format)
      needs_seconds_ = true;
    else if (formats_.find('\0' + *format + '\0') == std::string::npos)
      formats_ += '\0' + *format + '\0';
  }
}

void TemplateClock::stop_at_command_start() {
  const auto told = text_as<int64_t>(environment_text(kCommandStart));
  stop_at(told ? *told : static_cast<int64_t>(std::time(nullptr)));
}

int64_t TemplateClock::seconds() const {
  return stopped_s_ ? *stopped_s_ : static_cast<int64_t>(std::time(nullptr));
}

std::string TemplateClock::words() const {
  if (!is_read_ || !stopped_s_) return "";
  if (needs_seconds_) return fmt::format("strftime_now has {}", local_time_text(*stopped_s_));
  std::string words;
  for (size_t at = 0; at < formats_.size();) {
    const size_t end = formats_.find('\0', at + 1);
    const std::string format = formats_.substr(at + 1, end - at - 1);
    words += fmt::format("{}strftime_now(\"{}\") is {}", words.empty() ? "" : ", ", format,
                         local_time_text(*stopped_s_, format.c_str()));
    at = end + 1;
  }
  return words;
}

}  // namespace convoy::text
