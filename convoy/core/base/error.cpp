// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/error.h"

#include <nlohmann/json.hpp>

namespace convoy {

Error::Error(ExitCode code, std::string kind, const std::string& message, ErrorPlace place)
    : std::runtime_error(message), code_(code), kind_(std::move(kind)), place_(std::move(place)) {}

std::string Error::sentence() const {
  std::string text;
  if (!place_.file.empty()) {
    text += place_.file;
    if (place_.line > 0) text += fmt::format(":{}", place_.line);
    text += ": ";
  }
  text += what();
  if (!place_.hint.empty()) text += fmt::format(" ({})", place_.hint);
  return text;
}

std::string Error::json_line() const {
  nlohmann::ordered_json line;
  line["code"] = static_cast<int>(code_);
  line["kind"] = kind_;
  line["rank"] = place_.rank >= 0 ? nlohmann::ordered_json(place_.rank) : nullptr;
  line["step"] = place_.step >= 0 ? nlohmann::ordered_json(place_.step) : nullptr;
  line["file"] =
      place_.file.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(place_.file);
  if (place_.line > 0) line["line"] = place_.line;
  if (!place_.key.empty()) line["key"] = place_.key;
  line["hint"] =
      place_.hint.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(place_.hint);
  line["message"] = what();
  // Bytes of a bad file may be quoted in a message; they need not be UTF-8.
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace convoy
