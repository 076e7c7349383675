// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep show|export`: reads the results of a store.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "convoy/apps/front/standard_streams.h"
#include "convoy/apps/front/sweep/sweep_command.h"
#include "convoy/apps/front/sweep/sweep_list.h"
#include "convoy/apps/front/sweep/sweep_parquet.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/terminal_size.h"
#include "convoy/core/jobs/postgres/connection_url.h"
#include "convoy/farm/experiments/registry.h"
#include "convoy/farm/sweep/results/result_tables.h"
#include "convoy/farm/sweep/results/summary.h"
#include "convoy/farm/sweep/results/tidy_table.h"
#include "convoy/farm/sweep/results/wide_table.h"
#include "convoy/farm/sweep/runner/read_sweep.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using experiments::WorkloadKind;
using sweep::SweepResults;

struct SweepShowFlags : SweepReadFlags {
  bool list = false;
  bool cells = false;
  bool follow = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    SweepReadFlags::fields(visit);
    visit("list", list, "name the sweeps of the store, the last run at the end");
    visit("cells", cells, "also every cell, with its 95 % interval");
    visit("follow", follow,
          "look again every 2 s until every cell has its result; a terminal shows the table, a "
          "file gets a line of counts for each change");
  }
};

struct SweepExportFlags : SweepReadFlags {
  std::string format = "auto";
  std::string output;

  template <class Visitor>
  void fields(Visitor& visit) {
    SweepReadFlags::fields(visit);
    visit("format", format,
          "wide: a column for each seed, of built-in experiments as the prior programs wrote it; "
          "tidy: a row per cell, as JSON with --json or for "
          "a .json file; parquet: the rows of tidy; auto: parquet for a .parquet file, else tidy")
        .one_of({"auto", "wide", "tidy", "parquet"});
    visit("output", output, "file to write; empty = stdout").alias("o");
  }
};

std::unique_ptr<jobs::JobStore> open_for_reading(const SweepReadFlags& flags) {
  const std::string store =
      flags.store.empty() ? (fs::path(flags.results_dir) / "sweep.db").string() : flags.store;
  return jobs::open_store(store_at(store), {.access = jobs::Access::ReadOnly});
}

// A positional word may also name the store.
template <class Flags>
Flags with_store(Flags flags, const Words& words) {
  if (words.size() > 1)
    throw ConfigError(fmt::format("wanted one store at most, found {}", words.size()),
                      {.hint = "name one; `convoy sweep show --list` shows what it holds"});
  if (!words.empty()) flags.store = words.front();
  return flags;
}

std::string problem_words(const sweep::SweepName& name, const std::string& problem) {
  return fmt::format("sweep {}@{} cannot be read: {}", name.name, name.version, problem);
}

// Reads the sweep of --name. Without --name, reads the last readable sweep and warns of the
// unreadable sweeps that it skipped. Always warns of a sweep with a damaged name: its cells may
// belong to the sweep that is shown.
SweepResults read(const Context& context, jobs::JobStore& store, const SweepReadFlags& flags) {
  const std::vector<sweep::SweepName> sweeps = sweep::find_sweeps(store, flags.name);
  for (const sweep::SweepName& one : sweep::stored_sweeps(store))
    if (!one.problem.empty())
      context.log().warning(problem_words(one, one.problem) + "; another may lack cells of it");
  const size_t num_tried = flags.name.empty() ? sweeps.size() : 1;
  std::vector<std::string> passed_over;
  for (size_t tried = 0; num_tried > 1 && tried < num_tried; ++tried) {
    const sweep::SweepName& name = sweeps[sweeps.size() - 1 - tried];
    SweepResults results;
    const std::string why_not = read_if_possible(store, name, results);
    if (!why_not.empty()) {
      if (name.problem.empty()) passed_over.push_back(problem_words(name, why_not));
      continue;
    }
    for (const std::string& line : passed_over) context.log().warning(line);
    if (tried > 0)
      context.log().warning(
          fmt::format("this is sweep {}@{}, which was run before", name.name, name.version));
    return results;
  }
  return sweep::read_sweep(store, sweeps.back(), experiments::workload_of_version);
}

std::vector<std::string> workloads_with_wide_format() {
  std::vector<std::string> names;
  for (const WorkloadKind& kind : experiments::workload_kinds())
    if (kind.wide_csv != nullptr) names.emplace_back(kind.name);
  return names;
}

std::string table_of(const SweepResults& results, const SweepShowFlags& flags) {
  return sweep::table_text(
      results, {.every_cell = flags.cells, .width = terminal_size(STDOUT_FILENO).columns});
}

// Reading the store takes at most a twentieth of the time.
void wait_for_next_look(std::chrono::steady_clock::duration look) {
  std::this_thread::sleep_for(
      std::max<std::chrono::steady_clock::duration>(std::chrono::seconds(2), 20 * look));
}

bool is_open(const SweepResults& results) {
  return results.count(sweep::CellState::Partial) + results.count(sweep::CellState::Former) > 0;
}

int follow_sweep(const Context& context, jobs::JobStore& store, const SweepShowFlags& flags) {
  if (context.common.json)
    throw ConfigError("--follow is for people",
                      {.key = "--follow", .hint = "leave --json out, or look once"});
  const bool on_terminal = ::isatty(STDOUT_FILENO) == 1;
  std::string shown;
  for (;;) {
    const auto begin = std::chrono::steady_clock::now();
    const SweepResults results = read(context, store, flags);
    const bool open = is_open(results);
    std::string line = sweep::counts_text(results);
    if (open &&
        !sweep::has_live_worker(
            store, sweep::stored_sweep(store, sweep::find_sweeps(store, flags.name).back())))
      line += "; no worker is at work on them";
    if (on_terminal)
      fmt::print("\x1b[H\x1b[2J{}\n{}\n", table_of(results, flags), line);
    else if (open && line != std::exchange(shown, line))
      fmt::print("{}\n", line);
    else if (!open)
      fmt::print("{}{}\n", table_of(results, flags), line);
    std::fflush(stdout);
    if (!open) return 0;
    wait_for_next_look(std::chrono::steady_clock::now() - begin);
  }
}

