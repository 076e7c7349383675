// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep WORKLOAD|run|show|plot|export|merge|recover|check`: experiments over seeds and
// parameters.
#include "convoy/apps/front/sweep/sweep_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/standard_streams.h"
#include "convoy/apps/front/sweep/sweep_dry_run.h"
#include "convoy/apps/front/sweep/sweep_end.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/terminal_size.h"
#include "convoy/core/config/resolve.h"
#include "convoy/core/pictures/picture.h"
#include "convoy/farm/experiments/registry.h"
#include "convoy/farm/sweep/command/command_grid.h"
#include "convoy/farm/sweep/command/command_workload.h"
#include "convoy/farm/sweep/command/persistent_program.h"
#include "convoy/farm/sweep/command/program_record.h"
#include "convoy/farm/sweep/results/csv_text.h"
#include "convoy/farm/sweep/results/figure.h"
#include "convoy/farm/sweep/results/result_tables.h"
#include "convoy/farm/sweep/results/summary.h"
#include "convoy/farm/sweep/results/tensorboard_sessions.h"
#include "convoy/farm/sweep/results/tidy_table.h"
#include "convoy/farm/sweep/results/wide_table.h"
#include "convoy/farm/sweep/runner/run_flags.h"
#include "convoy/farm/sweep/runner/slow_notice.h"
#include "convoy/farm/sweep/runner/sweep_run.h"
#include "convoy/launch/place/environment_resolver.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using experiments::WorkloadFlags;
using experiments::WorkloadKind;
using sweep::RunFlags;
using sweep::SweepPlan;
using sweep::SweepResults;

std::string store_of(const RunFlags& flags, const std::string& checkpoint_dir) {
  if (!flags.store.empty()) return flags.store;
  const fs::path folder = checkpoint_dir.empty() ? flags.results_dir : checkpoint_dir;
  return (folder / "sweep.db").string();
}

// Makes the folder of the default store. The folder of a store that the user names must already
// exist.
void make_store_folder(const RunFlags& flags, const std::string& store) {
  if (flags.store.empty()) make_folder_of_store(store);
}

// Checks this first: an unwritable output folder should not be discovered after a week of
// computing.
void check_folder(const std::string& flag, const std::string& folder) {
  if (folder.empty()) return;
  try {
    AtomicFile(fs::path(folder) / "can-be-written").write("yes");
  } catch (const IoError& error) {
    throw IoError(fmt::format("{} {}: {}", flag, folder, error.what()),
                  {.file = folder, .hint = fmt::format("name another folder with {}", flag)});
  }
}

sweep::RunOptions run_options(const Context& context, const RunFlags& flags,
                              const std::string& store) {
  sweep::RunOptions options;
  options.store = store;
  options.worker_command = {context.program.string(), "sweep-worker"};
  options.workers = flags.workers;
  options.cores_per_worker = flags.cores_per_worker;
  options.timeout_seconds = flags.timeout;
  options.max_attempts = flags.max_attempts;
  options.keep_going = flags.keep_going;
  options.lease_seconds = flags.lease;
  options.log_folder = flags.log_dir;
  options.log_level = sweep::severity_of(flags.log_level, "log_level");
  options.color = telemetry::color_choice(context.common.color);
  options.log = context.log();
  return options;
}

SweepResults results_of(const Context& context, const sweep::RunReport& report,
                        const sweep::Workload& workload, const std::string& store_name) {
  const sweep::SlowNotice notice(
      context.log(), fmt::format("reading the results of {}", counted(report.cells, "cell")));
  const auto store = jobs::open_store(store_name);
  return sweep::read_results(*store, report.sweep, workload);
}

void print_results(const Context& context, const SweepResults& results) {
  if (context.common.json) {
    fmt::print("{}", sweep::tidy_json_text(results));
  } else {
    fmt::print("{}", sweep::table_text(results, {.width = terminal_size(STDOUT_FILENO).columns}));
  }
  std::fflush(stdout);
}

std::string again_hint(const sweep::RunReport& report) {
  return report.failed > 0 ? "; the same command tries them again" : "";
}

