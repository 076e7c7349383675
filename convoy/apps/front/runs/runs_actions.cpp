// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/runs/runs_actions.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/apps/front/runs/rollout_rows.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/text_table.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/core/telemetry/runs/run_cleaning.h"
#include "convoy/core/telemetry/runs/run_comparison.h"
#include "convoy/core/telemetry/runs/run_rollouts.h"
#include "convoy/data/datasets/formats/row_writer.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;
using telemetry::RunHistory;

std::vector<RunHistory> runs_named(const RunsFolderFlags& flags,
                                   const std::vector<std::string>& words) {
  std::vector<RunHistory> runs;
  std::set<fs::path> named;
  for (const std::string& word : words) {
    const fs::path folder = telemetry::resolve_run(word, flags.dir);
    if (!named.insert(fs::weakly_canonical(folder)).second)
      throw ConfigError(fmt::format("run `{}` is named twice", word),
                        {.hint = "name each run once"});
    runs.push_back(telemetry::read_run(folder));
  }
  return runs;
}

ordered_json json_of(const std::vector<telemetry::ComparedValue>& lines) {
  ordered_json object = ordered_json::object();
  for (const auto& line : lines) object[line.name] = line.values;
  return object;
}

void print_lines(const std::string& heading, const std::vector<std::string>& runs,
                 const std::vector<telemetry::ComparedValue>& lines) {
  std::vector<std::vector<std::string>> rows = {{heading}};
  rows[0].insert(rows[0].end(), runs.begin(), runs.end());
  for (const auto& line : lines) {
    rows.push_back({line.name});
    for (const std::string& value : line.values) rows.back().push_back(value.empty() ? "-" : value);
  }
  fmt::print("{}", text_table(rows));
}

// Writes one row per step and evaluation, with the recorded values.
int64_t write_events(data::RowWriter& writer, const RunHistory& run) {
  int64_t rows = 0;
  const fs::path events = run.path / "events.jsonl";
  if (!fs::exists(events)) return 0;
  for (const ordered_json& event : telemetry::read_events(events)) {
    if (event["event"] != "step" && event["event"] != "eval") continue;
    ordered_json row = {{"run", run.name}};
    for (const auto& [name, value] : event.items())
      if (!value.is_structured()) row[name] = value;
    writer.write(row);
    ++rows;
  }
  return rows;
}

// Calls `damaged` with each damaged file's error.
int64_t write_rollouts(data::RowWriter& writer, const RunHistory& run,
                       const std::function<void(const DataError&)>& damaged) {
  int64_t rows = 0;
  if (const auto missing = telemetry::missing_rollouts(run.path)) damaged(*missing);
  for (const int64_t step : telemetry::rollout_steps(run.path)) {
    const auto damage = telemetry::for_each_rollout(run.path, step, [&](const ordered_json& row) {
      ordered_json named = {{"run", run.name}};
      named.update(row);
      writer.write(named);
      ++rows;
    });
    if (damage) damaged(*damage);
  }
  return rows;
}

// Writes rows for training, and says what makes none. Damage is reported as by write_rollouts().
int64_t write_training_rows(data::RowWriter& writer, const RunsExportFlags& flags,
                            const std::vector<RunHistory>& runs,
                            const std::function<void(const DataError&)>& damaged, const Log& log) {
  RolloutRows rows(writer, flags.as == "sft" ? RolloutForm::Sft : RolloutForm::Pairs,
                   flags.min_reward);
  for (const RunHistory& run : runs) {
    if (const auto missing = telemetry::missing_rollouts(run.path)) damaged(*missing);
    for (const int64_t step : telemetry::rollout_steps(run.path)) {
      std::vector<ordered_json> texts;
      const auto damage = telemetry::for_each_rollout(
          run.path, step, [&](ordered_json row) { texts.push_back(std::move(row)); });
      if (damage) damaged(*damage);
      rows.add_step(texts);
    }
  }
  const RolloutRowCounts& counts = rows.counts();
  if (counts.rows == 0 && counts.texts > 0)
    throw DataError(
        flags.as == "sft"
            ? fmt::format("no whole text has a reward of {:g} or more; the best has {:g}",
                          flags.min_reward, counts.best_reward)
            : "no problem has whole texts of different rewards in one step",
        {.key = "--as", .hint = "lower --min-reward, or take the other form"});
  log.info(fmt::format("{} of {}; left out: {} cut, {} of an earlier row",
                       counted(counts.rows, "row"), counted(counts.texts, "text"), counts.cut,
                       counts.repeated));
  return counts.rows;
}

void check_export(const RunsExportFlags& flags) {
  if (flags.output.empty())
    throw ConfigError(
        "runs export needs --output",
        {.key = "--output", .hint = "name a file that ends in .csv, .parquet or .jsonl"});
  data::require_row_format(flags.output);
  if (flags.min_reward != RunsExportFlags().min_reward && flags.as != "sft")
    throw ConfigError("--min-reward has no effect without --as sft",
                      {.key = "--min-reward", .hint = "remove it, or add --as sft"});
  if (!flags.force && fs::exists(flags.output))
    throw ConfigError("the output exists already",
                      {.file = flags.output, .hint = "--force overwrites it; or name a new one"});
}

