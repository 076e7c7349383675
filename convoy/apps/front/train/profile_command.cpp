// SPDX-License-Identifier: Apache-2.0
//
// `convoy profile CONFIG`: trains a few steps on many ranks and on one, and reports where their
// time goes. `convoy profile report RUN`: reports on steps that a training has traced.
#include <fmt/format.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/peers/foreign_launchers.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/core/settings/har_flags.h"
#include "convoy/core/settings/step_range.h"
#include "convoy/core/telemetry/runs/run_history.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/launch/supervisor/launch_flags.h"
#include "convoy/machine/profile/profiled_run.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

struct ProfileFlags : launch::DeviceFlags {
  std::string steps = "10";
  bool compare = true;
  std::string preset;
  std::string output_dir;

  template <class Visitor>
  void fields(Visitor& visit) {
    DeviceFlags::fields(visit);
    visit("steps", steps,
          "steps to profile: 5:14 (both included), or a number of steps after the first two");
    visit("compare", compare, "also train the same steps on one rank, and compare both");
    visit("preset", preset, "start from this preset, as `convoy train` does");
    visit("output_dir", output_dir, "folder of both trainings; empty = profiles/<config>-<time>")
        .flag("run_dir");
  }
};

// Folder names of the trainings of `convoy profile`, and the file that marks a profile's folder.
constexpr const char* kRanks = "ranks";
constexpr const char* kOneRank = "one-rank";
constexpr const char* kMark = "profile.json";

struct ReportFlags {
  std::string dir = "runs";
  std::string output;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("dir", dir, "folder that holds the runs");
    visit("output", output,
          "file for Perfetto (ui.perfetto.dev); empty = traces/run.perfetto-trace of the run");
  }
};

