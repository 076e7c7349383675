// SPDX-License-Identifier: Apache-2.0
//
// Past and present runs, read from their folders, for `convoy runs` and comparisons. Reads only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace convoy::telemetry {

enum class RunState { Running, Finished, Stopped, Failed, Empty };

std::string run_state_word(RunState state);

struct CurvePoint {
  int64_t step = 0;
  double value = 0;
};

struct RunHistory {
  std::filesystem::path path{};
  std::string name{};  // the folder's name
  RunState state = RunState::Empty;
  int64_t steps = 0;           // number of steps done
  int64_t total_steps = 0;     // number of steps planned; 0 = unknown
  double created_seconds = 0;  // since 1970
  double updated_seconds = 0;  // time of the last event
  std::vector<CurvePoint> train_loss{};
  std::vector<CurvePoint> eval_loss{};
  std::vector<CurvePoint> learning_rate{};
  std::vector<CurvePoint> grad_norm{};
  std::vector<CurvePoint> tokens_per_second{};
  std::vector<CurvePoint> reward{};  // task grpo: the mean over the texts of a step
  std::string failure{};             // sentence of the last failure, or empty
};

// The state for an end event's "status".
RunState state_of_end(const std::string& status);

// Reason shown for a run that has no end event and whose folder is not locked.
inline constexpr const char* kEndedWithoutAWord =
    "the run has no end event: its process was killed";
// The state of a run, from its events (`told`) and its lock (`held`). A run without an end event is
// in progress when its folder is locked; otherwise it was killed.
RunState state_now(RunState told, bool held);

// The point with the lowest finite value.
std::optional<CurvePoint> lowest(const std::vector<CurvePoint>& curve);

// "12/40", or "12" when the planned number is unknown or was lowered below it.
std::string steps_text(const RunHistory& run);

// Reads run.json or metrics.json; null when the file is missing or damaged. Throws IoError.
nlohmann::json read_run_record(const std::filesystem::path& file);

// Throws DataError when `folder` is no run folder or its events are damaged.
RunHistory read_run(const std::filesystem::path& folder);

// Folders below `parent` (at most three deep) that hold events.jsonl or run.json, oldest first.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& parent);

// The name of a run found below `parent`: its path from there, "profiles/a/ranks".
std::string run_name(const std::filesystem::path& run, const std::filesystem::path& parent);

// `word`: a folder, a run's name or the last part of one, a unique prefix of either, or "last": the
// newest run that is in progress or took a step (starts that failed at once are skipped). Throws
// ConfigError with the candidates.
std::filesystem::path resolve_run(const std::string& word, const std::filesystem::path& parent);

}  // namespace convoy::telemetry
