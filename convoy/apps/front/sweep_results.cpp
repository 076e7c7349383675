// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep show|plot|export`: reads the results of a store.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "convoy/apps/front/sweep_command.h"
#include "convoy/apps/front/sweep_parquet.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/sweep/results/figure.h"
#include "convoy/sweep/results/summary.h"
#include "convoy/sweep/results/tidy_table.h"
#include "convoy/sweep/results/wide_csv.h"
#include "convoy/sweep/runner/sweep_store.h"
#include "convoy/sweep/runner/workload_registry.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using sweep::SweepResults;

std::unique_ptr<jobs::JobStore> open_for_reading(const SweepReadFlags& flags) {
  const std::string store =
      flags.store.empty() ? (fs::path(flags.results_dir) / "sweep.db").string() : flags.store;
  return jobs::open_store(store, {.access = jobs::Access::ReadOnly});
}

SweepReadFlags read_flags(Context& context, const std::vector<std::string>& arguments) {
  SweepReadFlags flags;
  const std::vector<std::string> rest = context.parse(flags, arguments);
  CONVOY_CHECK(rest.size() <= 1, ConfigError, "wanted one store at most, found {}", rest.size());
  if (!rest.empty()) flags.store = rest.front();
  return flags;
}

SweepResults read(jobs::JobStore& store, const SweepReadFlags& flags) {
  const sweep::StoredSweep found = sweep::find_sweep(store, flags.name);
  const std::string version = found.groups.front().version;
  const std::string& name = found.groups.front().workload;
  // Of a function in a program of somebody's there is nothing to ask but the store.
  const auto workload = sweep::make_workload(name.starts_with("function:") ? "run" : name,
                                             sweep::mode_of_version(version));
  SweepResults results = sweep::read_results(store, found, *workload);
  return results;
}

int list_sweeps(const Context& context, jobs::JobStore& store) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const sweep::SweepName& one : sweep::stored_sweeps(store)) {
    rows.push_back({{"name", one.name}, {"workload", one.workload}, {"version", one.version}});
    if (!context.common.json) fmt::print("{}  {}  {}\n", one.name, one.workload, one.version);
  }
  if (context.common.json) fmt::print("{}\n", rows.dump(2));
  return 0;
}

void write_or_print(const Context& context, const std::string& file, const std::string& text) {
  if (file.empty()) {
    fmt::print("{}", text);
    return;
  }
  write_file_atomic(file, text);
  context.log().info(fmt::format("wrote {}", file));
}

}  // namespace

int sweep_show(Context& context, const std::vector<std::string>& arguments) {
  const SweepReadFlags flags = read_flags(context, arguments);
  const auto store = open_for_reading(flags);
  if (flags.list) return list_sweeps(context, *store);
  const SweepResults results = read(*store, flags);
  if (context.common.json) {
    fmt::print("{}\n", sweep::tidy_json(results).dump(2, ' ', false,
                                                      nlohmann::json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{}", sweep::table_text(results, flags.cells));
  context.log().info(fmt::format("{}, version {}", sweep::counts_text(results), results.version));
  return 0;
}

int sweep_plot(Context& context, const std::vector<std::string>& arguments) {
  const SweepReadFlags flags = read_flags(context, arguments);
  const std::string ending = fs::path(flags.output).extension().string();
  CONVOY_CHECK(flags.output.empty() || ending == ".svg" || ending == ".png", ConfigError,
               "wanted --output with .svg or .png, found `{}`", flags.output);
  const SweepResults results = read(*open_for_reading(flags), flags);
  const sweep::FigureOptions options{
      .width = flags.width, .height = flags.height, .log_y = flags.log_y};
  write_or_print(
      context, flags.output,
      ending == ".png" ? sweep::figure_png(results, options) : sweep::figure_svg(results, options));
  return 0;
}

int sweep_export(Context& context, const std::vector<std::string>& arguments) {
  const SweepReadFlags flags = read_flags(context, arguments);
  const SweepResults results = read(*open_for_reading(flags), flags);
  if (flags.format == "parquet") {
    CONVOY_CHECK(!flags.output.empty(), ConfigError, "--format parquet wants --output FILE");
    write_or_print(context, flags.output, tidy_parquet(results));
    return 0;
  }
  if (flags.format == "tidy") {
    write_or_print(context, flags.output, sweep::tidy_csv(results));
    return 0;
  }
  const bool ssm = results.workload == "ssm";
  CONVOY_CHECK(ssm || results.workload == "mf", ConfigError,
               "the wide format is of workloads ssm and mf; this sweep is of `{}`",
               results.workload);
  const auto files = ssm ? sweep::ssm_wide_csv(results, time_for_names())
                         : std::vector<sweep::NamedFile>{sweep::mf_wide_csv(results)};
  CONVOY_CHECK(files.size() == 1 || flags.output.empty(), ConfigError,
               "{} teacher ranks are {} files; leave --output away", files.size(), files.size());
  for (const sweep::NamedFile& file : files) write_or_print(context, flags.output, file.text);
  return 0;
}

}  // namespace convoy::apps
