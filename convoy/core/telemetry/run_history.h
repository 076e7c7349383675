// SPDX-License-Identifier: Apache-2.0
//
// Past and present runs, read from their folders: for `convoy runs` and anything that compares
// runs. Reads only.
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
  std::string name{};  // of the folder
  RunState state = RunState::Empty;
  int64_t steps = 0;           // done
  int64_t total_steps = 0;     // planned; 0 = unknown
  double created_seconds = 0;  // since 1970
  double updated_seconds = 0;  // last event
  std::vector<CurvePoint> train_loss{};
  std::vector<CurvePoint> eval_loss{};
  std::vector<CurvePoint> learning_rate{};
  std::vector<CurvePoint> grad_norm{};
  std::vector<CurvePoint> tokens_per_second{};
  std::string failure{};  // sentence of the last failure, or empty
};

// What an end event's "status" says.
RunState state_of_end(const std::string& status);

// Of a run whose events say that it goes on, but whose folder nobody holds.
inline constexpr const char* kEndedWithoutAWord =
    "the run ended without a word: its process was killed";
// What the events say, and whether the folder is held: a run whose rows just stop goes on or has
// died.
RunState state_now(RunState told, bool held);

// The point of the lowest finite value.
std::optional<CurvePoint> lowest(const std::vector<CurvePoint>& curve);

// "12/40", or "12" where the plan is unknown.
std::string steps_text(const RunHistory& run);

// run.json, metrics.json; null when the file is missing or damaged. Throws IoError.
nlohmann::json read_run_record(const std::filesystem::path& file);

// Throws DataError when `folder` is no run folder or its events are damaged.
RunHistory read_run(const std::filesystem::path& folder);

// Folders below `parent` (at most three deep) that hold events.jsonl or run.json, oldest first.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& parent);

// `word`: a folder, a run's name, a unique prefix of one, or "last": the newest that goes on now or
// took a step, since a start that failed at once is not what a person means. Throws ConfigError
// with the candidates.
std::filesystem::path resolve_run(const std::string& word, const std::filesystem::path& parent);

}  // namespace convoy::telemetry
