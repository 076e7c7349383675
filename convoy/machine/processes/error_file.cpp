// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/error_file.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/base/json_depth.h"

namespace convoy::processes {

bool write_error_file(const std::filesystem::path& path, const Error& error) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  nlohmann::ordered_json file;
  file["message"]["message"] = error.sentence();
  file["message"]["extraInfo"]["timestamp"] =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  file["convoy"] = nlohmann::ordered_json::parse(error.json_line());
  try {
    write_file_atomic(path, file.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return true;
  } catch (const IoError&) {
    return false;  // the caller then prints the error itself
  }
}

ErrorFile read_error_file(const std::filesystem::path& path) {
  constexpr int64_t kMaxBytes = 1 << 20;
  ErrorFile found;
  // A rank may have put anything there: reading a pipe would block.
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return found;
  std::string text;
  try {
    text = read_file(path, kMaxBytes);
  } catch (const DataError&) {
    return found;  // most ranks leave no file
  }
  if (nested_deeper(text)) return found;
  const auto file = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!file.is_object()) return found;
  const auto message = file.find("message");
  if (message != file.end() && message->is_object() && message->contains("message")) {
    const auto& words = (*message)["message"];
    found.sentence = words.is_string() ? words.get<std::string>() : words.dump();
  } else if (message != file.end() && message->is_string()) {
    found.sentence = message->get<std::string>();
  }
  const auto convoy = file.find("convoy");
  if (convoy != file.end() && convoy->is_object()) found.json_line = convoy->dump();
  found.text = std::move(text);
  return found;
}

bool hand_on_error_file(const std::filesystem::path& path, const std::string& text, int exit_code) {
  auto file = nlohmann::ordered_json::parse(text);
  const auto message = file.find("message");
  if (message != file.end() && message->is_object()) (*message)["errorCode"] = exit_code;
  try {
    write_file_atomic(path, file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return true;
  } catch (const IoError&) {
    return false;
  }
}

}  // namespace convoy::processes
