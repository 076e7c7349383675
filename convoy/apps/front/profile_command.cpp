// SPDX-License-Identifier: Apache-2.0
//
// `convoy profile CONFIG`: trains a few steps on many ranks and on one, and says where their time goes. `convoy profile report RUN`: the
// same of steps that a training has traced.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/foreign_launchers.h"
#include "convoy/base/error.h"
#include "convoy/base/wall_clock.h"
#include "convoy/launch/launch_flags.h"
#include "convoy/profile/profiled_run.h"
#include "convoy/settings/step_range.h"
#include "convoy/telemetry/run_folder.h"
#include "convoy/telemetry/run_history.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

struct ProfileFlags : launch::DeviceFlags {
  std::string steps = "10";
  bool compare = true;
  std::string output_dir;

  template <class Visitor>
  void fields(Visitor& visit) {
    DeviceFlags::fields(visit);
    visit("steps", steps,
          "steps to look at: 5:14 both counted, or a number of steps after the first two");
    visit("compare", compare, "train the same steps on one rank, too, and put both side by side");
    visit("output_dir", output_dir, "folder of the runs; empty = runs/profile-<config>-<time>");
  }
};

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

// Any folder with traces, also one that no training wrote.
fs::path traced_folder(const std::string& word, const std::string& runs) {
  return fs::is_directory(fs::path(word) / "traces") ? fs::path(word)
                                                     : telemetry::resolve_run(word, runs);
}

void print_comparison(const Context& context, const profile::ProfiledRun& single,
                      const profile::ProfiledRun& many) {
  if (context.common.json)
    print_json(profile::comparison_json(single, many));
  else
    fmt::print("{}", profile::comparison_text(single, many));
}

int report(Context& context, const std::vector<std::string>& arguments) {
  ReportFlags flags;
  const std::vector<std::string> words = context.parse(flags, arguments);
  CONVOY_CHECK(
      words.size() == 1 || words.size() == 2, ConfigError,
      "profile report wants a run, and may want one of one rank to put beside it, found {}",
      words.size());
  const fs::path folder = traced_folder(words[0], flags.dir);
  const profile::ProfiledRun run = profile::read_profiled_run(folder);
  if (words.size() == 2) {
    const profile::ProfiledRun single =
        profile::read_profiled_run(traced_folder(words[1], flags.dir));
    CONVOY_CHECK(single.breakdown.world_size == 1, ConfigError,
                 "the second run is to be of one rank, found {} in {}", single.breakdown.world_size,
                 single.name);
    print_comparison(context, single, run);
  } else if (context.common.json) {
    print_json(profile::report_json(run));
  } else {
    fmt::print("{}", profile::report_text(run));
  }
  say_trace(context, profile::write_perfetto_trace(folder, flags.output));
  return 0;
}

// Of one training of a few steps.
struct Trial {
  fs::path folder;
  int exit_code = 0;
};

// What makes a training end after the last traced step with nothing but its traces.
std::vector<std::string> trial_settings(const settings::StepRange& steps, const std::string& text) {
  constexpr int64_t kUntracedSteps = 2;
  const int64_t last = steps.first > 0 ? steps.last() : steps.num_steps + kUntracedSteps;
  return {"logging.profile_steps=" + text,   fmt::format("train.steps={}", last),
          "train.eval_strategy=no",          "train.final_eval=false",
          "train.save_strategy=no",          "train.load_best_model_at_end=false",
          "train.early_stopping_patience=0", "train.resume_from_checkpoint=never"};
}

// The weights that a trial has trained are nobody's model.
void remove_weights(const fs::path& folder) {
  for (const char* name : {"model", "adapter", "checkpoints"}) fs::remove_all(folder / name);
}

Trial run_trial(Context context, std::vector<std::string> words, const fs::path& folder) {
  context.common.json = false;
  words.insert(words.end(), {"--output-dir", folder.string(), "--device-interval", "0.5"});
  const Trial trial{.folder = folder, .exit_code = train_command().run(context, words)};
  remove_weights(folder);
  return trial;
}

struct Invocation {
  ProfileFlags flags;
  launch::MemberFlags members;
  std::vector<std::string> rest;  // configuration and key=value pairs
};

