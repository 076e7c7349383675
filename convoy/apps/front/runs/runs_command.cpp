// SPDX-License-Identifier: Apache-2.0
//
// `convoy runs ACTION [RUN ...]`: finds and reads past runs.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "convoy/apps/front/harness/run_tasks.h"
#include "convoy/apps/front/rejection/rejection_rounds.h"
#include "convoy/apps/front/runs/runs_actions.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/text_table.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/core/charts/plot.h"
#include "convoy/core/telemetry/logs/event_tail.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/core/telemetry/runs/run_history.h"
#include "convoy/core/telemetry/runs/run_rollouts.h"
#include "convoy/farm/process/results/run_report.h"
#include "convoy/machine/monitor/watch/job_report.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;
using telemetry::RunHistory;

struct RunsPlotFlags : RunsDrawingFlags {
  std::string metric = "loss";

  template <class Visitor>
  void fields(Visitor& visit) {
    RunsDrawingFlags::fields(visit);
    visit("metric", metric, "which curve")
        .one_of({"loss", "learning_rate", "grad_norm", "tokens_per_second", "reward"});
  }
};

struct RunsTailFlags : RunsFolderFlags {
  bool follow = false;
  int64_t lines = 10;

  template <class Visitor>
  void fields(Visitor& visit) {
    RunsFolderFlags::fields(visit);
    visit("follow", follow, "follow the run until it ends").alias("f");
    visit("lines", lines, "rows shown first").at_least(0).alias("n").alias("limit");
  }
};

json record_of(const RunHistory& run) {
  json record = {{"name", run.name},
                 {"path", run.path.string()},
                 {"state", telemetry::run_state_word(run.state)},
                 {"steps", run.steps},
                 {"total_steps", run.total_steps},
                 {"created", run.created_seconds},
                 {"updated", run.updated_seconds},
                 {"last_loss", nullptr},
                 {"best_eval_loss", nullptr},
                 {"best_eval_step", nullptr}};
  if (!run.train_loss.empty()) record["last_loss"] = run.train_loss.back().value;
  if (const auto best = telemetry::lowest(run.eval_loss)) {
    record["best_eval_loss"] = best->value;
    record["best_eval_step"] = best->step;
  }
  if (!run.reward.empty()) record["last_reward"] = run.reward.back().value;
  if (!run.failure.empty()) record["failure"] = run.failure;
  return record;
}

std::string loss_text(const json& value) {
  return value.is_number() ? fmt::format("{:.4f}", value.get<double>()) : "-";
}

std::string age_text(const RunHistory& run) {
  if (run.updated_seconds == 0) return "-";
  return telemetry::duration_text(wall_clock_seconds() - run.updated_seconds);
}

int list(const Context& context, const RunsFolderFlags& flags, const Words& words) {
  if (!words.empty())
    throw ConfigError("runs list takes no run",
                      {.hint = fmt::format("`convoy runs show {}` looks at one", words[0])});
  const std::vector<RunHistory> runs = readable_runs(flags.dir, context.log());
  if (context.common.json) {
    json records = json::array();
    for (const RunHistory& run : runs) records.push_back(record_of(run));
    fmt::print("{}\n", records.dump(2, ' ', false, json::error_handler_t::replace));
    return 0;
  }
  if (runs.empty()) {
    context.log().info(fmt::format("no runs under {}; --dir names another folder", flags.dir));
    return 0;
  }
  const bool has_rewards = std::any_of(runs.begin(), runs.end(),
                                       [](const RunHistory& run) { return !run.reward.empty(); });
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "STATE", "STEPS", "LOSS", "BEST EVAL", "AGE"}};
  if (has_rewards) rows[0].insert(rows[0].end() - 1, "REWARD");
  for (const RunHistory& run : runs) {
    const json record = record_of(run);
    rows.push_back({run.name, telemetry::run_state_word(run.state), telemetry::steps_text(run),
                    loss_text(record["last_loss"]), loss_text(record["best_eval_loss"]),
                    age_text(run)});
    if (has_rewards)
      rows.back().insert(rows.back().end() - 1, loss_text(record.value("last_reward", json())));
  }
  fmt::print("{}", text_table(rows, {.first_number = 2}));
  return 0;
}

std::string scalar_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Prints a value on the field's line; an object as a table below it.
void print_field(const std::string& name, const json& value) {
  if (!value.is_object() && !value.is_array()) {
    fmt::print("{:<16}{}\n", name, scalar_text(value));
    return;
  }
  if (value.is_array()) {
    std::string items;
    for (const json& item : value) items += (items.empty() ? "" : ", ") + scalar_text(item);
    fmt::print("{:<16}{}\n", name, items);
    return;
  }
  size_t width = 0;
  for (const auto& [key, inner] : value.items()) width = std::max(width, key.size());
  fmt::print("{}\n", name);
  for (const auto& [key, inner] : value.items())
    fmt::print("  {:<{}}  {}\n", key, width, scalar_text(inner));
}