void print_json(const nlohmann::ordered_json& record) {
  fmt::print("{}\n", record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void say_trace(const Context& context, const fs::path& file) {
  context.log().info(
      fmt::format("timeline of all ranks: {} (open it in ui.perfetto.dev)", file.string()));
}

bool has_traces(const fs::path& folder) { return fs::is_directory(folder / "traces"); }

// A run by its folder or name, or any folder with traces, even one that no training wrote.
fs::path traced_folder(const std::string& word, const std::string& runs) {
  const fs::path folder = word;
  if (has_traces(folder)) return folder;
  if (folder.filename() == "traces" && fs::is_directory(folder)) return folder.parent_path();
  return telemetry::resolve_run(word, runs);
}

void print_comparison(const Context& context, const profile::ProfiledRun& first,
                      const profile::ProfiledRun& second) {
  if (context.common.json)
    print_json(profile::comparison_json(first, second));
  else
    fmt::print("{}", profile::comparison_text(first, second));
}

void print_report(const Context& context, const profile::ProfiledRun& run) {
  if (context.common.json)
    print_json(profile::report_json(run));
  else
    fmt::print("{}", profile::report_text(run));
}

// Reports on a profile in `folder`; `many` is its training on many ranks.
int report_profile(const Context& context, const fs::path& folder,
                   const profile::ProfiledRun& many) {
  const bool compares = has_traces(folder / kOneRank);
  if (!compares || !context.common.json) print_report(context, many);
  say_trace(context, profile::write_perfetto_trace(many));
  if (!compares) return 0;
  if (!context.common.json) fmt::print("\n");
  print_comparison(context, profile::read_profiled_run(folder / kOneRank), many);
  return 0;
}

int report(Context& context, const std::vector<std::string>& arguments) {
  ReportFlags flags;
  const std::vector<std::string> words = context.parse(flags, arguments);
  if (words.size() != 1 && words.size() != 2)
    throw ConfigError(
        fmt::format("profile report needs a run, or two to compare, found {}", words.size()),
        {.hint = "convoy profile report RUN, or RUN OTHER; `convoy runs list` shows them"});
  if (words.size() == 1 && has_traces(fs::path(words[0]) / kRanks))
    return report_profile(context, words[0],
                          profile::read_profiled_run(fs::path(words[0]) / kRanks));
  const fs::path folder = traced_folder(words.back(), flags.dir);
  const profile::ProfiledRun run = profile::read_profiled_run(folder);
  if (words.size() == 1)
    print_report(context, run);
  else
    print_comparison(context, profile::read_profiled_run(traced_folder(words[0], flags.dir)), run);
  say_trace(context, profile::write_perfetto_trace(run, flags.output));
  return 0;
}

struct ProfileInvocation {
  ProfileFlags flags;
  launch::HostRankFlags ranks;
  settings::HarFlags har;
  std::vector<std::string> rest;  // configuration and key=value pairs
};

ProfileInvocation read_profile_line(Context& context, const std::vector<std::string>& arguments) {
  ProfileInvocation found;
  found.rest =
      parse_launcher_flags({config::list_fields(found.flags), config::list_fields(found.ranks),
                            config::list_fields(found.har), config::list_fields(context.common)},
                           arguments, config::Positionals::Anywhere);
  if (found.rest.empty() && found.flags.preset.empty())
    throw ConfigError(
        "`convoy profile` needs the configuration of a training, or `report` and a run",
        {.hint = "convoy profile run.yaml"});
  if (const auto problem = settings::step_range_problem(found.flags.steps))
    throw ConfigError("--steps: " + *problem, {.key = "--steps", .hint = "such as --steps 10:15"});
  if (settings::parse_step_range(found.flags.steps).empty())
    throw ConfigError(
        fmt::format("--steps needs at least one step, found \"{}\"", found.flags.steps),
        {.hint = "such as --steps 10:15"});
  const launch::Environment environment = launch::process_environment();
  if (environment.contains("RANK"))
    throw ConfigError(
        fmt::format("profile starts its own ranks, but runs as a rank of a job here (RANK={})",
                    environment.at("RANK")),
        {.hint = "run it without a launcher, or give --profile-steps to each `convoy train`"});
  return found;
}

// Settings that end a training after the last traced step and keep only its traces.
std::vector<std::string> trial_settings(const std::string& range) {
  constexpr int64_t kUntracedSteps = 2;
  const settings::StepRange steps = settings::parse_step_range(range);
  const int64_t last = steps.first > 0 ? steps.last() : steps.num_steps + kUntracedSteps;
  return {"logging.profile_steps=" + range,
          fmt::format("train.steps={}", last),
          "train.eval_strategy=no",
          "train.final_eval=false",
          "train.save_strategy=no",
          "train.export_model=false",
          "train.load_best_model_at_end=false",
          "train.early_stopping_patience=0",
          "train.resume_from_checkpoint=never"};
}

// True when the ranks of this finished training were threads of one process.
bool has_replicas(const fs::path& run) {
  const nlohmann::json record = telemetry::read_run_record(run / "run.json");
  return record.value(nlohmann::json::json_pointer("/config/parallel/strategy"), "") == "dp";
}

enum class Ranks { AsAsked, One, OneReplica };

std::vector<std::string> train_words(const ProfileInvocation& found, Ranks wanted) {
  std::vector<std::string> words = found.rest;
  for (std::string& word : found.har.settings()) words.push_back(std::move(word));
  if (!found.har.multi_gpu.empty())
    words.insert(words.end(), {"--multi-gpu", found.har.multi_gpu});  // also sets the ranks
  if (!found.flags.preset.empty()) words.insert(words.end(), {"--preset", found.flags.preset});
  for (std::string& word : trial_settings(found.flags.steps)) words.push_back(std::move(word));
  launch::HostRankFlags ranks = found.ranks, defaults;
  if (wanted != Ranks::AsAsked) ranks.nproc_per_node = "1";
  if (wanted == Ranks::OneReplica) words.push_back("parallel.replicas=1");
  for (std::string& word :
       config::flags_that_differ(config::list_fields(ranks), config::list_fields(defaults)))
    words.push_back(std::move(word));
  words.insert(words.end(), {"--devices", found.flags.devices, "--device-interval", "0.5"});
  return words;
}

// A new folder, or the folder of an earlier profile, whose trainings are removed. Removes nothing
// else.
fs::path make_output_folder(const ProfileInvocation& found) {
  fs::path folder = found.flags.output_dir;
  if (folder.empty()) {
    std::string name = found.flags.preset.empty() ? "run" : found.flags.preset;
    for (const std::string& word : found.rest)
      if (word.find('=') == std::string::npos) name = fs::path(word).stem().string().substr(0, 100);
    const fs::path wanted = fs::path("profiles") /
                            fmt::format("{}-{}", name, static_cast<int64_t>(wall_clock_seconds()));
    fs::create_directories(wanted.parent_path());
    folder = wanted;
    for (int next = 2; !fs::create_directory(folder); ++next)
      folder = wanted.string() + fmt::format("-{}", next);
  }
  if (fs::exists(folder) && !fs::is_empty(folder) && !fs::exists(folder / kMark))
    throw ConfigError(fmt::format("{} is not a profile's folder", folder.string()),
                      {.hint = "name a new folder"});
  fs::create_directories(folder);
  fs::remove_all(folder / kRanks);
  fs::remove_all(folder / kOneRank);
  write_file_atomic(folder / kMark, "{\"schema\": \"convoy.profile_folder/1\"}\n");
  return folder;
}

// Returns true when the training has done its steps; else sets `exit_code` to its exit code.
bool run_trial(Context context, std::vector<std::string> words, const fs::path& folder,
               int& exit_code) {
  context.common.json = false;
  words.insert(words.end(), {"--run-dir", folder.string()});
  exit_code = train_command().run(context, words);
  if (exit_code != static_cast<int>(ExitCode::Stopped)) return exit_code == 0;
  // Not ExitCode::Stopped, because a scheduler could not resume anything here.
  constexpr int kEndedBySignal = 128 + SIGTERM;
  exit_code = kEndedBySignal;
  return false;
}

int profile(Context& context, const std::vector<std::string>& arguments) {
  const ProfileInvocation found = read_profile_line(context, arguments);
  const fs::path folder = make_output_folder(found);
  int exit_code = 0;
  if (!run_trial(context, train_words(found, Ranks::AsAsked), folder / kRanks, exit_code))
    return exit_code;
  const profile::ProfiledRun many = profile::read_profiled_run(folder / kRanks);
  const Ranks one = has_replicas(folder / kRanks) ? Ranks::OneReplica : Ranks::One;
  if (found.flags.compare && many.breakdown.world_size > 1 &&
      !run_trial(context, train_words(found, one), folder / kOneRank, exit_code))
    return exit_code;
  return report_profile(context, folder, many);
}

}  // namespace

Command profile_command() {
  return {.name = "profile",
          .summary = "Show where the time of training steps goes",
          .usage =
              "convoy profile CONFIG.yaml|--preset P [key=value ...] [--ranks N] [--steps 5:14]\n"
              "convoy profile report RUN [RUN]   (of trainings with --profile-steps 10:15)",
          .examples =
              "convoy profile run.yaml --ranks 2\n"
              "convoy profile run.yaml --ranks 4 --steps 20:29 --no-compare",
          .flags = {flags_of<ProfileFlags>(), flags_of<launch::HostRankFlags>("Ranks"),
                    flags_of<settings::HarFlags>("Settings by the names of the activity guide")},
          .first_flags = {"steps", "compare", "preset", "run-dir", "devices", "ranks", "gpu-ids"},
          .run = profile,
          .actions = {{.name = "report",
                       .summary = "Show where the time of traced steps went",
                       .usage = "convoy profile report RUN|PROFILE [RUN] [--output F]",
                       .examples = "convoy profile report last\n"
                                   "convoy profile report runs/before runs/after",
                       .flags = {flags_of<ReportFlags>()},
                       .run = report}},
          .group = HelpGroup::Look};
}

}  // namespace convoy::apps
