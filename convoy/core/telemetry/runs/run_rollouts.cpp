// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/run_rollouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>
#include <utility>

#include "convoy/core/base/json_member.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/core/telemetry/runs/run_history.h"

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kBegin = "step-";
constexpr std::string_view kEnd = ".jsonl";

// Says why a value is no row of the file; empty: it is one. Looks at the keys that readers use.
std::string problem_of(const ordered_json& row) {
  if (row.is_discarded()) return "a line that is no JSON";
  if (!row.is_object()) return fmt::format("a value of type {}", row.type_name());
  const auto lacks = [&](const char* key, bool (ordered_json::*is_right)() const noexcept) {
    const auto found = row.find(key);
    return found == row.end() || !((*found).*is_right)();
  };
  for (const char* const key : {"row", "sample"})
    if (lacks(key, &ordered_json::is_number)) return fmt::format("no number `{}`", key);
  // A task without rewards writes none.
  if (row.contains("reward") && lacks("reward", &ordered_json::is_number))
    return "no number `reward`";
  for (const char* const key : {"prompt", "text"})
    if (lacks(key, &ordered_json::is_string)) return fmt::format("no text `{}`", key);
  if (lacks("logprobs", &ordered_json::is_array)) return "no list `logprobs`";
  return "";
}

double reward_in(const ordered_json& row) { return row.value("reward", 0.0); }

double tokens_in(const ordered_json& row) { return static_cast<double>(row["logprobs"].size()); }

ordered_json shown(const ordered_json& row, const char* as) {
  ordered_json text = {{"shown_as", as}};
  for (const auto& [key, value] : row.items())
    if (key != "tokens" && key != "logprobs" && key != "reference_logprobs" && key != "weights" &&
        key != "teacher" && key != "asked")
      text[key] = value;
  text["text_tokens"] = static_cast<int64_t>(tokens_in(row));
  return text;
}

DataError damage_of(const fs::path& path, const std::string& found, const std::string& hint) {
  return DataError("wanted the texts that a step learnt from, found " + found,
                   {.file = path.string(), .hint = hint});
}

// Steps from one file to the next: as the run's record has it, else as its files lie; none: neither
// says it.
std::optional<int64_t> steps_between_files(const fs::path& run, const std::vector<int64_t>& steps) {
  const json record = read_run_record(run / "run.json");
  if (const auto stamp = record.find("stamp"); stamp != record.end() && stamp->is_object())
    if (const auto inner = stamp->find("policy.inner_steps");
        inner != stamp->end() && inner->is_string())
      if (const auto number = text_as<int64_t>(inner->get<std::string>()); number && *number > 0)
        return *number;
  std::optional<int64_t> least;
  for (size_t at = 1; at < steps.size(); ++at) {
    const int64_t between = steps[at] - steps[at - 1];
    least = std::min(least.value_or(between), between);
  }
  return least;
}

// The steps that the run's events tell of; `last` is 0 where they tell of none.
struct DoneSteps {
  int64_t first = 1;  // a run may begin at a checkpoint of another one
  int64_t last = 0;
};

DoneSteps done_steps(const fs::path& run) {
  DoneSteps done;
  const fs::path events = run / "events.jsonl";
  std::error_code unreadable;
  if (!fs::is_regular_file(events, unreadable)) return done;
  bool has_begun = false;
  try {
    for (const ordered_json& row : read_events(events)) {
      const bool starts = row["event"] == "start";
      const int64_t step = member_or(row, starts ? "resume_step" : "step", int64_t{0});
      if (starts && !std::exchange(has_begun, true)) done.first = std::max<int64_t>(step, 0) + 1;
      if (starts || row["event"] == "step") done.last = std::max(done.last, step);
    }
  } catch (const DataError&) {
    return {};  // whoever reads the run reports damaged events
  }
  return done;
}

bool has_no_byte(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_regular_file(path, unreadable) && fs::file_size(path, unreadable) == 0;
}

}  // namespace

