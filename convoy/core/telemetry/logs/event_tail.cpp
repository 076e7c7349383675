// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/logs/event_tail.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "convoy/core/base/json_member.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/core/telemetry/progress.h"

namespace convoy::telemetry {
namespace {

using nlohmann::ordered_json;

double number(const ordered_json& row, const char* key) { return member_or(row, key, -1.0); }

std::string word(const ordered_json& row, const char* key) {
  return member_or(row, key, std::string());
}

// A number in a row may exceed the range of whole numbers.
int64_t whole(double number) {
  constexpr double kMost = 0x1p53;
  return static_cast<int64_t>(std::clamp(number, -kMost, kMost));
}

std::string clock_text(double seconds) {
  const std::time_t since_1970 = whole(seconds);
  std::tm parts{};
  ::localtime_r(&since_1970, &parts);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string step_text(const ordered_json& row) {
  if (row.contains("kept") && !row.contains("loss"))
    return fmt::format("  {:.0f} of {:.0f} samples right, {:.0f} kept", number(row, "right"),
                       number(row, "samples"), number(row, "kept"));
  const bool finite = row.contains("loss") && row["loss"].is_number();
  std::string text =
      finite ? fmt::format("  loss {:.4f}", row["loss"].get<double>()) : std::string("  loss nan");
  if (number(row, "grad_norm") >= 0) text += fmt::format("  grad {:.3g}", number(row, "grad_norm"));
  if (number(row, "learning_rate") >= 0)
    text += fmt::format("  lr {:.3g}", number(row, "learning_rate"));
  if (number(row, "tokens_per_second") >= 0)
    text += fmt::format("  {} tokens/s", count_text(number(row, "tokens_per_second")));
  if (number(row, "peak_memory_bytes") >= 0)
    text += "  " + bytes_text(whole(number(row, "peak_memory_bytes")));
  return text;
}

}  // namespace

EventTail::EventTail(std::filesystem::path path, From from) : path_(std::move(path)) {
  struct stat status {};
  if (from == From::Beginning) return;
  // Rows written before this moment are not returned, even after the file is replaced.
  last_seconds_ = wall_clock_seconds();
  if (::stat(path_.c_str(), &status) != 0) return;
  inode_ = status.st_ino;
  offset_bytes_ = status.st_size;
}

std::vector<ordered_json> EventTail::new_rows() {
  std::vector<ordered_json> rows;
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return rows;
  const bool replaced = inode_ != 0 && (status.st_ino != inode_ || status.st_size < offset_bytes_);
  if (replaced) offset_bytes_ = 0;
  inode_ = status.st_ino;
  if (status.st_size == offset_bytes_) return rows;
  std::ifstream file(path_, std::ios::binary);
  file.seekg(offset_bytes_);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    ordered_json row = ordered_json::parse(text.substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    if (!row.is_object() || !row.contains("event")) continue;
    const double seconds = number(row, "time");
    if (replaced && seconds <= last_seconds_) continue;
    last_seconds_ = std::max(last_seconds_, seconds);
    rows.push_back(std::move(row));
  }
  offset_bytes_ += static_cast<int64_t>(begin);
  return rows;
}

std::string event_text(const ordered_json& row) {
  const std::string kind = word(row, "event");
  std::string text = clock_text(number(row, "time")) + "  " + kind;
  if (kind != "start" && number(row, "step") >= 0)
    text += fmt::format(" {:.0f}", number(row, "step"));
  if (kind == "step") return text + step_text(row);
  if (kind == "start") {
    if (number(row, "resume_step") >= 0)
      text += fmt::format(" after step {:.0f}", number(row, "resume_step"));
    return text + fmt::format("  {:.0f} steps on {:.0f} ranks", number(row, "total_steps"),
                              number(row, "world_size"));
  }
  if (kind == "eval" && row.contains("accuracy") && !row.contains("loss"))
    return text + fmt::format("  {} accuracy {:.4f}", word(row, "split"), number(row, "accuracy"));
  if (kind == "eval") {
    text += fmt::format("  {} loss {:.4f}", word(row, "split"), number(row, "loss"));
    for (const char* figure : {"perplexity", "accuracy", "rewards/margins"})
      if (row.contains(figure)) text += fmt::format("  {} {:.4g}", figure, number(row, figure));
    return text;
  }
  if (kind == "checkpoint")
    return text + "  " + word(row, "path") + (member_or(row, "best", false) ? "  (best)" : "");
  if (kind == "end") return text + "  " + word(row, "status");
  return text + "  " + word(row, "message");
}

}  // namespace convoy::telemetry