Invocation read_command_line(Context& context, const std::vector<std::string>& arguments) {
  Invocation found;
  found.rest =
      parse_launcher_flags({config::list_fields(found.flags), config::list_fields(found.members),
                            config::list_fields(context.common)},
                           arguments, config::Positionals::Anywhere);
  CONVOY_CHECK(!found.rest.empty(), ConfigError,
               "profile wants the configuration of a training, or `report` and a run");
  CONVOY_CHECK(found.members.nnodes.empty() || found.members.nnodes == "1", ConfigError,
               "profile starts trainings of one host, found --nnodes {}: on several, give each "
               "`convoy train` --profile-steps, and `convoy profile report` rank 0's run folder",
               found.members.nnodes);
  CONVOY_CHECK(!settings::parse_step_range(found.flags.steps).empty(), ConfigError,
               "--steps wants at least one step, found \"{}\"", found.flags.steps);
  return found;
}

std::vector<std::string> train_words(const Invocation& found, bool on_one_rank) {
  std::vector<std::string> words = found.rest;
  for (std::string& word :
       trial_settings(settings::parse_step_range(found.flags.steps), found.flags.steps))
    words.push_back(std::move(word));
  launch::MemberFlags members = found.members, defaults;
  if (on_one_rank) members.nproc_per_node = "1";
  for (std::string& word :
       config::flags_that_differ(config::list_fields(members), config::list_fields(defaults)))
    words.push_back(std::move(word));
  words.insert(words.end(), {"--devices", found.flags.devices});
  return words;
}

fs::path output_folder(const Invocation& found) {
  if (!found.flags.output_dir.empty()) return found.flags.output_dir;
  std::string name = "run";
  for (const std::string& word : found.rest)
    if (word.find('=') == std::string::npos) name = fs::path(word).stem().string();
  return fs::path("runs") /
         fmt::format("profile-{}-{}", name, static_cast<int64_t>(wall_clock_seconds()));
}

void print_report(const Context& context, const profile::ProfiledRun& run) {
  if (!context.common.json) fmt::print("{}", profile::report_text(run));
  say_trace(context, profile::write_perfetto_trace(run.name));
}

int profile(Context& context, const std::vector<std::string>& arguments) {
  const Invocation found = read_command_line(context, arguments);
  const fs::path folder = output_folder(found);
  const Trial many = run_trial(context, train_words(found, false), folder / "ranks");
  if (many.exit_code != 0) return many.exit_code;
  const profile::ProfiledRun run = profile::read_profiled_run(many.folder);
  print_report(context, run);
  if (!found.flags.compare || run.breakdown.world_size == 1) {
    if (context.common.json) print_json(profile::report_json(run));
    return 0;
  }
  const Trial one = run_trial(context, train_words(found, true), folder / "one-rank");
  if (one.exit_code != 0) return one.exit_code;
  const profile::ProfiledRun single = profile::read_profiled_run(one.folder);
  profile::write_perfetto_trace(one.folder);
  if (!context.common.json) fmt::print("\n");
  print_comparison(context, single, run);
  return 0;
}

int run_profile(Context& context, const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "report")
    return report(context, {arguments.begin() + 1, arguments.end()});
  return profile(context, arguments);
}

std::string flag_tables() {
  return config::flag_table_of<ProfileFlags>() + config::flag_table_of<launch::MemberFlags>();
}

}  // namespace

Command profile_command() {
  return {
      .name = "profile",
      .summary = "says where the time of training steps goes: computing, collectives, data, host",
      .usage =
          "convoy profile CONFIG.yaml [key=value ...] [--nproc N] [--steps 5:14]\n"
          "convoy profile report RUN   (of a training with --profile-steps 10:15)",
      .examples =
          "convoy profile run.yaml --nproc 2\n"
          "convoy profile run.yaml --nproc 4 --steps 20:29 --no-compare\n"
          "convoy profile report last",
      .flag_table = flag_tables,
      .run = run_profile,
      .actions = {{.name = "report",
                   .summary = "where the time of the steps went that a training has traced",
                   .usage = "convoy profile report RUN [RUN-OF-ONE-RANK] [--output F]",
                   .flag_table = config::flag_table_of<ReportFlags>}}};
}

}  // namespace convoy::apps
