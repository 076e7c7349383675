// SPDX-License-Identifier: Apache-2.0
#include "convoy/telemetry/run_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/base/error.h"

namespace convoy::telemetry {
namespace {

using nlohmann::json;
using Values = std::map<std::string, std::string>;

// These differ between any two runs and say nothing about them.
const std::set<std::string> kPlaces = {"run_name", "train.output_dir",
                                       "train.resume_from_checkpoint"};

void flatten(const json& value, const std::string& path, Values& into) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, inner] : value.items())
      flatten(inner, path.empty() ? key : path + "." + key, into);
  } else if (!path.empty() && !kPlaces.contains(path)) {
    into[path] = value.is_string() ? value.get<std::string>() : value.dump();
  }
}

std::string number_text(double value) {
  const bool whole = std::floor(value) == value && std::abs(value) < 1e15;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.6g}", value);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string best_text(const std::vector<CurvePoint>& curve) {
  const auto best = lowest(curve);
  return best ? fmt::format("{:.4f} at step {}", best->value, best->step) : "";
}

// In the order in which a person asks.
std::vector<std::pair<std::string, std::string>> curve_figures(const RunHistory& run) {
  std::string speed;
  if (!run.tokens_per_second.empty()) {
    std::vector<double> speeds;
    for (const CurvePoint& point : run.tokens_per_second) speeds.push_back(point.value);
    speed = fmt::format("{:.0f}", median(std::move(speeds)));
  }
  return {{"state", run_state_word(run.state)},
          {"steps", steps_text(run)},
          {"last loss",
           run.train_loss.empty() ? "" : fmt::format("{:.4f}", run.train_loss.back().value)},
          {"lowest evaluation loss", best_text(run.eval_loss)},
          {"tokens per second, median", speed},
          {"from first to last event",
           fmt::format("{:.0f} s", run.updated_seconds - run.created_seconds)}};
}

std::vector<ComparedValue> lines_of(const std::vector<Values>& runs, bool only_different) {
  std::set<std::string> names;
  for (const Values& run : runs)
    for (const auto& [name, value] : run) names.insert(name);
  std::vector<ComparedValue> lines;
  for (const std::string& name : names) {
    ComparedValue line{.name = name};
    for (const Values& run : runs) {
      const auto found = run.find(name);
      line.values.push_back(found == run.end() ? "" : found->second);
    }
    const bool equal = std::adjacent_find(line.values.begin(), line.values.end(),
                                          std::not_equal_to<>()) == line.values.end();
    if (!only_different || !equal) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

RunComparison compare_runs(const std::vector<RunHistory>& runs) {
  CONVOY_INVARIANT(runs.size() >= 2, "{} runs to compare", runs.size());
  RunComparison comparison;
  std::vector<Values> settings;
  std::vector<Values> metrics;
  for (const RunHistory& run : runs) {
    comparison.runs.push_back(run.name);
    const json identity = read_run_record(run.path / "run.json");
    const json config = identity.is_object() ? identity.value("config", json()) : json();
    Values values;
    if (config.is_object())
      flatten(config, "", values);
    else
      comparison.without_settings.push_back(run.name);
    settings.push_back(std::move(values));
    Values figures;
    if (const json file = read_run_record(run.path / "metrics.json"); file.is_object())
      for (const auto& [name, value] : file.items())
        if (value.is_number()) figures[name] = number_text(value.get<double>());
    metrics.push_back(std::move(figures));
  }
  // A run without settings would differ in all of them.
  if (comparison.without_settings.empty()) comparison.settings = lines_of(settings, true);
  for (const RunHistory& run : runs) {
    const auto figures = curve_figures(run);
    comparison.figures.resize(figures.size());
    for (size_t line = 0; line < figures.size(); ++line) {
      comparison.figures[line].name = figures[line].first;
      comparison.figures[line].values.push_back(figures[line].second);
    }
  }
  for (ComparedValue& line : lines_of(metrics, false))
    comparison.figures.push_back(std::move(line));
  return comparison;
}

}  // namespace convoy::telemetry
