// SPDX-License-Identifier: Apache-2.0
//
// `convoy train`: resolves the configuration, makes the run folder, starts the ranks and reports
// how they ended.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/failed_run.h"
#include "convoy/apps/front/job_end.h"
#include "convoy/apps/front/memory_fit.h"
#include "convoy/apps/front/peer_launch.h"
#include "convoy/apps/front/rejection_run.h"
#include "convoy/apps/front/run_devices.h"
#include "convoy/apps/front/standard_streams.h"
#include "convoy/apps/front/tensorboard_beside.h"
#include "convoy/apps/front/train_config.h"
#include "convoy/apps/front/train_inputs.h"
#include "convoy/apps/front/train_job.h"
#include "convoy/apps/front/train_line.h"
#include "convoy/apps/front/worker_program.h"
#include "convoy/apps/front/worker_ranks.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/error_readers.h"
#include "convoy/core/base/files.h"
#include "convoy/core/settings/har_flags.h"
#include "convoy/core/telemetry/environment.h"
#include "convoy/core/telemetry/run_folder.h"
#include "convoy/core/telemetry/run_history.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/machine/processes/scratch_folder.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

std::string run_name(const settings::TrainSettings& train,
                     const std::vector<std::string>& arguments, const TrainFlags& flags) {
  if (!train.run_name.empty()) return train.run_name;
  for (const std::string& argument : arguments)
    if (is_config_file(argument)) return fs::path(argument).stem().string();
  return flags.preset.empty() ? "run" : flags.preset;
}

// Facts about the run that every rank of this node receives.
struct RunParts {
  std::string devices;  // "cpu" or "cuda"
  fs::path folder;
  fs::path config;
  bool tell_busy_cores = false;
  std::vector<std::string> overrides = {};  // over the configuration that rank 0 sends
};

// One rank computes on all cores of the host, by nobody's choice.
bool takes_all_cores(const TrainFlags& flags, const launch::JobSetup& setup) {
  return !setup.on_gpus && !setup.adopted() && setup.num_local_ranks == 1 && flags.threads == 0 &&
         setup.placement.ranks.at(0).threads > 1;
}

std::vector<std::string> worker_command(const Context& context, const TrainFlags& flags,
                                        const RunParts& run) {
  std::vector<std::string> words = {worker_program(context).string(),
                                    "train",
                                    "--run-folder",
                                    run.folder.string(),
                                    "--config",
                                    run.config.string(),
                                    "--devices",
                                    run.devices};
  for (const std::string& field : flags.force_stamp.names) {
    words.push_back("--force-stamp");
    words.push_back(field);
  }
  if (flags.dry_run) words.push_back("--dry-run");
  if (run.tell_busy_cores) words.push_back("--tell-busy-cores");
  if (context.common.quiet) words.push_back("--quiet");
  if (context.common.verbose) words.push_back("--verbose");
  if (context.common.json) words.push_back("--json");
  words.push_back("--color");
  words.push_back(context.use_color(STDERR_FILENO) ? "always" : "never");
  words.insert(words.end(), run.overrides.begin(), run.overrides.end());
  return words;
}

int conclude(const Context& context, const launch::LaunchReport& report,
             const std::string& to_go_on) {
  const bool saved = !report.failed() && report.exit_code == static_cast<int>(ExitCode::Stopped);
  const ErrorReaders readers = error_readers(context.common.json);
  if (saved && readers.people)
    context.log().info("stopped on request, the state is saved; resume with: " + to_go_on);
  const int code = say_how_it_ended(context, report);
  // Ended by a second signal, or because a rank did not leave in time.
  if (!report.failed() && report.stop_signal != 0 && code > 128 && readers.people &&
      !to_go_on.empty())
    context.log().info(fmt::format(
        "the steps since its last checkpoint or its start are not saved; go on with: {}",
        to_go_on));
  if (saved && readers.programs)
    write_to_stderr(
        StopRequest("stopped on request, the state is saved", {.hint = "resume with: " + to_go_on})
            .json_line() +
        "\n");
  return code;
}

