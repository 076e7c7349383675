// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/run_rollouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;
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
    if (key != "tokens" && key != "logprobs" && key != "reference_logprobs" && key != "weights")
      text[key] = value;
  text["text_tokens"] = static_cast<int64_t>(tokens_in(row));
  return text;
}

}  // namespace

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
  std::ifstream file(path);
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
              .hint = "remove this line, or take the file from a copy of the run folder"});
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
