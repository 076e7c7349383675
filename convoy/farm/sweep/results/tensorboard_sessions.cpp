// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/tensorboard_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/telemetry/logs/hparams.h"

namespace convoy::sweep {
namespace {

namespace fs = std::filesystem;
using telemetry::EventWriter;
using telemetry::HparamsExperiment;
using telemetry::HparamsSession;
using telemetry::HparamValue;

// The most values of one parameter that the page lists to choose from; for more values it shows a
// range.
constexpr size_t kMostListedValues = 64;

// All cells with one set of parameters.
struct Point {
  telemetry::Hparams parameters;
  std::string name;    // such as "gnc width=4 lr=0.1"
  std::string folder;  // the name in a form for paths
  std::vector<const CellResult*> cells;
};

HparamValue value_of(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string text_of(const HparamValue& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  return std::get<std::string>(value);
}

// The folder of one point. Long or strange names are simplified: other characters become '_', and
// the point's number keeps names apart.
std::string folder_name(const std::string& name, size_t number) {
  constexpr size_t kLongest = 80;
  std::string folder = fmt::format("{:04}-{}", number, name.substr(0, kLongest));
  for (char& letter : folder)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 &&
        std::string_view("=.-+,_").find(letter) == std::string_view::npos)
      letter = '_';
  return folder;
}

std::vector<Point> points_of(const SweepResults& results) {
  std::vector<Point> points;
  std::map<std::pair<std::string, std::string>, size_t> known;
  AxesOfCells axes;
  for (const CellResult& cell : results.cells) {
    const auto [place, fresh] =
        known.try_emplace({cell.cell.method, cell.cell.parameters.str()}, points.size());
    if (fresh) {
      Point point;
      point.parameters["method"] = cell.cell.method;
      for (const auto& [name, value] : axes.of(cell.cell))
        point.parameters[name == "method" || name == "seed" ? "parameter_" + name : name] =
            value_of(value);
      points.push_back(std::move(point));
    }
    points[place->second].cells.push_back(&cell);
  }
  return points;
}

// Gives each parameter one type on the page: if it has numbers and words, its numbers become words.
void unify_types(std::vector<Point>& points) {
  std::map<std::string, std::set<size_t>> types;
  for (const Point& point : points)
    for (const auto& [name, value] : point.parameters) types[name].insert(value.index());
  for (Point& point : points)
    for (auto& [name, value] : point.parameters)
      if (types[name].size() > 1) value = text_of(value);
}

// Names the points by the parameters that differ between them.
void name_points(std::vector<Point>& points) {
  std::map<std::string, std::set<HparamValue>> values;
  for (const Point& point : points)
    for (const auto& [name, value] : point.parameters) values[name].insert(value);
  for (size_t number = 0; number < points.size(); ++number) {
    Point& point = points[number];
    point.name = text_of(point.parameters.at("method"));
    for (const auto& [name, value] : point.parameters)
      if (name != "method" && values[name].size() > 1)
        point.name += fmt::format(" {}={}", name, text_of(value));
    point.folder = folder_name(point.name, number);
  }
}

HparamsExperiment experiment_of(const std::vector<Point>& points,
                                const std::set<std::string>& metric_tags,
                                const std::string& description) {
  std::map<std::string, std::set<HparamValue>> values;
  for (const Point& point : points)
    for (const auto& [name, value] : point.parameters) values[name].insert(value);
  HparamsExperiment experiment{.description = description};
  for (const auto& [name, distinct] : values) {
    HparamsExperiment::Parameter parameter{.name = name, .kind = *distinct.begin()};
    if (distinct.size() <= kMostListedValues)
      parameter.values.assign(distinct.begin(), distinct.end());
    experiment.parameters.push_back(std::move(parameter));
  }
  experiment.metric_tags.assign(metric_tags.begin(), metric_tags.end());
  return experiment;
}

using Metrics = std::map<std::string, double>;

// The names of the results. A program names its results itself.
std::vector<std::string> result_names(const SweepResults& results) {
  return is_of_programs(results) ? results.metrics : std::vector<std::string>{"value"};
}

Metrics metrics_of(const CellResult& cell, const std::vector<std::string>& names) {
  Metrics metrics = {{"standard_error", cell.standard_error()},
                     {"accepted_share", cell.accepted_share()},
                     {"train_loss", cell.outcome.train_loss}};
  if (cell.seconds > 0) metrics["seconds"] = cell.seconds;
  for (size_t place = 0; place < names.size(); ++place) metrics[names[place]] = cell.metric(place);
  std::erase_if(metrics, [](const auto& one) { return !std::isfinite(one.second); });
  return metrics;
}

// Median and quartiles over the seeds of a point.
Metrics metrics_of(const Point& point, const std::string& name) {
  std::vector<double> values;
  for (const CellResult* cell : point.cells)
    if (cell->state == CellState::Value) values.push_back(cell->value);
  if (values.empty()) return {};
  return {{name, quantile(values, 0.5)},
          {name + "_low", quantile(values, 0.25)},
          {name + "_high", quantile(values, 0.75)},
          {"seeds", static_cast<double>(values.size())}};
}

// The time at which a session began. Below 0 = now, like an unknown end.
double begin_of(double end_seconds, const Metrics& metrics) {
  const auto seconds = metrics.find("seconds");
  return end_seconds < 0 || seconds == metrics.end() ? end_seconds : end_seconds - seconds->second;
}

class SessionFolder {
 public:
  SessionFolder(const fs::path& folder, const Log& log) : log_(log), folder_(folder) {}

