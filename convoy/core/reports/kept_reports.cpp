// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/reports/kept_reports.h"

#include <string_view>
#include <utility>

#include "convoy/core/base/files.h"
#include "convoy/core/base/random_bytes.h"

namespace convoy::reports {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kIdLetters = 8;  // as wandb's

std::string new_id() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string id;
  for (const char byte : random_bytes(kIdLetters))
    id += kLetters[static_cast<unsigned char>(byte) % kLetters.size()];
  return id;
}

}  // namespace

KeptReports::KeptReports(const std::filesystem::path& run_folder)
    : file_(run_folder / "report.json") {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file_, ignored))
    if (Json kept = Json::parse(read_file(file_), nullptr, false); kept.is_object())
      kept_ = std::move(kept);
  if (id().empty()) keep("id", new_id());
}

std::string KeptReports::text(const std::string& key) const {
  const auto found = kept_.find(key);
  return found == kept_.end() || !found->is_string() ? "" : found->get<std::string>();
}

void KeptReports::keep(const std::string& key, const std::string& text) {
  if (this->text(key) == text) return;
  kept_[key] = text;
  // A path may hold any bytes.
  write_file_atomic(file_, kept_.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace convoy::reports