// True when this launcher makes the run folder and holds its lock: rank 0's launcher does, the
// others take part. The port where the nodes meet decides between two launchers on one
// host.
bool owns_run_folder(const launch::JobSetup& setup, const launch::JobSpec& job) {
  if (setup.adopted()) return setup.place.rank == 0;
  if (setup.wanted_node_rank >= 0) return setup.wanted_node_rank == 0;
  return !setup.several_nodes() || job.coordinator != nullptr;
}

// Otherwise other launchers would wait in vain for this one's ranks when it refuses alone an error
// that the ranks refuse together.
bool starts_every_rank(const launch::JobSetup& setup) {
  return !setup.adopted() && !setup.several_nodes();
}

// Rank 0's node keeps checkpoints, events and results there; other nodes keep only the logs of
// their ranks. On a shared file system both are the same folder.
telemetry::RunFolder open_run_folder(const settings::TrainSettings& train, bool own) {
  if (!own) return telemetry::RunFolder::take_part(train.train.output_dir, train.run_name);
  return telemetry::RunFolder::create(train.train.output_dir, train.run_name);
}

// The configuration that the ranks read. An existing run keeps its own until they have accepted
// this one.
fs::path store_config(const telemetry::RunFolder& folder, const config::Resolved& resolved,
                      processes::ScratchFolder& scratch) {
  std::map<std::string, std::string> origins;
  for (const config::ResolvedValue& value : resolved.values()) origins[value.path] = value.origin;
  if (!fs::exists(folder.config_path())) {
    folder.write_config(resolved.yaml(), resolved.json(), origins);
    return folder.config_path();
  }
  folder.propose_config(resolved.json(), origins);
  scratch.make();
  const fs::path proposed = scratch.path() / "config.yaml";
  write_file_atomic(proposed, resolved.yaml());
  return proposed;
}

// This node's settings as far as they are known here.
struct RunConfig {
  settings::TrainSettings train;
  std::optional<config::Resolved> resolved;
  bool is_here = true;  // else rank 0 sends it to the ranks
};

// True when the node may receive its configuration from rank 0: it then needs only its folder and
// its own paths.
bool may_be_sent(const launch::JobSetup& setup) {
  if (setup.adopted()) return setup.place.rank != 0;
  return setup.several_nodes() && setup.wanted_node_rank != 0;
}

// The recognition's flags are settings, so its program without a file would be taken for a training
// of a language model.
void refuse_recognition_without_config(const TrainInvocation& found) {
  const auto names = [](const std::string& word, std::string_view key) {
    return word.starts_with(key);
  };
  if ((found.multi_gpu.empty() && !found.har_data) || !found.flags.preset.empty() ||
      std::any_of(found.rest.begin(), found.rest.end(), [&](const std::string& word) {
        return is_config_file(word) || names(word, "model.name=") || names(word, "task=") ||
               names(word, "data.train_path=");
      }))
    return;
  throw ConfigError(
      fmt::format("{} without a configuration: the activity recognition has one",
                  found.multi_gpu.empty() ? "--data-dir" : "--multi-gpu"),
      {.key = "task",
       .hint = "convoy train examples/har/har.yaml and these flags; or --preset har-4gpu "
               "(`convoy config presets`) and --data-dir DATA"});
}

void read_config(const Context& context, const TrainInvocation& found, bool may_be_sent,
                 int64_t ranks, RunConfig& run) {
  const TrainFlags& flags = found.flags;
  const auto file = std::find_if(found.rest.begin(), found.rest.end(), is_config_file);
  run.is_here = !may_be_sent || (file != found.rest.end() && fs::exists(*file));
  if (run.is_here && found.rest.empty() && flags.preset.empty())
    throw ConfigError("`convoy train` needs a configuration", {.hint = "convoy train run.yaml"});
  if (run.is_here) refuse_recognition_without_config(found);
  std::vector<std::string> words = found.rest;
  if (!run.is_here) std::erase_if(words, is_config_file);
  settings::RankFacts facts{.ranks = ranks};
  run.resolved.emplace(read_train_config(
      run.train, words, flags.preset, context.log(),
      run.is_here ? settings::Wanted::TrainInputs : settings::Wanted::Anything, &facts));
  if (!run.train.run_name.empty()) return;
  run.train.run_name = run_name(run.train, found.rest, flags);
  run.resolved->decided("run_name", "name of the config file");
}

