// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/run_history.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/json_member.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

bool is_run_folder(const fs::path& folder) {
  std::error_code unreadable;
  return fs::is_regular_file(folder / "events.jsonl", unreadable) ||
         fs::is_regular_file(folder / "run.json", unreadable);
}

void add_point(std::vector<CurvePoint>& curve, const ordered_json& row, const char* key) {
  const auto value = row.find(key);
  if (value != row.end() && value->is_number())
    curve.push_back({row["step"].get<int64_t>(), value->get<double>()});
}

void add_step(RunHistory& run, const ordered_json& row) {
  run.steps = std::max(run.steps, row["step"].get<int64_t>());
  add_point(run.train_loss, row, "loss");
  add_point(run.learning_rate, row, "learning_rate");
  add_point(run.grad_norm, row, "grad_norm");
  add_point(run.reward, row, "reward");
  add_point(run.tokens_per_second, row, "tokens_per_second");
}

void add_event(RunHistory& run, const ordered_json& row) {
  const auto& word = row["event"].get_ref<const std::string&>();
  run.updated_seconds = member_or(row, "time", run.updated_seconds);
  if (run.created_seconds == 0) run.created_seconds = run.updated_seconds;
  const bool has_step = row.contains("step") && row["step"].is_number_integer();
  if (word == "start") {
    run.state = RunState::Running;
    run.total_steps = member_or(row, "total_steps", int64_t{0});
    run.failure.clear();
  } else if (word == "step" && has_step) {
    add_step(run, row);
  } else if (word == "eval" && has_step && member_or(row, "split", std::string("eval")) == "eval") {
    add_point(run.eval_loss, row, "loss");
  } else if (word == "failure") {
    run.state = RunState::Failed;
    run.failure = member_or(row, "message", std::string());
  } else if (word == "end") {
    run.state = state_of_end(member_or(row, "status", std::string()));
  }
}

void collect(const fs::path& folder, int depth, std::vector<fs::path>& found) {
  if (is_run_folder(folder)) {
    found.push_back(folder);
    return;
  }
  if (depth == 0) return;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable))
    if (entry.is_directory(unreadable) && !entry.is_symlink(unreadable) &&
        !entry.path().filename().string().starts_with('.'))
      collect(entry.path(), depth - 1, found);
}

fs::file_time_type last_change(const fs::path& folder) {
  std::error_code missing;
  const fs::path events = folder / "events.jsonl";
  const auto time =
      fs::last_write_time(fs::exists(events, missing) ? events : folder / "run.json", missing);
  return missing ? fs::file_time_type::min() : time;
}

bool goes_on_or_took_a_step(const fs::path& folder) {
  try {
    const RunHistory run = read_run(folder);
    return run.steps > 0 || run.state == RunState::Running;
  } catch (const DataError&) {
    return true;  // its events are damaged: reading them reports that
  }
}

// `runs`: oldest first, at least one.
fs::path last_run(const std::vector<fs::path>& runs, const fs::path& parent) {
  const auto found = std::find_if(runs.rbegin(), runs.rend(), goes_on_or_took_a_step);
  if (found != runs.rend()) return *found;
  throw ConfigError(fmt::format("no run under {} has taken a step; the newest of {} is {}",
                                parent.string(), runs.size(), runs.back().filename().string()),
                    {.hint = "name a run to see it"});
}

}  // namespace

std::string run_state_word(RunState state) {
  switch (state) {
    case RunState::Running:
      return "running";
    case RunState::Finished:
      return "finished";
    case RunState::Stopped:
      return "stopped";
    case RunState::Failed:
      return "failed";
    case RunState::Empty:
      return "empty";
  }
  return "";
}

RunState state_of_end(const std::string& status) {
  if (status == "stopped") return RunState::Stopped;
  return status == "failed" ? RunState::Failed : RunState::Finished;
}

RunState state_now(RunState told, bool held) {
  if (told == RunState::Running && !held) return RunState::Failed;
  return told == RunState::Empty && held ? RunState::Running : told;
}

std::optional<CurvePoint> lowest(const std::vector<CurvePoint>& curve) {
  std::optional<CurvePoint> best;
  for (const CurvePoint& point : curve)
    if (std::isfinite(point.value) && (!best || point.value < best->value)) best = point;
  return best;
}

std::string steps_text(const RunHistory& run) {
  return run.total_steps >= run.steps && run.total_steps > 0
             ? fmt::format("{}/{}", run.steps, run.total_steps)
             : std::to_string(run.steps);
}

nlohmann::json read_run_record(const fs::path& file) {
  if (!fs::exists(file)) return nullptr;
  nlohmann::json record =
      nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  return record.is_discarded() ? nlohmann::json(nullptr) : record;
}

RunHistory read_run(const fs::path& folder) {
  if (!is_run_folder(folder))
    throw DataError(fmt::format("{} is no run folder: it has neither events.jsonl nor run.json",
                                folder.string()),
                    {.hint = "name a folder that a training made; `convoy runs list` shows them"});
  RunHistory run;
  run.path = folder;
  run.name = fs::absolute(folder).lexically_normal().filename().string();
  if (run.name.empty())
    run.name = fs::absolute(folder).lexically_normal().parent_path().filename().string();
  const fs::path events = folder / "events.jsonl";
  if (fs::exists(events))
    for (const ordered_json& row : read_events(events)) add_event(run, row);
  const RunState told = run.state;
  run.state = state_now(told, run_folder_is_held(folder));
  if (told == RunState::Running && run.state == RunState::Failed) run.failure = kEndedWithoutAWord;
  return run;
}

std::vector<fs::path> find_runs(const fs::path& parent) {
  std::vector<fs::path> found;
  collect(parent, 3, found);
  std::sort(found.begin(), found.end(), [](const fs::path& left, const fs::path& right) {
    return std::make_pair(last_change(left), left) < std::make_pair(last_change(right), right);
  });
  return found;
}

std::string run_name(const fs::path& run, const fs::path& parent) {
  const std::string name = run.lexically_relative(parent).generic_string();
  return name.empty() || name == "." ? run.filename().string() : name;
}

fs::path resolve_run(const std::string& word, const fs::path& parent) {
  if (is_run_folder(word)) return word;
  const std::vector<fs::path> runs = find_runs(parent);
  if (runs.empty())
    throw ConfigError(fmt::format("no runs found under {}", parent.string()),
                      {.hint = "--dir names another folder"});
  if (word == "last") return last_run(runs, parent);
  std::vector<std::string> names;
  std::vector<fs::path> named;
  std::vector<fs::path> begun;
  for (const fs::path& run : runs) {
    const std::string name = run_name(run, parent);
    const std::string last_part = run.filename().string();
    names.push_back(name);
    if (name == word) return run;
    if (last_part == word) named.push_back(run);
    if (name.starts_with(word) || last_part.starts_with(word)) begun.push_back(run);
  }
  if (named.size() == 1) return named.front();
  if (begun.size() == 1) return begun.front();
  if (begun.empty())
    throw ConfigError(
        fmt::format("no run `{}` under {}{}", word, parent.string(), did_you_mean(word, names)),
        {.hint = "`convoy runs list` shows them"});
  std::sort(begun.begin(), begun.end());
  std::string candidates;
  for (const fs::path& run : begun) candidates += " " + run_name(run, parent);
  throw ConfigError(
      fmt::format("`{}` names or begins the names of {} runs:{}", word, begun.size(), candidates),
      {.hint = "write more of the name"});
}

}  // namespace convoy::telemetry
