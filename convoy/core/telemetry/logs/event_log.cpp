// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/logs/event_log.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/json_depth.h"
#include "convoy/core/base/json_member.h"

namespace convoy::telemetry {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kWords = {"start",   "step",    "eval", "checkpoint",
                                                    "warning", "failure", "end"};

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) /
         1000.0;
}

bool is_event(const ordered_json& row) {
  return row.is_object() && row.contains("event") && row["event"].is_string();
}

ordered_json parse_row(std::string_view line) {
  // The JSON parser treats a zero byte as the end of its input. After a power loss, zeros are a
  // torn line.
  if (line.find('\0') != std::string_view::npos || nested_deeper(line))
    return ordered_json::value_t::discarded;
  return ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
}

// Length of the longest prefix that ends with a whole event line (or is empty). A crash may leave a
// partial line, a power loss may leave zeros.
size_t whole_length(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    if (text[end - 1] == '\n') {
      const size_t before = end >= 2 ? text.rfind('\n', end - 2) : std::string_view::npos;
      const size_t begin = before == std::string_view::npos ? 0 : before + 1;
      if (is_event(parse_row(text.substr(begin, end - 1 - begin)))) return end;
      end = begin;
    } else {
      const size_t before = text.rfind('\n', end - 1);
      end = before == std::string_view::npos ? 0 : before + 1;
    }
  }
  return 0;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

bool belongs_to_step(const ordered_json& row) {
  const auto& word = row["event"].get_ref<const std::string&>();
  return (word == "step" || word == "eval" || word == "checkpoint") && row.contains("step") &&
         row["step"].is_number_integer();
}

// Removes torn tails and superseded rows. Never throws; readers handle what could not be repaired.
void repair(const fs::path& path, const Log& log, std::optional<int64_t> restart_after_step) {
  std::error_code missing;
  if (!fs::is_regular_file(path, missing)) return;
  try {
    const std::string text = read_file(path);
    const size_t length = whole_length(text);
    if (length < text.size()) {
      log.detail(fmt::format("removed an incomplete line of {} bytes from {}", text.size() - length,
                             path.string()));
      if (::truncate(path.c_str(), static_cast<off_t>(length)) != 0)
        throw IoError("could not remove an incomplete line",
                      {.file = path.string(),
                       .hint = "allow this user to write the file, or name another run folder"});
    }
    if (!restart_after_step) return;
    std::string kept;
    for (const std::string_view line : lines_of(std::string_view(text).substr(0, length))) {
      const ordered_json row = parse_row(line);
      if (is_event(row) && belongs_to_step(row) && row["step"].get<int64_t>() > *restart_after_step)
        continue;
      kept.append(line).append("\n");
    }
    if (kept.size() < length) write_file_atomic(path, kept);
  } catch (const Error& error) {
    log.warning(error.sentence());
  }
}

fs::path repaired(const fs::path& path, const Log& log, std::optional<int64_t> restart_after_step) {
  repair(path, log, restart_after_step);
  return path;
}

}  // namespace

std::string_view event_word(EventKind kind) { return kWords.at(static_cast<size_t>(kind)); }

EventLog::EventLog(const fs::path& path, const Log& log, std::optional<int64_t> restart_after_step)
    : file_(repaired(path, log, restart_after_step), log) {}

void EventLog::append(EventKind kind, const ordered_json& fields) {
  ordered_json row = {{"event", event_word(kind)}, {"time", seconds_since_1970()}};
  row.update(fields);
  file_.append(row.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

std::vector<ordered_json> read_events(const fs::path& path) {
  const std::string text = read_file(path);
  std::vector<std::optional<ordered_json>> rows;
  // event word, step, split -> position of the row that counts
  std::map<std::tuple<std::string, int64_t, std::string>, size_t> current;
  int64_t line_number = 0;
  for (const std::string_view line :
       lines_of(std::string_view(text).substr(0, whole_length(text)))) {
    ++line_number;
    ordered_json row = parse_row(line);
    if (!is_event(row))
      throw DataError("wanted one JSON object with \"event\" per line",
                      {.file = path.string(),
                       .line = line_number,
                       .hint = "remove this line, or take the file from a copy of the run folder"});
    if (row["event"] == "start") {
      const int64_t resume_step = member_or(row, "resume_step", int64_t{-1});
      for (auto entry = current.begin(); entry != current.end();) {
        if (std::get<1>(entry->first) > resume_step) {
          rows[entry->second].reset();
          entry = current.erase(entry);
        } else {
          ++entry;
        }
      }
    } else if (belongs_to_step(row)) {
      const auto key = std::make_tuple(row["event"].get<std::string>(), row["step"].get<int64_t>(),
                                       member_or(row, "split", std::string()));
      const auto [entry, fresh] = current.try_emplace(key, rows.size());
      if (!fresh) rows[std::exchange(entry->second, rows.size())].reset();
    }
    rows.emplace_back(std::move(row));
  }
  std::vector<ordered_json> result;
  for (auto& row : rows)
    if (row) result.push_back(std::move(*row));
  return result;
}

}  // namespace convoy::telemetry
