// SPDX-License-Identifier: Apache-2.0
//
// `convoy train`: resolves the configuration, makes the run folder, starts the ranks and says how they ended.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/train_config.h"
#include "convoy/apps/front/worker_program.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/launch/launcher.h"
#include "convoy/launch/scratch_folder.h"
#include "convoy/telemetry/run_folder.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

struct TrainFlags {
  std::string nproc = "1";
  std::string devices = "cpu";
  std::string resume;
  std::string output_dir;
  std::string preset;
  bool dry_run = false;
  config::NameList force_stamp;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("nproc", nproc,
          "ranks on this host; auto = one per device, where all CPUs are one device");
    visit("devices", devices, "what to compute on").one_of({"cpu"});
    visit("resume", resume,
          "auto, never, or a checkpoint folder; beats train.resume_from_checkpoint");
    visit("output_dir", output_dir, "run folder; beats train.output_dir");
    visit("preset", preset, "start from this preset (`convoy config presets`)");
    visit("dry_run", dry_run, "check everything, print the plan and stop");
    visit("force_stamp", force_stamp,
          "let this field of the checkpoint's stamp differ; may be given more than once");
  }
};

int rank_count(const std::string& text) {
  if (text == "auto") return 1;
  int count = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || stop != end || count < 1)
    throw ConfigError(fmt::format("--nproc wants a number from 1 up, or auto; found `{}`", text),
                      {.key = "nproc"});
  return count;
}

// The run to which a checkpoint belongs: RUN/checkpoints/step-00000100. Empty when it lies elsewhere.
fs::path run_of_checkpoint(const fs::path& checkpoint) {
  std::error_code failure;
  const fs::path real = fs::canonical(checkpoint, failure);
  if (failure || real.parent_path().filename() != "checkpoints") return {};
  const fs::path run = real.parent_path().parent_path();
  return fs::exists(run / "config.yaml", failure) ? run : fs::path();
}

// Flags are settings under another name, so they are recorded and repeated like any other.
std::vector<std::string> with_flags(std::vector<std::string> arguments, const TrainFlags& flags) {
  if (!flags.resume.empty()) arguments.push_back("train.resume_from_checkpoint=" + flags.resume);
  fs::path folder = flags.output_dir;
  // A run goes on where its checkpoints lie.
  if (folder.empty() && !flags.resume.empty()) folder = run_of_checkpoint(flags.resume);
  if (!folder.empty()) arguments.push_back("train.output_dir=" + folder.string());
  return arguments;
}

std::string run_name(const settings::TrainSettings& train,
                     const std::vector<std::string>& arguments, const TrainFlags& flags) {
  if (!train.run_name.empty()) return train.run_name;
  for (const std::string& argument : arguments)
    if (argument.find('=') == std::string::npos) return fs::path(argument).stem().string();
  return flags.preset.empty() ? "run" : flags.preset;
}

launch::LaunchPlan launch_plan(const Context& context, const TrainFlags& flags,
                               const fs::path& folder) {
  launch::LaunchPlan plan;
  plan.num_ranks = rank_count(flags.nproc);
  plan.program = {worker_program(context).string(), "train", "--run-folder", folder.string()};
  for (const std::string& field : flags.force_stamp.names) {
    plan.program.push_back("--force-stamp");
    plan.program.push_back(field);
  }
  if (flags.dry_run) plan.program.push_back("--dry-run");
  if (context.common.quiet) plan.program.push_back("--quiet");
  if (context.common.verbose) plan.program.push_back("--verbose");
  if (context.common.json) plan.program.push_back("--json");
  plan.program.push_back("--color");
  plan.program.push_back(context.use_color(STDERR_FILENO) ? "always" : "never");
  plan.environment = worker_environment(context);
  plan.console = launch::Console::RankZeroPlain;
  return plan;
}

int conclude(const Context& context, const launch::LaunchReport& report, const fs::path& folder) {
  if (report.root_cause >= 0) {
    fmt::print(stderr, "convoy: {}", launch::failure_text(report));
    if (context.common.json || ::isatty(STDERR_FILENO) == 0)
      fmt::print(stderr, "{}\n", launch::failure_json(report));
  } else if (report.exit_code == static_cast<int>(ExitCode::Stopped)) {
    context.log().info(
        fmt::format("stopped on request, the state is saved; go on with: convoy "
                    "train {} --output-dir {}",
                    (folder / "config.yaml").string(), folder.string()));
  }
  return report.exit_code;
}

int run_train(Context& context, const std::vector<std::string>& arguments) {
  TrainFlags flags;
  const std::vector<std::string> rest = with_flags(context.parse(flags, arguments), flags);
  if (rest.empty() && flags.preset.empty())
    throw ConfigError("train wants a configuration", {.hint = "convoy train run.yaml"});
  rank_count(flags.nproc);
  worker_program(context);
  settings::TrainSettings train;
  config::Resolved resolved = read_train_config(train, rest, flags.preset, context.log());
  settings::require_train_inputs(train);
  if (train.run_name.empty()) {
    train.run_name = run_name(train, rest, flags);
    resolved.decided("run_name", "name of the config file");
  }
  if (flags.dry_run) {
    const launch::ScratchFolder scratch;
    write_file_atomic(scratch.path() / "config.yaml", resolved.yaml());
    return conclude(context, launch::run_ranks(launch_plan(context, flags, scratch.path())),
                    scratch.path());
  }
  const telemetry::RunFolder folder =
      telemetry::RunFolder::create(train.train.output_dir, train.run_name);
  std::map<std::string, std::string> origins;
  for (const config::ResolvedValue& value : resolved.values()) origins[value.path] = value.origin;
  folder.write_config(resolved.yaml(), resolved.json(), origins);
  context.log().info(fmt::format("run folder {}", folder.path().string()));
  launch::LaunchPlan plan = launch_plan(context, flags, folder.path());
  plan.log_folder = folder.logs_folder();
  return conclude(context, launch::run_ranks(plan), folder.path());
}

}  // namespace

Command train_command() {
  return {
      .name = "train",
      .summary = "fine-tunes a model on rows, on one rank or many",
      .usage = "convoy train CONFIG.yaml [key=value ...] [--nproc N] [--resume auto|never|PATH]",
      .examples =
          "convoy train run.yaml --nproc 2\n"
          "convoy train run.yaml train.batch_size=2 train.learning_rate=1e-4 --output-dir runs/a\n"
          "convoy train runs/a/config.yaml --output-dir runs/a --resume auto",
      .flag_table = config::flag_table_of<TrainFlags>,
      .run = run_train};
}

}  // namespace convoy::apps