// Gives the configuration to the ranks of a node that takes part. Its folder may be the folder of
// rank 0's node, whose files must stay.
void give_config(const Context& context, const TrainInvocation& found, const RunConfig& run,
                 RunParts& parts) {
  if (run.is_here) {
    write_file_atomic(parts.config, run.resolved->yaml());
    return;
  }
  const auto file = std::find_if(found.rest.begin(), found.rest.end(), is_config_file);
  context.log().info(fmt::format("{} is not on this host: rank 0's node sends its own",
                                 file == found.rest.end() ? "the configuration" : *file));
  std::copy_if(found.rest.begin(), found.rest.end(), std::back_inserter(parts.overrides),
               [](const std::string& word) { return !is_config_file(word); });
}

TensorBoardPlan tensorboard_plan(const TrainFlags& flags, const telemetry::RunFolder& folder) {
  TensorBoardPlan plan{.events = folder.tensorboard_folder(),
                       .log_file = folder.logs_folder() / "tensorboard.log",
                       .port = flags.tensorboard_port,
                       .stays = flags.tensorboard_stays};
  if (plan.stays) {
    plan.events = folder.path().parent_path();
    plan.log_file = plan.events / "tensorboard.log";
  }
  return plan;
}

// Files of other launchers may place ranks: this reports their errors. Model and rows may be
// missing.
void check_launch_settings(const Context& context, const TrainInvocation& found,
                           const launch::JobSetup& setup) {
  settings::TrainSettings train;
  settings::RankFacts facts{.ranks = ranks_of_job(setup)};
  if (!found.rest.empty() || !found.flags.preset.empty())
    read_train_config(train, found.rest, found.flags.preset, context.log(),
                      settings::Wanted::Anything, &facts);
}

int print_placement(const Context& context, const launch::JobSetup& setup) {
  say_notes(context, setup);
  if (context.common.json) {
    fmt::print("{}\n", launch::placement_json(setup.placement.ranks));
    return 0;
  }
  if (setup.several_nodes())
    fmt::print(
        "{} of {}, which meet at {}:{}\n",
        setup.wanted_node_rank < 0 ? "any node" : fmt::format("node {}", setup.wanted_node_rank),
        setup.nodes.most, setup.endpoint.host, setup.endpoint.port);
  fmt::print("{}", launch::placement_table(setup.placement.ranks));
  return 0;
}

// Warns a user who requested several devices when only one is used.
void warn_of_one_device(const Context& context, const TrainInvocation& found,
                        const launch::JobSetup& setup, const settings::TrainSettings& train) {
  if (setup.adopted() || setup.several_nodes() || setup.num_local_ranks > 1) return;
  const char* const device = setup.on_gpus ? "one GPU" : "no GPU";
  if (found.multi_gpu == "ddp" && found.request.members.nproc_per_node == "auto")
    context.log().warning(fmt::format(
        "--multi-gpu ddp: {} can be used here, so ONE rank trains, on {}{}", device,
        setup.on_gpus ? "it" : "the CPU", setup.on_gpus ? "" : " (--ranks N starts N on CPUs)"));
  if (found.multi_gpu == "dp" && !setup.on_gpus && train.parallel.replicas <= 1)
    context.log().warning(
        "--multi-gpu dp: no GPU can be used here, so ONE replica trains, on the CPU "
        "(parallel.replicas=N trains N)");
}

