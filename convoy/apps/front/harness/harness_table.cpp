// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/harness/harness_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kStderr = "_stderr";

// The harness puts the time into the name, so the last name is the newest.
fs::path newest_results(const HarnessFolder& folder, const std::set<fs::path>& former) {
  fs::path newest;
  for (const fs::path& file : results_files(folder.path))
    if (!former.contains(file) && (newest.empty() || file.filename() > newest.filename()))
      newest = file;
  if (newest.empty())
    throw DataError("the harness wrote no results_*.json",
                    {.file = folder.shown(folder.path),
                     .hint = fmt::format("read all messages in {}", folder.log("harness.log"))});
  return newest;
}

// "acc,none" is "acc", "exact_match,strict-match" stays.
std::string metric_name(const std::string& key) {
  constexpr std::string_view kNoFilter = ",none";
  return key.ends_with(kNoFilter) ? key.substr(0, key.size() - kNoFilter.size()) : key;
}

// The key of the standard error of a metric: "acc_stderr", "exact_match_stderr,strict-match".
std::string stderr_key(const std::string& metric) {
  std::string key = metric;
  return key.insert(std::min(key.find(','), key.size()), kStderr);
}

Json task_figures(const std::string& task, const Json& results) {
  Json figures = Json::object();
  for (const auto& [key, value] : results.at("results").at(task).items())
    if (value.is_number() && key.find(',') != std::string::npos) figures[metric_name(key)] = value;
  const auto fact = [&](const char* from, const char* to) {
    const auto list = results.find(from);
    if (list == results.end() || !list->is_object()) return;
    const auto value = list->find(task);
    if (value == list->end()) return;
    figures[to] = value->is_object() ? value->value("effective", Json()) : *value;
  };
  fact("n-samples", "n");
  fact("n-shot", "num_fewshot");
  fact("versions", "version");
  return figures;
}

std::string number_text(const Json& value) {
  return value.is_number_float() ? fmt::format("{:.4f}", value.get<double>()) : value.dump();
}

// Calls `take` with the task, its figures and the metric, for each metric that was measured.
template <class Take>
void for_each_metric(const Json& results, const Take& take) {
  for (const auto& [task, figures] : results.at("tasks").items())
    for (const auto& [metric, value] : figures.items())
      if (metric != "n" && metric != "num_fewshot" && metric != "version" &&
          metric.find(kStderr) == std::string::npos)
        take(task, figures, metric);
}

std::string figure_text(const Json& figures, const std::string& key) {
  const auto found = figures.find(key);
  return found == figures.end() || found->is_null() ? "-" : number_text(*found);
}

}  // namespace

std::set<fs::path> results_files(const fs::path& folder) {
  std::set<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("results_") && name.ends_with(".json")) files.insert(entry.path());
  }
  return files;
}

Json read_harness_results(const HarnessFolder& folder, const std::set<fs::path>& former) {
  const fs::path file = newest_results(folder, former);
  try {
    const Json results = Json::parse(read_file(file));
    Json tasks = Json::object();
    for (const auto& [task, figures] : results.at("results").items())
      tasks[task] = task_figures(task, results);
    return {{"harness", results.value("lm_eval_version", Json())}, {"tasks", tasks}};
  } catch (const Json::exception& problem) {
    throw DataError(fmt::format("these are not the harness' results: {}", problem.what()),
                    {.file = folder.shown(file), .hint = "use lm-eval 0.4.9 or newer"});
  }
}

std::string harness_table(const Json& results) {
  std::string table = fmt::format("{:<28} {:<32} {:>10} {:>10} {:>7} {:>7}\n", "task", "metric",
                                  "value", "stderr", "rows", "shots");
  for_each_metric(results, [&](const auto& task, const Json& figures, const auto& metric) {
    table += fmt::format("{:<28} {:<32} {:>10} {:>10} {:>7} {:>7}\n", task, metric,
                         figure_text(figures, metric), figure_text(figures, stderr_key(metric)),
                         figure_text(figures, "n"), figure_text(figures, "num_fewshot"));
  });
  return table;
}

std::string harness_comparison(const Json& before, const Json& after) {
  std::string table = fmt::format("{:<28} {:<32} {:>10} {:>10} {:>10} {:>7}\n", "task", "metric",
                                  "before", "after", "stderr", "rows");
  for_each_metric(after, [&](const auto& task, const Json& figures, const auto& metric) {
    const auto was = before.at("tasks").find(task);
    if (was == before.at("tasks").end() || !was->contains(metric)) return;
    table += fmt::format("{:<28} {:<32} {:>10} {:>10} {:>10} {:>7}\n", task, metric,
                         figure_text(*was, metric), figure_text(figures, metric),
                         figure_text(figures, stderr_key(metric)), figure_text(figures, "n"));
  });
  return table;
}

}  // namespace convoy::apps
