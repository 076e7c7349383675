// SPDX-License-Identifier: Apache-2.0
//
// `convoy launch`: torchrun's command line for any program.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/job_end.h"
#include "convoy/apps/front/peers/foreign_launchers.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/milliseconds.h"
#include "convoy/core/base/text_as.h"
#include "convoy/launch/logs/run_logs.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/launch/supervisor/launch_flags.h"
#include "convoy/launch/supervisor/supervisor.h"
#include "convoy/launch/supervisor/worker_environment.h"

namespace convoy::apps {
namespace {

using launch::Environment;
using launch::LaunchFlags;
using launch::MemberFlags;

struct LaunchCommandFlags {
  MemberFlags members;
  LaunchFlags launch;

  std::vector<config::Section> lists() {
    return {config::list_fields(members), config::list_fields(launch)};
  }
};

struct LaunchInvocation {
  LaunchCommandFlags flags;
  std::vector<std::string> program;  // as given
  std::vector<launch::Origin> origins;
};

LaunchInvocation read_command_line(Context& context, const std::vector<std::string>& arguments,
                                   const Environment& environment) {
  LaunchInvocation found;
  LaunchCommandFlags defaults, after_pet;
  launch::read_pet_variables(after_pet.lists(), environment);
  found.flags = after_pet;
  std::vector<config::Section> lists = found.flags.lists();
  lists.push_back(config::list_fields(context.common));
  found.program = parse_launcher_flags(lists, arguments, config::Positionals::EndFlags);
  found.origins = launch::flag_origins(defaults.lists(), after_pet.lists(), found.flags.lists());
  return found;
}

std::string variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

// A Python script runs under Python, unbuffered as under torchrun; any other program runs directly.
std::vector<std::string> command_of(const LaunchFlags& flags,
                                    const std::vector<std::string>& program,
                                    const Environment& environment) {
  if (flags.module && flags.no_python)
    throw ConfigError("--module and --no-python contradict each other",
                      {.hint = "leave one of them out"});
  const bool python =
      flags.run_path || flags.module || (!flags.no_python && program[0].ends_with(".py"));
  if (!python) return program;
  const std::string chosen = variable(environment, "PYTHON_EXEC");
  std::vector<std::string> command = {chosen.empty() ? "python3" : chosen, "-u"};
  if (flags.module && !flags.run_path) command.push_back("-m");
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

// The log options from the flags, without open files.
launch::LogOptions log_options(const Context& context, const LaunchFlags& flags,
                               const Environment& environment) {
  launch::LogOptions logs;
  logs.prefix = launch::LinePrefix::HostRank;
  logs.timestamps = true;
  logs.prefix_template = variable(environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  logs.redirects = launch::StreamSelection::parse(flags.redirects, "--redirects");
  logs.tee = launch::StreamSelection::parse(flags.tee, "--tee");
  logs.shown_local_ranks = launch::parse_local_ranks_filter(flags.local_ranks_filter);
  logs.output_filters =
      launch::parse_line_filters(flags.duplicate_stdout_filters, "--duplicate-stdout-filters");
  logs.errors_filters =
      launch::parse_line_filters(flags.duplicate_stderr_filters, "--duplicate-stderr-filters");
  logs.fold = flags.fold;
  logs.color = context.use_color(STDOUT_FILENO);
  return logs;
}

// A rank that does not exist on any node is a typing error, but nodes with different numbers of
// ranks may share a command line.
void check_local_ranks(const Context& context, const launch::LogOptions& logs,
                       const launch::JobSetup& setup) {
  const int num_ranks = setup.adopted() ? setup.place.local_world_size : setup.num_local_ranks;
  for (const std::string& sentence : launch::absent_local_ranks(logs, num_ranks)) {
    if (!setup.several_nodes()) throw ConfigError(sentence, {.hint = "local ranks count from 0"});
    context.log().warning(sentence);
  }
}

void open_log_folder(const Context& context, const LaunchFlags& flags, const std::string& run_id,
                     launch::LogOptions& logs) {
  const bool wants_files = !flags.log_dir.empty() || !logs.redirects.empty() || !logs.tee.empty() ||
                           !logs.output_filters.empty() || !logs.errors_filters.empty();
  if (!wants_files) return;
  logs.file_for_every_stream = !flags.log_dir.empty();
  try {
    logs.folder = launch::make_run_logs(flags.log_dir, run_id);
    logs.layout = launch::LogLayout::Torchrun;
    context.log().info(fmt::format("logs in {}", logs.folder.string()));
  } catch (const IoError& error) {
    // All output then goes to the console, as it does when the disk becomes full during a job.
    context.log().warning(fmt::format("{}; the job goes on without log files", error.sentence()));
  }
}

// Users set this variable for PyTorch's collectives, which do not read it. Empty when it is not
// set, or when Convoy reads it.
std::string unread_timeout(const Environment& environment,
                           const std::vector<std::string>& program) {
  const bool is_ours = !program.empty() &&
                       std::filesystem::path(program[0]).filename().string().starts_with("convoy");
  if (is_ours || !environment.contains("NCCL_TIMEOUT")) return "";
  return "neither NCCL nor PyTorch reads NCCL_TIMEOUT: a program gives its time limit to "
         "init_process_group(timeout=...); `convoy train` reads it as parallel.timeout_s";
}

double seconds_of(std::string_view name, const std::string& text) {
  const std::optional<double> seconds = text_as<double>(text);
  if (!seconds)
    throw ConfigError(
        fmt::format("{} must be a number of seconds, found `{}`", name, text),
        {.hint = fmt::format("set it to a number such as 30, or unset it: unset {}", name)});
  return *seconds;
}

launch::SetupRequest setup_request(const LaunchCommandFlags& flags,
                                   const Environment& environment) {
  if (!flags.launch.logs_specs.empty())
    throw ConfigError("--logs-specs names a Python entry point, which this program cannot load",
                      {.hint = "leave it out; --log-dir and --redirects say where output goes"});
  launch::SetupRequest request;
  request.members = flags.members;
  request.standalone = flags.launch.standalone;
  request.virtual_local_rank = flags.launch.virtual_local_rank;
  const std::string timeout = variable(environment, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
  if (request.members.shutdown_timeout < 0 && !timeout.empty())
    request.members.shutdown_timeout = seconds_of("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", timeout);
  return request;
}

launch::LaunchSpec launch_spec(const LaunchCommandFlags& flags, const Environment& environment) {
  launch::LaunchSpec spec;
  spec.job.role = flags.launch.role;
  const std::string names = flags.launch.signals_to_handle.empty()
                                ? variable(environment, "TORCHELASTIC_SIGNALS_TO_HANDLE")
                                : flags.launch.signals_to_handle;
  if (!names.empty()) spec.stop_signals = processes::parse_signals(names);
  spec.pass_stop_signal = true;
  spec.first_rank_reads = true;
  spec.early_exit_is_failure = flags.launch.early_exit_timeout > 0;
  spec.early_exit_wait = milliseconds_of(flags.launch.early_exit_timeout);
  return spec;
}

// `program` may be empty when none was given.
int print_dry_run(const Context& context, const launch::JobSetup& setup, const LaunchFlags& flags,
                  const std::vector<std::string>& program, const Environment& environment) {
  launch::CheckedFiles files;
  files.log_folder = flags.log_dir;
  if (!program.empty()) {
    files.program = command_of(flags, program, environment)[0];
    if (files.program != program[0] && !flags.module) files.script = program[0];
  }
  const std::vector<launch::Finding> findings = launch::check_job(setup, files);
  if (context.common.json) {
    nlohmann::ordered_json spec;
    spec["place"] = nlohmann::ordered_json::parse(launch::explain_json(setup.place));
    spec["ranks"] = nlohmann::ordered_json::parse(launch::placement_json(setup.placement.ranks));
    spec["preflight"] = nlohmann::ordered_json::parse(launch::preflight_json(findings));
    fmt::print("{}\n", spec.dump());
  } else {
    fmt::print("{}", launch::placement_table(setup.placement.ranks));
    if (!setup.placement.ranks[0].bind)
      fmt::print("cores are a plan: without --numa-binding a rank may run on any CPU\n");
    fmt::print("\n{}", launch::preflight_table(findings));
  }
  return static_cast<int>(launch::worst(findings) == launch::Severity::Error ? ExitCode::Usage
                                                                             : ExitCode::Done);
}

void lay_standalone_over(const MemberFlags& members, std::vector<launch::Origin>& rows) {
  for (const launch::Origin& beaten : launch::standalone_origins(members)) {
    std::erase_if(rows, [&](const launch::Origin& row) { return row.field == beaten.field; });
    rows.push_back(beaten);
  }
}

// `libraries`: variables of the ranks, printed as a separate table for people.
int print_explanation(const Context& context, const launch::JobSetup& setup,
                      std::vector<launch::Origin> rows,
                      const std::vector<launch::Origin>& libraries) {
  launch::ResolvedPlace place = setup.place;
  place.notes = setup.notes;  // includes the notes about flags
  if (context.common.json) {
    rows.insert(rows.end(), libraries.begin(), libraries.end());
    fmt::print("{}\n", launch::explain_json(place, rows));
  } else {
    fmt::print("{}\nvariables of the ranks' libraries\n{}", launch::explain_text(place, rows),
               launch::origin_table(libraries));
  }
  return static_cast<int>(ExitCode::Done);
}

// The facts are shown even when they contradict each other.
launch::JobSetup set_up(const Context& context, const LaunchInvocation& invocation,
                        const launch::SetupRequest& request, const Environment& environment) {
  try {
    return launch::set_up_job(request, environment);
  } catch (const ConfigError& error) {
    const std::string problem = error.sentence();
    const std::vector<launch::Origin>& rows = invocation.origins;
    if (invocation.flags.launch.explain)
      fmt::print("{}", context.common.json
                           ? launch::explain_refusal_json(environment, problem, rows) + "\n"
                           : launch::explain_refusal_text(environment, problem, rows));
    throw;
  }
}

int run_launch(Context& context, const std::vector<std::string>& arguments) {
  const Environment environment = launch::process_environment();
  LaunchInvocation found = read_command_line(context, arguments, environment);
  const LaunchFlags& flags = found.flags.launch;
  std::erase_if(found.origins, [](const launch::Origin& row) { return row.field == "explain"; });
  const launch::SetupRequest request = setup_request(found.flags, environment);
  launch::JobSetup setup = set_up(context, found, request, environment);
  for (const std::string& sentence :
       launch::misspelt_pet_variables(found.flags.lists(), environment))
    setup.notes.push_back(sentence);
  if (const std::string note = unread_timeout(environment, found.program); !note.empty())
    setup.notes.push_back(note);
  if (flags.explain) {
    if (flags.standalone) lay_standalone_over(request.members, found.origins);
    return print_explanation(
        context, setup, std::move(found.origins),
        launch::library_origins(environment, setup.visible_variable == "HIP_VISIBLE_DEVICES"));
  }
  for (const std::string& note : setup.notes) context.log().warning(note);
  for (const std::string& note : setup.placement.notes) context.log().warning(note);
  launch::LogOptions logs = log_options(context, flags, environment);
  check_local_ranks(context, logs, setup);
  if (flags.dry_run) return print_dry_run(context, setup, flags, found.program, environment);
  if (found.program.empty())
    throw ConfigError("launch needs a program", {.hint = "convoy launch --ranks 2 train.py"});
  launch::LaunchSpec spec = launch_spec(found.flags, environment);
  spec.program = command_of(flags, found.program, environment);
  open_log_folder(context, flags, setup.run_id, logs);
  spec.logs = std::move(logs);
  if (spec.logs.layout == launch::LogLayout::Torchrun) spec.flight_folder = spec.logs.folder;
  const launch::JobSpec job = launch::make_job_spec(request, setup, std::move(spec), context.log());
  return say_how_it_ended(context, launch::run_job(job));
}

}  // namespace

Command launch_command() {
  return {
      .name = "launch",
      .summary = "Start the ranks of any program, on one host or many",
      .usage =
          "convoy launch [--ranks N|auto|gpu|cpu] [flags] PROGRAM [ARGUMENTS...]\n"
          "convoy launch --nproc-per-node N PROGRAM ...   (torchrun's flags are accepted)",
      .examples =
          "convoy launch --ranks 2 train.py --epochs 3\n"
          "convoy launch --ranks gpu --max-restarts 3 --log-dir logs -- ./trainer "
          "run.yaml\n"
          "convoy launch --nnodes 2 --node-rank 0 --rdzv-endpoint node0:29500 --ranks "
          "8 train.py",
      .flags = {flags_of<launch::HostRankFlags>("Ranks"), flags_of<launch::NodeFlags>("Nodes"),
                flags_of<LaunchFlags>("Program and logs")},
      .first_flags = {"ranks", "gpu-ids", "numa-binding", "nnodes", "node-rank", "rdzv-endpoint",
                      "max-restarts", "module", "log-dir", "tee", "dry-run", "explain"},
      .run = run_launch,
      .group = HelpGroup::RunJobs,
      .forwards_arguments = true};
}

}  // namespace convoy::apps