// Guides export these variables for their own scripts. If they were read without a request, a job
// would wait for nodes that are never started.
void warn_of_unread_nodes(const Context& context, const launch::JobSetup& setup) {
  const std::string nodes = environment_text("NNODES");
  if (std::atoi(nodes.c_str()) <= 1 || setup.several_nodes() || setup.adopted()) return;
  context.log().warning(fmt::format(
      "NNODES={} is set but ignored: this node trains alone. For {} nodes give --nnodes "
      "{} --node-rank R --master-addr HOST",
      nodes, nodes, nodes));
}

// Estimates memory by formula when the model is missing or incomplete, because the ranks of a dry
// run need its weights.
void say_fit_without_weights(const Context& context, const launch::JobSetup& setup,
                             const RunConfig& run) {
  if (has_weights(run.train.model)) return;
  const auto model = sizes_of(run.train.model);
  if (!model) return;
  const int64_t ranks =
      int64_t{setup.several_nodes() ? setup.nodes.most : 1} * setup.num_local_ranks;
  const sizing::Machine machine = machine_of_config("", *run.resolved);
  // A machine's preset is planned for all of its devices.
  const bool is_here = machine.name == "cpu" || machine.name == "gpu";
  if (const auto fit = memory_fit(*model, run.train, machine, is_here ? ranks : 0))
    say_memory_fit(*fit, context.log());
}

int run_train(Context& context, const std::vector<std::string>& arguments) {
  return run_train_job(context, read_train_line(context, arguments));
}

}  // namespace

int run_train_job(Context& context, const TrainInvocation& found, const std::string& to_go_on) {
  const TrainFlags& flags = found.flags;
  const launch::JobSetup setup = launch::set_up_job(found.request, launch::process_environment());
  if (flags.placement) {
    check_launch_settings(context, found, setup);
    return print_placement(context, setup);
  }
  worker_program(context);
  RunConfig run;
  read_config(context, found, may_be_sent(setup) && !flags.dry_run, ranks_of_job(setup), run);
  if (run.train.task_facts().data == settings::TaskData::Problems)
    return run_rejection(context, {found, setup, run.train, *run.resolved});
  say_notes(context, setup);
  warn_of_one_device(context, found, setup, run.train);
  warn_of_unread_nodes(context, setup);
  processes::ScratchFolder scratch;
  RunParts parts{.devices = devices_of(setup),
                 .folder = scratch.path(),
                 .config = scratch.path() / "config.yaml",
                 .tell_busy_cores = takes_all_cores(flags, setup)};
  if (flags.dry_run) {
    if (run.is_here) {
      say_fit_without_weights(context, setup, run);
      require_train_inputs(run.train);
    }
    // The dry run starts only this node's ranks; other nodes are assumed to start as many.
    launch::JobSetup alone = setup;
    if (alone.several_nodes()) alone.nodes = {};
    write_to_stderr(launch::placement_table(setup.placement.ranks) + "\n" +
                    launch::preflight_table(launch::check_job(setup, {})) + "\n");
    scratch.make();
    write_file_atomic(parts.config, run.resolved->yaml());
    launch::JobSpec trial =
        launch::make_job_spec(found.request, alone, worker_spec(context), context.log());
    trial.attempt.program = worker_command(context, flags, parts);
    if (setup.several_nodes()) {
      const int all = setup.nodes.most * setup.num_local_ranks;
      trial.attempt.environment["CONVOY_FULL_WORLD_SIZE"] = std::to_string(all);
      context.log().info(fmt::format("the plan of {} nodes, {}; those of this node try it",
                                     setup.nodes.most, counted(all, "rank")));
    }
    return conclude(context, launch::run_job(trial), "");
  }
  launch::JobSpec job =
      launch::make_job_spec(found.request, setup, worker_spec(context), context.log());
  const bool own = owns_run_folder(setup, job);
  if (own && !run.is_here)
    read_config(context, found, false, ranks_of_job(setup), run);  // says what is missing
  if (starts_every_rank(setup)) require_train_inputs(run.train);
  const std::string& output_dir = run.train.train.output_dir;
  const bool is_new = output_dir.empty() || !fs::exists(output_dir);
  const telemetry::RunFolder folder = open_run_folder(run.train, own);
  if (own && !folder.is_locked())
    context.log().warning(
        fmt::format("{} is on a file system without locks: a second run in it is not prevented",
                    folder.path().string()));
  context.log().info(fmt::format("run folder {}", folder.path().string()));
  // Traces of an earlier start would be mistaken for this one's.
  if (!run.train.logging.profile_steps.empty()) fs::remove_all(folder.path() / "traces");
  parts.folder = folder.path();
  if (own) {
    parts.config = store_config(folder, *run.resolved, scratch);
  } else {
    scratch.make();
    give_config(context, found, run, parts);
  }
  job.attempt.program = worker_command(context, flags, parts);
  job.attempt.logs.layout = launch::LogLayout::Convoy;
  job.attempt.logs.folder = folder.logs_folder();
  job.attempt.flight_folder = folder.logs_folder();
  // The device of each rank, for tools that inspect the run from outside.
  write_file_atomic(folder.logs_folder() / fmt::format("placement-{}-{}.json", setup.host,
                                                       setup.placement.ranks.at(0).rank),
                    launch::placement_json(setup.placement.ranks) + "\n");
  const Log log = context.log();
  std::optional<TensorBoardBeside> tensorboard;
  if ((flags.tensorboard || flags.tensorboard_stays) && own)
    tensorboard.emplace(tensorboard_plan(flags, folder), log);
  std::optional<RunDevices> devices;
  if (flags.device_interval > 0)
    devices.emplace(context, setup, folder,
                    RunDevicesOptions{.interval_s = flags.device_interval,
                                      .own = own,
                                      .tensorboard = own ? telemetry::tensorboard_folder(
                                                               run.train.logging.backend.names,
                                                               folder.tensorboard_folder())
                                                         : fs::path()});
  const auto begin = std::chrono::system_clock::now();
  launch::LaunchReport report = launch::run_job(job);
  tensorboard.reset();
  if (own) record_failure(context.log(), folder, report, begin);
  if (devices) devices->conclude();
  if (is_new && starts_every_rank(setup) && is_refused(folder, report)) {
    remove_folder(folder, report);
    // Removes `runs`, unless it holds other runs.
    std::error_code ignored;
    if (run.train.train.output_dir.empty()) fs::remove(folder.path().parent_path(), ignored);
  }
  const int code =
      conclude(context, report,
               to_go_on.empty() ? command_to_go_on(found, run.train, folder.path()) : to_go_on);
  if (code == 0 && own && context.common.json) print_result(folder);
  return code;
}