// Prints the last line. Throws the error of a sweep with failed cells, or of one that was stopped.
SweepEnd say_how_it_ended(const Context& context, const sweep::RunReport& report,
                          const SweepResults& results, bool redo = false) {
  std::string counts = sweep::counts_text(results);
  if (report.stop_signal != 0)
    throw StopRequest(
        fmt::format("stopped by {}: {}", processes::signal_name(report.stop_signal), counts),
        {.hint = redo ? "the same command without --redo goes on" : "the same command goes on"});
  if (!report.ran) {
    if (const std::string when = sweep::finished_text(results); !when.empty())
      counts += ", " + when;
    counts += "; nothing was run";
  }
  if (report.failed_alike)
    counts +=
        fmt::format("; stopped, as the first {} failed in one way", counted(report.failed, "cell"));
  const std::string line = fmt::format("{}{}", counts, again_hint(report));
  if (report.failed == 0) {
    context.log().info(line);
    return {.code = 0, .text = line, .ran = report.ran};
  }
  const sweep::CellResult* first = nullptr;
  for (const sweep::CellResult& cell : results.cells)
    if (first == nullptr && cell.state == sweep::CellState::Failed) first = &cell;
  throw Error(ExitCode::Numeric, "failed_cells",
              first == nullptr
                  ? line
                  : fmt::format("{}. The first: {}", line, sweep::failure_text(*first->failure)),
              {.hint = report.failed_alike
                           ? "--keep-going computes the others; `convoy sweep show` lists them"
                           : "`convoy sweep show` lists them"});
}

// Leaves a file alone that already has this text.
void write_file(const Context& context, const fs::path& folder, const sweep::NamedFile& file) {
  std::error_code none;
  if (fs::exists(folder / file.name, none) && read_file(folder / file.name) == file.text) return;
  write_file_atomic(folder / file.name, file.text);
  context.log().info(fmt::format("wrote {}", (folder / file.name).string()));
}

void write_outputs(const Context& context, const SweepPlan& plan, const RunFlags& run,
                   const WorkloadFlags& flags, const SweepResults& results) {
  const std::string mark = plan.file_mark();
  for (const sweep::NamedFile& file : flags.tables(results)) {
    const fs::path name = file.name;
    write_file(
        context, run.results_dir,
        {fmt::format("{}_{}{}", name.stem().string(), mark, name.extension().string()), file.text});
  }
  const std::string figures_dir = flags.places().figures_dir;
  if (figures_dir.empty()) return;
  const std::string svg = sweep::figure_svg(results, {});
  for (const char* const ending : {".svg", ".png", ".pdf"}) {
    const std::string name = fmt::format("{}-{}{}", plan.label, mark, ending);
    if (pictures::can_draw(context.log(), name))
      write_file(context, figures_dir, {name, pictures::picture_for(name, svg)});
  }
  pictures::warn_of_boxes(context.log(), fmt::format("{}-{}.png", plan.label, mark), svg);
}

void write_for_tensorboard(const Context& context, const RunFlags& run,
                           const SweepResults& results) {
  if (run.tensorboard_dir.empty()) return;
  const std::string line =
      sweep::write_tensorboard_sessions(results, run.tensorboard_dir, context.log());
  if (!line.empty()) context.log().info(line);
}

void read_file_of_flags(config::Section list, RunFlags& run, const fs::path& file) {
  const config::Section of_run = config::list_fields(run);
  list.fields.insert(list.fields.end(), of_run.fields.begin(), of_run.fields.end());
  // "num-seeds": flags have the same spelling.
  for (config::Field& field : list.fields)
    if (field.name.find('_') != std::string::npos)
      field.aliases.push_back(config::dashed(field.name));
  const auto refuse_empty_lists = [](const config::Resolved& resolved, config::ErrorList& errors) {
    const nlohmann::json values = resolved.json();
    for (const config::ResolvedValue& value : resolved.values())
      if (!value.file.empty() && value.readable && values[value.path].is_array() &&
          values[value.path].empty())
        errors.add(ConfigError(fmt::format("{}: wanted at least one entry, found none", value.path),
                               resolved.location(value.path, "write an entry, or remove the key")));
  };
  config::resolve(list, {.file = file}, refuse_empty_lists);
}