void print_devices(const ordered_json& report) {
  for (const std::string& line : monitor::job_report_lines(report)) fmt::print("{}\n", line);
  fmt::print("{}", monitor::job_report_table(report));
}

// Returns `last` when no run is named, else `words`.
Words or_last(const Words& words) { return words.empty() ? Words{"last"} : words; }

fs::path one_run(std::string_view action, const RunsFolderFlags& flags, const Words& words) {
  const Words named = or_last(words);
  if (named.size() != 1)
    throw ConfigError(fmt::format("runs {} takes one run, found {}", action, named.size()),
                      {.hint = "name one; `convoy runs list` shows them"});
  return telemetry::resolve_run(named.front(), flags.dir);
}

// Prints the best, the worst and the longest text of the last step that has texts; without rewards
// the longest alone.
void print_rollouts(const fs::path& run, const Log& log) {
  const std::vector<int64_t> steps = telemetry::rollout_steps(run);
  if (steps.empty()) return;
  fmt::print("\ntexts of step {} (`convoy runs export --rollouts` writes all)\n", steps.back());
  const telemetry::NotableRollouts notable = telemetry::notable_rollouts(run, steps.back(), 1);
  if (notable.damage) log.warning(notable.damage->sentence());
  if (const auto missing = telemetry::missing_rollouts(run)) log.warning(missing->sentence());
  for (const ordered_json& row : notable.rows)
    fmt::print("{:<16}{}{} tokens, row {}: {}\n", row.value("shown_as", ""),
               row.contains("reward") ? fmt::format("reward {}, ", row.value("reward", 0.0)) : "",
               row.value("text_tokens", int64_t{0}), row.value("row", int64_t{0}),
               ordered_json(row.value("text", ""))
                   .dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

int show(const Context& context, const RunsFolderFlags& flags, const Words& words) {
  const RunHistory run = telemetry::read_run(one_run("show", flags, words));
  const json identity = telemetry::read_run_record(run.path / "run.json");
  const json metrics = telemetry::read_run_record(run.path / "metrics.json");
  if (context.common.json) {
    json record = record_of(run);
    record["identity"] = identity;
    record["metrics"] = metrics;
    if (const ordered_json tasks = read_run_tasks(run.path); !tasks.is_null())
      record["tasks"] = tasks;
    fmt::print("{}\n", record.dump(2, ' ', false, json::error_handler_t::replace));
    return 0;
  }
  const json record = record_of(run);
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("{:<16}{}\n", name, value);
  };
  line("run", run.name);
  line("folder", run.path.string());
  line("state", telemetry::run_state_word(run.state));
  if (!run.failure.empty()) line("failure", run.failure);
  line("steps", telemetry::steps_text(run));
  line("last loss", loss_text(record["last_loss"]));
  if (record.contains("last_reward")) line("last reward", loss_text(record["last_reward"]));
  if (record["best_eval_loss"].is_number())
    line("best eval loss", fmt::format("{} at step {}", loss_text(record["best_eval_loss"]),
                                       record["best_eval_step"].get<int64_t>()));
  line("last event", age_text(run) + " ago");
  if (identity.is_object())
    for (const char* key : {"version", "task", "created", "world_size", "hosts", "devices",
                            "threads", "data_hashes", "stamp"})
      if (identity.contains(key) && !identity[key].empty()) print_field(key, identity[key]);
  if (metrics.is_object() && !metrics.empty()) {
    fmt::print("\n");
    for (const auto& [name, value] : metrics.items()) {
      if (name == "devices") {
        print_devices(value);
        continue;
      }
      if (name == "rounds") {
        for (const std::string& text : round_lines(value)) fmt::print("{}\n", text);
        continue;
      }
      if (name != "process") {
        fmt::print("{:<28}{}\n", name, scalar_text(value));
        continue;
      }
      for (const std::string& text : process::report_lines(value)) fmt::print("{}\n", text);
    }
  }
  if (const std::string table = run_tasks_table(read_run_tasks(run.path)); !table.empty())
    fmt::print("\n{}", table);
  print_rollouts(run.path, context.log());
  return 0;
}

std::vector<charts::PlotSeries> series_of(const std::vector<RunHistory>& runs,
                                          const std::string& metric) {
  if (metric == "loss") return charts::loss_series(runs);
  std::vector<charts::PlotSeries> series;
  int color = 0;
  for (const RunHistory& run : runs) {
    const auto& points = metric == "learning_rate" ? run.learning_rate
                         : metric == "grad_norm"   ? run.grad_norm
                         : metric == "reward"      ? run.reward
                                                   : run.tokens_per_second;
    series.push_back({.label = runs.size() > 1 ? run.name : metric,
                      .points = charts::plot_points(points),
                      .color = color++,
                      .smooth = metric != "learning_rate"});
  }
  return series;
}

int plot(const Context& context, const RunsPlotFlags& flags, const Words& words) {
  std::vector<RunHistory> runs;
  for (const std::string& word : or_last(words))
    runs.push_back(telemetry::read_run(telemetry::resolve_run(word, flags.dir)));
  return draw_series(context, flags, flags.metric, series_of(runs, flags.metric),
                     runs.size() == 1 ? runs[0].name : fmt::format("{} runs", runs.size()));
}

int tail(const Context& context, const RunsTailFlags& flags, const Words& words) {
  const fs::path run = one_run("tail", flags, words);
  telemetry::EventTail events(run / "events.jsonl");
  std::vector<ordered_json> rows = events.new_rows();
  const auto shown = std::min<size_t>(rows.size(), static_cast<size_t>(flags.lines));
  rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(shown));
  while (true) {
    for (const ordered_json& row : rows)
      fmt::print("{}\n", context.common.json
                             ? row.dump(-1, ' ', false, ordered_json::error_handler_t::replace)
                             : telemetry::event_text(row));
    std::fflush(stdout);
    if (!flags.follow) return 0;
    const bool held = telemetry::run_folder_is_held(run);
    rows = events.new_rows();
    if (rows.empty() && !held) return 0;
    if (rows.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
}

}  // namespace

Command runs_command() {
  return {.name = "runs",
          .summary = "List, show, compare and clean up past runs",
          .usage =
              "convoy runs [list|show|plot|tail|compare|export|clean|serve|watch] [RUN ...] "
              "[flags]",
          .examples =
              "convoy runs list\n"
              "convoy runs plot last --output loss.svg\n"
              "convoy runs tail sums --follow",
          .actions =
              {
                  {.name = "list",
                   .summary = "List the runs of a folder: state, steps, losses",
                   .usage = "convoy runs [list] [--dir D]",
                   .examples = "convoy runs list\nconvoy runs list --dir experiments --json",
                   .flags = {flags_of<RunsFolderFlags>()},
                   .run = with_flags_of<RunsFolderFlags, list>},
                  {.name = "show",
                   .summary = "Show settings, hosts and figures of one run",
                   .usage = "convoy runs show [RUN]   (a folder, a name, a prefix, or last)",
                   .examples = "convoy runs show\nconvoy runs show sums --json",
                   .flags = {flags_of<RunsFolderFlags>()},
                   .run = with_flags_of<RunsFolderFlags, show>},
                  {.name = "plot",
                   .summary = "Draw curves of runs, as a figure or in the terminal",
                   .usage = "convoy runs plot [RUN ...] [--metric M] [--output FILE]",
                   .examples = "convoy runs plot last --output loss.svg\n"
                               "convoy runs plot sums-a sums-b --metric grad_norm --log-y --ascii",
                   .flags = {flags_of<RunsPlotFlags>()},
                   .run = with_flags_of<RunsPlotFlags, plot>},
                  {.name = "tail",
                   .summary = "Print the last events of a run",
                   .usage = "convoy runs tail [RUN] [--follow] [--lines N]",
                   .examples =
                       "convoy runs tail sums --follow\nconvoy runs tail last --lines 100 --json",
                   .flags = {flags_of<RunsTailFlags>()},
                   .run = with_flags_of<RunsTailFlags, tail>},
                  {.name = "compare",
                   .summary = "Compare settings, figures and curves of runs",
                   .usage = "convoy runs compare RUN RUN ... [--output FILE]",
                   .examples = "convoy runs compare sums-a sums-b\n"
                               "convoy runs compare sums-a sums-b --output both.svg",
                   .flags = {flags_of<RunsDrawingFlags>()},
                   .run = with_flags_of<RunsDrawingFlags, compare_named_runs>},
                  {.name = "export",
                   .summary = "Write steps and evaluations as one table",
                   .usage = "convoy runs export [RUN ...] --output FILE",
                   .examples = "convoy runs export --output runs.csv\n"
                               "convoy runs export sums-a sums-b --output curves.parquet --force",
                   .flags = {flags_of<RunsExportFlags>()},
                   .run = with_flags_of<RunsExportFlags, export_runs>},
                  {.name = "clean",
                   .summary = "Remove runs or their checkpoints, after a question",
                   .usage = "convoy runs clean [RUN ...] [--keep-best N] [--older-than DAYS] "
                            "[--checkpoints]",
                   .examples = "convoy runs clean --keep-best 3 --dry-run\n"
                               "convoy runs clean sums-a --checkpoints --yes",
                   .flags = {flags_of<RunsCleanFlags>()},
                   .run = with_flags_of<RunsCleanFlags, clean_runs>},
                  {.name = "serve",
                   .summary = "Serve a page of the runs for browsers, until Ctrl-C",
                   .usage = "convoy runs serve [--dir D] [--port N] [--chat]",
                   .examples = "convoy runs serve\nconvoy runs serve --dir . --port 0\nconvoy runs "
                               "serve --chat",
                   .flags = {flags_of<RunsServeFlags>()},
                   .run = with_flags_of<RunsServeFlags, serve_runs>},
                  runs_watch_action(),
              },
          .usual_action = "list",
          .group = HelpGroup::Look};
}

}  // namespace convoy::apps
