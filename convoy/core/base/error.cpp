// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/error.h"

#include <nlohmann/json.hpp>

namespace convoy {

Error::Error(ExitCode code, std::string kind, const std::string& message, ErrorLocation location)
    : std::runtime_error(message),
      code_(code),
      kind_(std::move(kind)),
      location_(std::move(location)) {}

std::string Error::sentence() const {
  std::string text;
  const std::string_view message = what();
  const bool names_its_file = message.find(" " + location_.file + ":") != std::string_view::npos;
  if (!location_.file.empty() && (location_.line > 0 || !names_its_file)) {
    text += location_.file;
    if (location_.line > 0) text += fmt::format(":{}", location_.line);
    text += ": ";
  }
  text += what();
  if (!location_.hint.empty()) text += fmt::format(" ({})", location_.hint);
  return text;
}

std::string Error::json_line() const {
  nlohmann::ordered_json line;
  line["code"] = static_cast<int>(code_);
  line["kind"] = kind_;
  line["rank"] = location_.rank >= 0 ? nlohmann::ordered_json(location_.rank) : nullptr;
  line["step"] = location_.step >= 0 ? nlohmann::ordered_json(location_.step) : nullptr;
  line["file"] = location_.file.empty() ? nlohmann::ordered_json(nullptr)
                                        : nlohmann::ordered_json(location_.file);
  if (location_.line > 0) line["line"] = location_.line;
  if (!location_.key.empty()) line["key"] = location_.key;
  line["hint"] = location_.hint.empty() ? nlohmann::ordered_json(nullptr)
                                        : nlohmann::ordered_json(location_.hint);
  line["message"] = what();
  // Bytes of a bad file may be quoted in a message; they need not be UTF-8.
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace convoy