std::optional<DataError> missing_rollouts(const fs::path& run) {
  constexpr size_t kMostNamed = 20;
  const std::vector<int64_t> steps = rollout_steps(run);
  if (steps.empty()) return std::nullopt;
  const std::optional<int64_t> stride = steps_between_files(run, steps);
  const DoneSteps done = done_steps(run);
  std::vector<int64_t> gone;
  const auto add_between = [&](int64_t before, int64_t after) {
    if (!stride) return;
    for (int64_t step = before; after - step > *stride && gone.size() <= kMostNamed;)
      gone.push_back(step += *stride);
  };
  if (stride && done.last > 0) {
    const int64_t earlier = std::max<int64_t>(0, (steps.front() - done.first) / *stride);
    add_between(steps.front() - (earlier + 1) * *stride, steps.front());
  }
  for (size_t at = 0; at < steps.size(); ++at) {
    if (at > 0) add_between(steps[at - 1], steps[at]);
    if (has_no_byte(rollout_file(run / "rollouts", steps[at]))) gone.push_back(steps[at]);
  }
  add_between(steps.back(), done.last + 1);
  if (gone.empty()) return std::nullopt;
  const bool are_many = gone.size() > kMostNamed;
  gone.resize(std::min(gone.size(), kMostNamed));
  return DataError(
      fmt::format("the texts of step {}{} are gone: a file is missing or empty",
                  fmt::join(gone, ", "), are_many ? ", ..." : ""),
      {.file = (run / "rollouts").string(), .hint = "take it from a copy of the run folder"});
}

std::vector<int64_t> rollout_steps(const fs::path& run) {
  std::vector<int64_t> steps;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(run / "rollouts", unreadable)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    int64_t step = 0;
    const char* const first = name.data() + kBegin.size();
    const char* const last = name.data() + name.size() - kEnd.size();
    const auto [end, error] = std::from_chars(first, last, step);
    if (error == std::errc() && end == last) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

fs::path rollout_file(const fs::path& folder, int64_t step) {
  return folder / fmt::format("{}{}{}", kBegin, step, kEnd);
}

std::optional<DataError> for_each_rollout(const fs::path& run, int64_t step,
                                          const std::function<void(ordered_json)>& take) {
  const fs::path path = rollout_file(run / "rollouts", step);
  std::error_code unreadable;
  const fs::file_status status = fs::status(path, unreadable);
  if (!fs::exists(status)) return std::nullopt;
  // Opening a pipe would wait for a writer.
  if (!fs::is_regular_file(status))
    return damage_of(path, "a folder, a pipe or a device", "take it away from its place");
  std::ifstream file(path);
  if (!file) return damage_of(path, "a file that cannot be opened", "allow reading it");
  std::optional<DataError> damage;
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    ordered_json row = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (const std::string problem = problem_of(row); problem.empty())
      take(std::move(row));
    else if (!damage)
      damage.emplace(
          fmt::format("wanted a text that a step learnt from, a row of JSON, found {}", problem),
          ErrorLocation{
              .file = path.string(),
              .line = number,
              .hint = "take the file from a copy of the run folder; without one, remove the file: "
                      "a run that has still to learn from its texts draws them again"});
  }
  return damage;
}

NotableRollouts notable_rollouts(const fs::path& run, int64_t step, size_t most) {
  std::vector<ordered_json> rows;
  std::optional<DataError> damage =
      for_each_rollout(run, step, [&](ordered_json row) { rows.push_back(std::move(row)); });
  std::vector<ordered_json> notable;
  const auto add = [&](const char* as, const auto& figure) {
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const ordered_json& left, const ordered_json& right) {
                       return figure(left) > figure(right);
                     });
    for (size_t at = 0; at < std::min(most, rows.size()); ++at)
      notable.push_back(shown(rows[at], as));
  };
  const bool has_rewards = std::any_of(
      rows.begin(), rows.end(), [](const ordered_json& row) { return row.contains("reward"); });
  if (has_rewards) {
    add("best", reward_in);
    add("worst", [](const ordered_json& row) { return -reward_in(row); });
  }
  add("longest", tokens_in);
  return {std::move(notable), std::move(damage)};
}

}  // namespace convoy::telemetry