int show_sweep(const Context& context, const SweepShowFlags& given, const Words& words) {
  const SweepShowFlags flags = with_store(given, words);
  const auto store = open_for_reading(flags);
  if (flags.list) return list_sweeps(context, *store);
  if (flags.follow) return follow_sweep(context, *store, flags);
  const SweepResults results = read(context, *store, flags);
  if (context.common.json) {
    fmt::print("{}", sweep::tidy_json_text(results));
    return 0;
  }
  fmt::print("{}", table_of(results, flags));
  context.log().info(fmt::format("{}, version {}", sweep::counts_text(results), results.version));
  return 0;
}

// Returns the format; --format auto takes it from the file's extension. Refuses an extension that
// contradicts --format.
std::string format_of(const SweepExportFlags& flags) {
  const std::string ending = fs::path(flags.output).extension().string();
  const bool is_parquet = ending == ".parquet";
  if (flags.format == "auto" && is_parquet) return "parquet";
  const std::string format = flags.format == "auto" ? "tidy" : flags.format;
  const bool fits = format == "parquet" ? is_parquet || ending.empty()
                                        : !is_parquet && ending != ".xlsx" && ending != ".xls";
  if (!flags.output.empty() && !fits)
    throw ConfigError(
        fmt::format("--format {} does not write a file that ends in {}", flags.format, ending),
        {.hint = "name one that ends in .csv, .json or .parquet"});
  return format;
}

int export_sweep(const Context& context, const SweepExportFlags& given, const Words& words) {
  SweepExportFlags flags = with_store(given, words);
  flags.format = format_of(flags);
  const bool as_json = context.common.json || fs::path(flags.output).extension() == ".json";
  if (as_json && flags.format != "tidy")
    throw ConfigError(
        fmt::format("JSON is written of --format tidy, found --format {}", flags.format),
        {.hint = "leave --format out, or name an output that ends in .csv"});
  const SweepResults results = read(context, *open_for_reading(flags), flags);
  if (flags.format == "parquet") {
    if (flags.output.empty())
      throw ConfigError("--format parquet needs --output FILE",
                        {.hint = "such as --output results.parquet"});
    write_or_print(context, flags.output, tidy_parquet(results));
    return 0;
  }
  if (flags.format == "tidy") {
    write_or_print(context, flags.output,
                   as_json ? sweep::tidy_json_text(results) : sweep::tidy_csv(results));
    return 0;
  }
  if (sweep::is_of_programs(results)) {
    write_or_print(context, flags.output, sweep::wide_csv(results));
    return 0;
  }
  const WorkloadKind* const kind = experiments::find_workload(results.workload);
  if (kind == nullptr || kind->wide_csv == nullptr)
    throw ConfigError(
        fmt::format("workload `{}` has no wide format; the workloads with one are: {}",
                    results.workload, fmt::join(workloads_with_wide_format(), ", ")),
        {.hint = "leave --format out"});
  const std::vector<sweep::NamedFile> files = kind->wide_csv(results);
  if (files.size() != 1 && !flags.output.empty())
    throw ConfigError(fmt::format("the results are {} files", files.size()),
                      {.hint = "leave --output out"});
  for (const sweep::NamedFile& file : files) write_or_print(context, flags.output, file.text);
  return 0;
}

}  // namespace

std::string store_at(const std::string& place) {
  std::error_code none;
  return fs::is_directory(place, none) ? (fs::path(place) / "sweep.db").string() : place;
}

void make_folder_of_store(const std::string& store) {
  const fs::path folder = fs::path(store).parent_path();
  if (folder.empty() || store.find("://") != store.npos || jobs::names_postgres(store)) return;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw IoError(fmt::format("the store's folder could not be made: {}", error.message()),
                  {.file = folder.string(), .hint = "name another store"});
}

SweepResults read_chosen_sweep(const Context& context, const SweepReadFlags& given,
                               const Words& words) {
  const SweepReadFlags flags = with_store(given, words);
  return read(context, *open_for_reading(flags), flags);
}

void write_or_print(const Context& context, const std::string& file, const std::string& text) {
  if (file.empty()) {
    fmt::print("{}", text);
    return;
  }
  write_file_atomic(file, text);
  context.log().info(fmt::format("wrote {}", file));
}

Command sweep_show_action() {
  return {.name = "show",
          .summary = "Show the table of a sweep's results",
          .usage = "convoy sweep show [STORE] [flags]",
          .examples = "convoy sweep show\nconvoy sweep show --store results/sweep.db --json",
          .flags = {flags_of<SweepShowFlags>()},
          .run = with_flags_of<SweepShowFlags, show_sweep>};
}

Command sweep_export_action() {
  return {.name = "export",
          .summary = "Write every cell and its results as a file",
          .usage = "convoy sweep export [STORE] [flags]",
          .examples = "convoy sweep export --output cells.csv",
          .flags = {flags_of<SweepExportFlags>()},
          .run = with_flags_of<SweepExportFlags, export_sweep>};
}

}  // namespace convoy::apps