  const std::set<std::string>& metric_tags() const { return metric_tags_; }

  void write(const Point& point, const fs::path& place, const Metrics& metrics, bool succeeded,
             double end_seconds) {
    EventWriter writer = fresh(place);
    add_session(writer, {.values = point.parameters,
                         .group = point.name,
                         .begin_seconds = begin_of(end_seconds, metrics)});
    for (const auto& [tag, value] : metrics) {
      writer.add_scalar(tag, 0, value, end_seconds);
      metric_tags_.insert(tag);
    }
    add_session_end(writer, succeeded, end_seconds);
  }

  EventWriter fresh(const fs::path& place) const {
    std::error_code failed;
    fs::create_directories(folder_ / place, failed);
    if (failed)
      throw IoError(
          fmt::format("the folder cannot be made: {}", failed.message()),
          {.file = (folder_ / place).string(), .hint = "check free space and permissions"});
    return EventWriter(folder_ / place, log_);
  }

 private:
  const Log& log_;
  const fs::path& folder_;
  std::set<std::string> metric_tags_;
};

double end_of(const CellResult& cell) {
  return cell.finished_ms > 0 ? static_cast<double>(cell.finished_ms) / 1000 : -1;
}

bool has_result(const CellResult& cell) {
  return cell.state == CellState::Value || cell.state == CellState::Censored ||
         cell.state == CellState::Failed;
}

// The name of a file that marks a folder as holding only sessions.
constexpr const char* kSessionsFile = "convoy-sessions.json";

std::string digest_of(const SweepResults& results) {
  Sha256 hash;
  hash.update(results.workload + '\n' + results.version);
  for (const CellResult& cell : results.cells)
    hash.update(fmt::format("\n{} {} {} {} {} {}", cell.cell.method, cell.cell.seed,
                            cell.cell.parameters.str(), cell_state_word(cell.state),
                            cell.finished_ms, cell.value));
  return hash.hex();
}

void remove_events(const fs::path& folder) {
  std::error_code failed;
  std::vector<fs::path> events;
  for (const auto& entry : fs::recursive_directory_iterator(folder, failed))
    if (entry.path().filename().string().starts_with("events.out.tfevents."))
      events.push_back(entry.path());
  for (const fs::path& file : events) {
    fs::remove(file, failed);
    // A folder that is empty now held a session and is removed. Other folders stay.
    for (fs::path place = file.parent_path(); place != folder; place = place.parent_path())
      if (!fs::is_empty(place, failed) || !fs::remove(place, failed)) break;
  }
}

}  // namespace

void require_sessions_folder(const fs::path& folder) {
  std::error_code failed;
  if (!fs::exists(folder, failed) || fs::exists(folder / kSessionsFile, failed)) return;
  if (!fs::is_empty(folder, failed))
    throw ConfigError(fmt::format("{} holds other files than a sweep's sessions", folder.string()),
                      {.hint = "name a new folder for them"});
}

std::string write_tensorboard_sessions(const SweepResults& results, const fs::path& folder,
                                       const Log& log) {
  std::vector<Point> points = points_of(results);
  if (std::ssize(points) > kMostTensorboardPoints)
    return fmt::format(
        "{} points are more than TensorBoard can show ({} at most): {} is not written",
        points.size(), kMostTensorboardPoints, folder.string());
  unify_types(points);
  name_points(points);
  require_sessions_folder(folder);
  const std::string record = fmt::format(
      "{{\"schema\": \"convoy.sessions/1\", \"results\": \"{}\"}}\n", digest_of(results));
  std::error_code failed;
  if (fs::exists(folder / kSessionsFile, failed) && read_file(folder / kSessionsFile) == record)
    return "";
  remove_events(folder);
  fs::create_directories(folder, failed);
  const std::vector<std::string> names = result_names(results);
  const bool by_point = std::ssize(results.cells) > kMostTensorboardRuns;
  SessionFolder sessions(folder, log);
  int64_t written = 0;
  for (const Point& point : points) {
    double last_seconds = -1;
    for (const CellResult* cell : point.cells) {
      last_seconds = std::max(last_seconds, end_of(*cell));
      if (by_point || !has_result(*cell)) continue;
      sessions.write(point, fs::path(point.folder) / fmt::format("seed-{}", cell->cell.seed),
                     metrics_of(*cell, names), cell->state != CellState::Failed, end_of(*cell));
      ++written;
    }
    const bool any = std::any_of(point.cells.begin(), point.cells.end(),
                                 [](const CellResult* cell) { return has_result(*cell); });
    if (!by_point || !any) continue;
    const Metrics metrics = metrics_of(point, names.front());
    sessions.write(point, point.folder, metrics, !metrics.empty(), last_seconds);
    ++written;
  }
  EventWriter experiment = sessions.fresh("");
  add_experiment(experiment,
                 experiment_of(points, sessions.metric_tags(),
                               fmt::format("{}, version {}", results.workload, results.version)));
  // The record is written last, so that a folder that was written only in part is written again.
  write_file_atomic(folder / kSessionsFile, record);
  return fmt::format(
      "wrote {} for TensorBoard into {}{}", counted(written, "session"), folder.string(),
      by_point ? fmt::format(": one of each point, since there are more than {} cells",
                             kMostTensorboardRuns)
               : "");
}

}  // namespace convoy::sweep