void print_result(const telemetry::RunFolder& folder) {
  const nlohmann::ordered_json result = {
      {"run_dir", folder.path().string()},
      {"metrics", telemetry::read_run_record(folder.metrics_path())}};
  fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Command train_command() {
  return {
      .name = "train",
      .summary = "Fine-tune a model on rows, on one rank or many",
      .usage = "convoy train CONFIG.yaml [key=value ...] [--ranks N] [--resume auto|never|PATH]",
      .examples =
          "convoy train run.yaml --ranks 2\n"
          "convoy train run.yaml train.batch_size=2 train.learning_rate=1e-4 --run-dir runs/a\n"
          "convoy train runs/a/config.yaml --run-dir runs/a --resume auto\n"
          "convoy train run.yaml --nnodes 2 --rdzv-endpoint node0:29500 --ranks 4 --run-dir "
          "runs/a",
      .flags = {flags_of<TrainFlags>("Run"), flags_of<launch::HostRankFlags>("Ranks"),
                flags_of<launch::NodeFlags>("Nodes"),
                flags_of<settings::HarFlags>("Settings by the names of the activity guide")},
      .first_flags = {"ranks", "devices", "model", "data", "run-dir", "resume", "preset", "dry-run",
                      "nnodes", "rdzv-endpoint", "deepspeed", "tensorboard"},
      .run = run_train,
      .group = HelpGroup::TrainAndUse};
}

}  // namespace convoy::apps