bool agrees(const std::string& question) {
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void print_plan(const Context& context, const std::vector<telemetry::RemovableRun>& chosen) {
  if (context.common.json) {
    json list = json::array();
    for (const auto& run : chosen)
      list.push_back({{"path", run.path.string()}, {"reason", run.reason}, {"bytes", run.bytes}});
    fmt::print("{}\n", list.dump(2, ' ', false, json::error_handler_t::replace));
    return;
  }
  std::vector<std::vector<std::string>> rows = {{"REMOVED", "SIZE", "WHY"}};
  for (const auto& run : chosen)
    rows.push_back({run.path.string(), telemetry::bytes_text(run.bytes), run.reason});
  fmt::print("{}", text_table(rows));
  std::fflush(stdout);
}

}  // namespace

int compare_named_runs(const Context& context, const RunsDrawingFlags& flags,
                       const std::vector<std::string>& words) {
  if (words.size() < 2)
    throw ConfigError(fmt::format("runs compare needs at least two runs, found {}", words.size()),
                      {.hint = "convoy runs compare RUN RUN; `convoy runs list` shows them"});
  const std::vector<RunHistory> runs = runs_named(flags, words);
  const telemetry::RunComparison comparison = telemetry::compare_runs(runs);
  if (context.common.json) {
    ordered_json figures = json_of(comparison.figures);
    figures.update(json_of(comparison.metrics));
    const ordered_json report = {{"runs", comparison.runs},
                                 {"settings", json_of(comparison.settings)},
                                 {"figures", std::move(figures)},
                                 {"without_settings", comparison.without_settings}};
    fmt::print("{}\n", report.dump(2, ' ', false, json::error_handler_t::replace));
  } else {
    if (!comparison.without_settings.empty())
      fmt::print("settings are not compared: {} recorded none\n",
                 fmt::join(comparison.without_settings, " and "));
    else if (comparison.settings.empty())
      fmt::print("the settings are the same\n");
    else
      print_lines("SETTING", comparison.runs, comparison.settings);
    fmt::print("\n");
    print_lines("FIGURE", comparison.runs, telemetry::lines_to_tell(comparison));
  }
  const bool any_curve = std::any_of(runs.begin(), runs.end(), [](const RunHistory& run) {
    return !run.train_loss.empty() || !run.eval_loss.empty();
  });
  const bool drawn = flags.ascii || !flags.output.empty() ||
                     (!context.common.json && ::isatty(STDOUT_FILENO) == 1);
  if (!any_curve || !drawn) return 0;
  if (flags.output.empty()) fmt::print("\n");
  return draw_series(context, flags, "loss", charts::loss_series(runs),
                     fmt::format("{}", fmt::join(comparison.runs, ", ")));
}

int export_runs(const Context& context, const RunsExportFlags& flags,
                const std::vector<std::string>& words) {
  check_export(flags);
  const bool makes_rows = flags.as != "rollouts";
  const bool of_texts = flags.rollouts || makes_rows;
  const std::vector<RunHistory> runs =
      words.empty() ? readable_runs(flags.dir, context.log()) : runs_named(flags, words);
  const auto writer = data::create_rows(flags.output);
  int64_t rows = 0;
  // As with damaged events: of a run that is named they end the export.
  const auto damaged = [&](const DataError& error) {
    if (!words.empty()) throw error;
    context.log().warning(error.sentence());
  };
  if (makes_rows) rows = write_training_rows(*writer, flags, runs, damaged, context.log());
  for (const RunHistory& run : runs)
    if (!makes_rows)
      rows += of_texts ? write_rollouts(*writer, run, damaged) : write_events(*writer, run);
  if (rows <= 0)
    throw DataError(
        fmt::format("no run under {} has {}", flags.dir,
                    of_texts ? "a text that a step learnt from" : "a step or an evaluation"),
        {.hint = "name a run with --dir FOLDER or by its name"});
  writer->finish();
  context.log().info(fmt::format("wrote {} of {} to {}", counted(rows, "row"),
                                 counted(static_cast<int64_t>(runs.size()), "run"), flags.output));
  return 0;
}

int clean_runs(const Context& context, const RunsCleanFlags& flags,
               const std::vector<std::string>& words) {
  const telemetry::CleaningRequest request = {.keep_best = flags.keep_best,
                                              .older_than_days = flags.older_than,
                                              .only_checkpoints = flags.checkpoints};
  if (!words.empty() && (request.keep_best != 0 || request.older_than_days != 0))
    throw ConfigError("runs clean takes either runs, or --keep-best and --older-than",
                      {.hint = "leave the runs or these flags out"});
  const std::vector<telemetry::RemovableRun> chosen =
      words.empty() ? telemetry::removable_runs(readable_runs(flags.dir, context.log()), request,
                                                wall_clock_seconds())
                    : telemetry::named_runs(runs_named(flags, words), request);
  if (chosen.empty()) {
    context.log().info(fmt::format("nothing to remove under {}", flags.dir));
    return 0;
  }
  print_plan(context, chosen);
  if (flags.dry_run) return 0;
  const std::string what = counted(static_cast<int64_t>(chosen.size()),
                                   flags.checkpoints ? "folder of checkpoints" : "run",
                                   flags.checkpoints ? "folders of checkpoints" : "runs");
  if (!flags.yes) {
    if (const std::string why = context.why_no_question(); !why.empty())
      throw ConfigError(fmt::format("{}, and {} would be removed", why, what),
                        {.hint = "--yes removes without a question, --dry-run only lists"});
    if (!agrees(fmt::format("remove {}?", what))) {
      context.log().info("nothing was removed");
      return 0;
    }
  }
  for (const telemetry::RemovableRun& run : chosen) telemetry::remove_run(run);
  context.log().info(fmt::format("removed {}", what));
  return 0;
}

}  // namespace convoy::apps
