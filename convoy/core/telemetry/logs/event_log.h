// SPDX-License-Identifier: Apache-2.0
//
// events.jsonl: the authoritative record of a run, one JSON object per line. Written by rank 0
// alone; readable at any moment. Every line has "event" (a word of EventKind) and "time" (seconds
// since 1970, UTC).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/logs/append_file.h"

namespace convoy::telemetry {

enum class EventKind { Start, Step, Eval, Checkpoint, Warning, Failure, End };

std::string_view event_word(EventKind kind);  // "start", "step", ...

class EventLog {
 public:
  // Opens `path` for appending and removes a torn last line. With `restart_after_step` (-1 = from
  // the beginning) training continues after that step, so rows of later steps are removed first: a
  // file holds one row per step. A full disk never stops the run (one warning); readers then skip
  // superseded rows themselves.
  EventLog(const std::filesystem::path& path, const Log& log,
           std::optional<int64_t> restart_after_step = std::nullopt);

  // Appends one whole line and passes it to the kernel before it returns. `fields` is an object.
  void append(EventKind kind, const nlohmann::ordered_json& fields);

 private:
  AppendFile file_;
};

// The valid rows, oldest first: for step, eval and checkpoint rows of one step only the last, and
// none that a later start row (field "resume_step") superseded. Skips a torn last line. Throws
// DataError for any other invalid line.
std::vector<nlohmann::ordered_json> read_events(const std::filesystem::path& path);

}  // namespace convoy::telemetry
