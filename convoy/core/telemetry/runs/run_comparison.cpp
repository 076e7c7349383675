// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/run_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/json_member.h"

namespace convoy::telemetry {
namespace {

using nlohmann::json;
using Values = std::map<std::string, std::string>;

// Settings that always differ between runs and carry no information.
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

std::string point_text(const std::optional<CurvePoint>& point) {
  return point ? fmt::format("{:.4f} at step {}", point->value, point->step) : "";
}

std::optional<CurvePoint> last_of(const std::vector<CurvePoint>& curve) {
  return curve.empty() ? std::nullopt : std::optional(curve.back());
}

// The line `name` adds nothing to the line `by`. `equal`: this holds only when both lines have the
// same values.
struct Repeat {
  std::string_view name;
  std::string_view by;
  bool equal = false;
};
constexpr std::array<Repeat, 20> kRepeats = {{
    {"strategy", "parallel.strategy", true},
    {"step", "steps"},
    {"global_step", "steps"},
    {"last evaluation loss", "lowest evaluation loss", true},
    {"eval_loss", "lowest evaluation loss"},
    {"best_eval_loss", "lowest evaluation loss"},
    {"best_step", "best_eval_loss"},
    {"train_runtime", "from first to last event"},
    {"train_steps_per_second", "from first to last event"},
    {"train_tokens_per_second", "tokens per second, median"},
    {"train_samples_per_second", "tokens per second, median"},
    {"train_flops_per_second", "train_mfu"},
    {"train_tokens", "tokens_seen"},
    {"train_supervised_tokens", "supervised_tokens_seen"},
    {"eval_samples_per_second", "eval_runtime"},
    {"eval_steps_per_second", "eval_runtime"},
    {"peak_learning_rate", "train.learning_rate", true},
    {"per_device_train_batch_size", "train.batch_size", true},
    {"gradient_accumulation_steps", "train.grad_accum", true},
    {"global_batch_size", "train.global_batch_size", true},
}};

const ComparedValue* line_named(const std::vector<ComparedValue>& lines, std::string_view name) {
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [name](const ComparedValue& line) { return line.name == name; });
  return found == lines.end() ? nullptr : &*found;
}

bool differs(const ComparedValue& line) {
  return std::adjacent_find(line.values.begin(), line.values.end(), std::not_equal_to<>()) !=
         line.values.end();
}

bool is_said_elsewhere(const ComparedValue& line, const RunComparison& comparison) {
  return std::any_of(kRepeats.begin(), kRepeats.end(), [&](const Repeat& repeat) {
    if (repeat.name != line.name) return false;
    for (const auto* lines : {&comparison.settings, &comparison.figures, &comparison.metrics})
      if (const ComparedValue* other = line_named(*lines, repeat.by))
        return repeat.equal ? other->values == line.values
                            : std::any_of(other->values.begin(), other->values.end(),
                                          [](const std::string& value) { return !value.empty(); });
    return false;
  });
}

// Data of run.json about the last start. The strategy is the chosen one, not the requested one.
struct RanksAndStrategy {
  std::string ranks{};
  std::string strategy{};
};
RanksAndStrategy ranks_and_strategy(const json& identity) {
  if (!identity.is_object()) return {};
  const auto ranks = member_or(identity, "world_size", int64_t{0});
  return {.ranks = ranks > 0 ? std::to_string(ranks) : "",
          .strategy = member_or(identity.value("stamp", json::object()), "parallel.strategy",
                                std::string())};
}

// The figures of a run, the most interesting first.
std::vector<std::pair<std::string, std::string>> figures_of(const RunHistory& run,
                                                            const json& identity) {
  const RanksAndStrategy by = ranks_and_strategy(identity);
  std::string speed;
  if (!run.tokens_per_second.empty()) {
    std::vector<double> speeds;
    for (const CurvePoint& point : run.tokens_per_second) speeds.push_back(point.value);
    speed = fmt::format("{:.0f}", median(std::move(speeds)));
  }
  return {{"state", run_state_word(run.state)},
          {"ranks", by.ranks},
          {"strategy", by.strategy},
          {"steps", steps_text(run)},
          {"last loss",
           run.train_loss.empty() ? "" : fmt::format("{:.4f}", run.train_loss.back().value)},
          {"lowest evaluation loss", point_text(lowest(run.eval_loss))},
          {"last evaluation loss", point_text(last_of(run.eval_loss))},
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
    if (!only_different || differs(line)) lines.push_back(std::move(line));
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
    const auto lines = figures_of(run, identity);
    comparison.figures.resize(lines.size());
    for (size_t line = 0; line < lines.size(); ++line) {
      comparison.figures[line].name = lines[line].first;
      comparison.figures[line].values.push_back(lines[line].second);
    }
  }
  // A run without settings would differ in all of them.
  if (comparison.without_settings.empty()) comparison.settings = lines_of(settings, true);
  comparison.metrics = lines_of(metrics, false);
  return comparison;
}

std::vector<ComparedValue> lines_to_tell(const RunComparison& comparison) {
  std::vector<ComparedValue> lines;
  for (const ComparedValue& line : comparison.figures)
    if (!is_said_elsewhere(line, comparison)) lines.push_back(line);
  for (const ComparedValue& line : comparison.metrics)
    if (differs(line) && !is_said_elsewhere(line, comparison)) lines.push_back(line);
  return lines;
}

}  // namespace convoy::telemetry
