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

double number_in(const ordered_json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number() ? found->get<double>() : 0;
}

double tokens_in(const ordered_json& row) {
  const auto found = row.find("logprobs");
  return found != row.end() ? static_cast<double>(found->size()) : 0;
}

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

void for_each_rollout(const fs::path& run, int64_t step,
                      const std::function<void(ordered_json)>& take) {
  std::ifstream file(rollout_file(run / "rollouts", step));
  for (std::string line; std::getline(file, line);) {
    ordered_json row = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (row.is_object()) take(std::move(row));
  }
}

std::vector<ordered_json> notable_rollouts(const fs::path& run, int64_t step, size_t most) {
  std::vector<ordered_json> rows;
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
  add("best", [](const ordered_json& row) { return number_in(row, "reward"); });
  add("worst", [](const ordered_json& row) { return -number_in(row, "reward"); });
  add("longest", tokens_in);
  return notable;
}

}  // namespace convoy::telemetry