// The terminal shows what the log does, unless -q or -v says otherwise.
void apply_log_level(Context& context, const RunFlags& run) {
  const sweep::Severity least = sweep::severity_of(run.log_level, "log_level");
  CommonFlags& common = context.common;
  if (common.quiet || common.verbose) return;
  common.verbose = least == sweep::Severity::Debug;
  common.quiet = least > sweep::Severity::Info;
}

// Reads the file of --config first; the command line overrides it, as with the guide's argparse.
void read_config(Context& context, WorkloadFlags& flags, RunFlags& run,
                 const std::vector<std::string>& arguments) {
  const auto parse = [&] {
    return config::parse_flags(
        {flags.section(), config::list_fields(run), config::list_fields(context.common)},
        arguments);
  };
  parse();
  const fs::path file = flags.config_file();
  flags.start_over();
  if (!file.empty()) {
    run = {};
    read_file_of_flags(flags.section(), run, file);
  }
  const std::vector<std::string> rest = parse();
  if (!rest.empty())
    throw ConfigError(fmt::format("this sweep takes flags only, found `{}`", rest.front()),
                      {.hint = "every value has a flag: --help lists them"});
}

// True when the command line sets `key`, in either spelling.
bool is_given(const std::vector<std::string>& arguments, const std::string& key) {
  return std::any_of(arguments.begin(), arguments.end(), [&](std::string argument) {
    argument = argument.substr(0, argument.find('='));
    std::replace(argument.begin(), argument.end(), '-', '_');
    return argument == "__" + key || argument == "__no_" + key;
  });
}

// Points an error about a value to the place where the value was written.
SweepPlan plan_of(const Context& context, const WorkloadFlags& flags,
                  const std::vector<std::string>& arguments) {
  const sweep::SlowNotice notice(context.log(), "planning the cells");
  try {
    return flags.plan();
  } catch (ConfigError& error) {
    const std::string& key = error.location().key;
    if (error.location().file.empty() && !flags.config_file().empty() && !key.empty() &&
        !is_given(arguments, key))
      error.location().file = flags.config_file();
    throw;
  }
}

// Allows `flag` without a value, which means `latest`.
std::vector<std::string> with_latest(std::vector<std::string> arguments, const std::string& flag) {
  if (flag.empty()) return arguments;
  for (size_t at = 0; at < arguments.size(); ++at) {
    std::string& argument = arguments[at];
    if (argument != "--" + flag && argument != "--" + config::dashed(flag)) continue;
    const bool bare = at + 1 == arguments.size() || arguments[at + 1].starts_with("--");
    if (bare) argument += "=latest";
  }
  return arguments;
}

// Lines that the terminal showed before the run. The log repeats them.
using Told = std::vector<std::pair<sweep::Severity, std::string>>;

int run_plan(Context& context, const SweepPlan& plan, const RunFlags& run,
             const WorkloadFlags& flags, Told told) {
  const experiments::SweepPlaces output = flags.places();
  const std::string store = store_of(run, output.checkpoint_dir);
  sweep::RunOptions options = run_options(context, run, store);
  options.compute_device = output.compute_device;
  options.why_no_gpus = [] {
    return experiments::cuda::why_no_gpus(
        experiments::cuda::driver_library(launch::process_environment()));
  };
  options.max_gpus = output.max_gpus;
  options.told = std::move(told);
  if (run.dry_run)
    return print_dry_run(context, plan, options, experiments::find_workload(plan.workload));
  check_folder("--log-dir", run.log_dir);
  check_folder("--results-dir", run.results_dir);
  check_folder("--figures-dir", output.figures_dir);
  check_folder("--tensorboard-dir", run.tensorboard_dir);
  if (!run.tensorboard_dir.empty()) sweep::require_sessions_folder(run.tensorboard_dir);
  const auto work = [&]() -> SweepEnd {
    make_store_folder(run, store);
    const auto workload = experiments::make_workload(plan.workload, plan.mode);
    const sweep::RunReport report = sweep::run_sweep(plan, *workload, options);
    const SweepResults results = results_of(context, report, *workload, store);
    if (report.finished()) write_outputs(context, plan, run, flags, results);
    write_for_tensorboard(context, run, results);
    print_results(context, results);
    return say_how_it_ended(context, report, results);
  };
  return run_to_end(context, plan.name(), run.on_end, work);
}

