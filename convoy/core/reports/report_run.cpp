// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/reports/report_run.h"

#include <string_view>

#include "convoy/core/base/files.h"
#include "convoy/core/base/random_bytes.h"

namespace convoy::reports {
namespace {

constexpr size_t kIdLetters = 8;  // as wandb's

std::string new_id() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string id;
  for (const char byte : random_bytes(kIdLetters))
    id += kLetters[static_cast<unsigned char>(byte) % kLetters.size()];
  return id;
}

}  // namespace

std::string report_id(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "report.json";
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) {
    const nlohmann::json kept = nlohmann::json::parse(read_file(file), nullptr, false);
    if (kept.is_object() && kept.contains("id") && kept["id"].is_string())
      return kept["id"].get<std::string>();
  }
  const std::string id = new_id();
  write_file_atomic(file, nlohmann::json{{"id", id}}.dump() + "\n");
  return id;
}

}  // namespace convoy::reports