int run_workload(Context& context, const WorkloadKind& kind,
                 const std::vector<std::string>& given) {
  const std::unique_ptr<WorkloadFlags> flags = kind.flags();
  const std::vector<std::string> arguments = with_latest(given, flags->flag_without_value());
  RunFlags run;
  read_config(context, *flags, run, arguments);
  apply_log_level(context, run);
  Told told;
  for (const std::string& line : flags->notices()) {
    context.log().info(line);
    told.emplace_back(sweep::Severity::Info, line);
  }
  const SweepPlan plan = plan_of(context, *flags, arguments);
  for (const std::string& line : flags->warnings()) {
    context.log().warning(line);
    told.emplace_back(sweep::Severity::Warning, line);
  }
  return run_plan(context, plan, run, *flags, std::move(told));
}

struct CommandLine {
  sweep::CommandFlags flags;
  RunFlags run;
  std::vector<std::string> redo_cells;
  std::vector<std::string> command;
};

// `--redo` may be followed by words such as `lr=0.1`, or `all`. No other word of the command line
// has this form: the value of a flag is already consumed, and a program with such a name must
// follow a `--`.
bool names_cells(const std::string& word) {
  return word == "all" || word.find('=') != std::string::npos;
}

CommandLine read_command_line(Context& context, std::vector<std::string> arguments) {
  std::vector<std::string> redo_cells;
  for (;;) {
    CommandLine line;
    line.command =
        config::parse_flags({config::list_fields(line.flags), config::list_fields(line.run),
                             config::list_fields(context.common)},
                            arguments, config::Positionals::EndFlags);
    const size_t at = arguments.size() - line.command.size();
    const bool after_dashes = at > 0 && arguments[at - 1] == "--";
    if (!line.flags.redo || line.command.empty() || after_dashes ||
        !names_cells(line.command.front())) {
      line.redo_cells = std::move(redo_cells);
      return line;
    }
    if (line.command.front() != "all") redo_cells.push_back(line.command.front());
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

// The file's name comes from the plan. So if nothing was run, an existing table has these results.
void write_wide_table(const Context& context, const RunFlags& run, const std::string& name,
                      const sweep::RunReport& report, const SweepResults& results) {
  std::error_code none;
  if (!report.finished() || (!report.ran && fs::exists(fs::path(run.results_dir) / name, none)))
    return;
  write_file(context, run.results_dir, {name, sweep::wide_csv(results)});
}

// Logs the best cell, unless there is only one cell.
void tell_best(const Context& context, const SweepResults& results, bool greatest) {
  const sweep::CellResult* const best = sweep::best_cell(results, greatest);
  if (best == nullptr || results.cells.size() < 2) return;
  context.log().info(fmt::format("best: {}", sweep::best_text(results, *best)));
  context.log().info(fmt::format("its command: {}", sweep::command_line_of(best->cell)));
}

void warn_of_changed_programs(const Context& context, const SweepResults& results) {
  const sweep::ChangedPrograms changed = sweep::changed_programs(results);
  const std::string values = counted(results.count(sweep::CellState::Value), "value");
  if (changed.values_of_folders > 0)
    context.log().warning(fmt::format(
        "{} of {} {} computed in another folder ({}) and taken from the store; --redo "
        "computes them here",
        changed.values_of_folders, values, changed.values_of_folders == 1 ? "was" : "were",
        fmt::join(changed.folders, ", ")));
  if (changed.values == 0) return;
  context.log().warning(
      fmt::format("{} {} changed since {} of {} {} computed; --redo computes them again",
                  fmt::join(changed.files, ", "), changed.files.size() == 1 ? "has" : "have",
                  changed.values, values, changed.values == 1 ? "was" : "were"));
}

int run_command_sweep(Context& context, const std::vector<std::string>& arguments) {
  const CommandLine line = read_command_line(context, arguments);
  const sweep::CommandFlags& flags = line.flags;
  const RunFlags& run = line.run;
  apply_log_level(context, run);
  const SweepPlan plan = [&] {
    const sweep::SlowNotice notice(context.log(), "planning the cells");
    return sweep::plan_command(line.flags, line.command);
  }();
  const std::string store = store_of(run, "");
  sweep::RunOptions options = run_options(context, run, store);
  options.starts_programs = true;
  options.max_gpus = flags.max_gpus;
  options.workers_per_device = flags.workers_per_device;
  if (run.dry_run) return print_dry_run(context, plan, options, nullptr);
  sweep::check_programs(flags, line.command);
  check_folder("--log-dir", run.log_dir);
  check_folder("--results-dir", run.results_dir);
  check_folder("--tensorboard-dir", run.tensorboard_dir);
  if (!run.tensorboard_dir.empty()) sweep::require_sessions_folder(run.tensorboard_dir);
  if (flags.redo) options.redo = sweep::chosen_cells(flags, line.redo_cells);
  if (flags.persistent)
    options.start_seconds = sweep::PersistentLimits::of_timeout(run.timeout).start_seconds;
  return run_to_end(context, plan.name(), run.on_end, [&] {
    make_store_folder(run, store);
    const auto workload = experiments::make_workload(plan.workload, plan.mode);
    const sweep::RunReport report = sweep::run_sweep(plan, *workload, options);
    const SweepResults results = results_of(context, report, *workload, store);
    write_wide_table(context, run, plan.name() + ".csv", report, results);
    write_for_tensorboard(context, run, results);
    print_results(context, results);
    if (!flags.result.names.empty()) tell_best(context, results, flags.best == "max");
    warn_of_changed_programs(context, results);
    return say_how_it_ended(context, report, results, flags.redo);
  });
}

// Convoy's own workloads, then `others`.
std::vector<Command> with_workloads(std::vector<Command> others) {
  std::vector<Command> actions;
  for (const WorkloadKind& kind : experiments::workload_kinds())
    actions.push_back({.name = kind.name,
                       .summary = kind.summary,
                       .usage = kind.usage,
                       .examples = kind.example,
                       .flags = {{"Experiment", kind.fields}, flags_of<RunFlags>("Run")},
                       .first_flags = kind.first_flags,
                       .run = [&kind](Context& context, const Words& arguments) {
                         return run_workload(context, kind, arguments);
                       }});
  for (Command& other : others) actions.push_back(std::move(other));
  return actions;
}

}  // namespace

Command sweep_command() {
  return {.name = "sweep",
          .summary = "Run experiments over seeds and parameters",
          .usage =
              "convoy sweep ssm|mf|ball [flags]\n"
              "convoy sweep run [flags] -- COMMAND [ARGUMENTS...]\n"
              "convoy sweep show|plot|export|merge|recover|check [flags]",
          .examples =
              "convoy sweep ssm --num-seeds 4 --student-dims 150 300 --gd\n"
              "convoy sweep run --num-seeds 3 --result loss -- ./train --seed {seed}\n"
              "convoy sweep plot --output sweep.svg",
          .actions = with_workloads(
              {{.name = "run",
                .summary = "Run any program over a grid of values and seeds",
                .usage = "convoy sweep run [flags] -- COMMAND [ARGUMENTS...]",
                .examples = "convoy sweep run --grid lr=0.1,0.01 --num-seeds 3 --result loss -- "
                            "./train --lr {lr} --seed {seed}",
                .flags = {flags_of<sweep::CommandFlags>("Grid"), flags_of<RunFlags>("Run")},
                .first_flags = {"grid", "zip", "space", "samples", "num-seeds", "result", "best",
                                "redo", "workers", "results-dir", "log-dir", "dry-run"},
                .run = run_command_sweep},
               sweep_show_action(),
               sweep_plot_action(),
               sweep_export_action(),
               sweep_merge_action(),
               sweep_recover_action(),
               sweep_check_action()}),
          .group = HelpGroup::RunJobs};
}

}  // namespace convoy::apps
