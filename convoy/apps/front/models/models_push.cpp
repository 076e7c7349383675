// SPDX-License-Identifier: Apache-2.0
//
// `convoy models push`: uploads a model folder, an adapter folder or what a run has trained.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/models/hub_transfer.h"
#include "convoy/apps/front/models/model_card.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/hub/push.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

struct PushFlags {
  std::string revision = "main";
  std::string message = "Upload with convoy models push";
  bool is_private = false;
  config::NameList include;
  config::NameList exclude;
  int64_t jobs = 4;
  bool dry_run = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("revision", revision, "branch to push to; made from the main one when it is not there")
        .alias("branch");
    visit("message", message, "first line of the commit").alias("commit_message");
    visit("private", is_private, "make the repository a private one, when it is not there");
    visit("include", include,
          "only files that match, such as '*.json'; may be given more than once");
    visit("exclude", exclude, "exclude files that match; may be given more than once");
    visit("jobs", jobs, "large files sent at once").at_least(1).at_most(32);
    visit("dry_run", dry_run, "print the files that would be pushed and their size; asks no hub");
  }
};

struct PushSource {
  fs::path folder;    // its files are pushed
  fs::path run = {};  // the run folder that holds it; empty: none

  bool is_checkpoint() const { return !run.empty() && folder.parent_path() == run / "checkpoints"; }
};

// Files that only a training needs, to go on from a checkpoint.
const std::vector<std::string>& training_files() {
  static const std::vector<std::string> files = {"manifest.json", "optimizer.safetensors",
                                                 "optimizer-*.safetensors", "trainer_state.json"};
  return files;
}

bool is_run(const fs::path& folder) { return fs::exists(folder / "run.json"); }
bool holds_adapter(const fs::path& folder) { return fs::exists(folder / "adapter_config.json"); }

bool holds_model(const fs::path& folder) {
  if (fs::exists(folder / "config.json") || holds_adapter(folder)) return true;
  const auto files = fs::directory_iterator(folder);
  return std::any_of(begin(files), end(files), [](const fs::directory_entry& file) {
    return file.path().extension() == ".gguf" || file.path().extension() == ".safetensors";
  });
}

PushSource source_of_run(const fs::path& run) {
  const bool has_adapter = holds_adapter(run / "adapter");
  const bool has_model = fs::exists(run / "model" / "config.json");
  if (has_adapter && has_model)
    throw DataError(
        fmt::format("{} holds an adapter and a model", run.string()),
        {.file = run.string(), .hint = fmt::format("push {0}/adapter or {0}/model", run.string())});
  if (!has_adapter && !has_model)
    throw DataError(
        fmt::format("{} holds no final model: its training has not ended", run.string()),
        {.file = run.string(),
         .hint = fmt::format("train on, or push {}/checkpoints/best", run.string())});
  return {.folder = run / (has_adapter ? "adapter" : "model"), .run = run};
}

PushSource find_source(const fs::path& given) {
  std::error_code ignored;
  if (!fs::is_directory(given, ignored))
    throw DataError(
        fmt::format("{} is no folder", given.string()),
        {.file = given.string(), .hint = "give a model folder, an adapter folder or a run folder"});
  const fs::path folder = fs::canonical(given);
  if (is_run(folder)) return source_of_run(folder);
  if (!holds_model(folder))
    throw DataError(
        fmt::format("{} holds no model: wanted config.json, adapter_config.json, *.safetensors or "
                    "*.gguf",
                    given.string()),
        {.file = given.string(), .hint = "give a model folder, an adapter folder or a run folder"});
  const fs::path above = folder.parent_path();
  for (const fs::path& run : {above, above.parent_path()})
    if (is_run(run)) return {.folder = folder, .run = run};
  return {.folder = folder};
}

bool has_card(const std::vector<hub::PushFile>& files) {
  return std::any_of(files.begin(), files.end(),
                     [](const hub::PushFile& file) { return file.path == "README.md"; });
}

hub::PushPlan plan_of(const PushFlags& flags, const Words& words, const Log& log) {
  const PushSource source = find_source(words[0]);
  hub::FileChoice choice{.include = flags.include.names, .exclude = flags.exclude.names};
  if (source.is_checkpoint() && choice.include.empty()) {
    choice.exclude.insert(choice.exclude.end(), training_files().begin(), training_files().end());
    log.info(fmt::format("the state of the training stays here: {}; --include sends it",
                         fmt::join(training_files(), ", ")));
  }
  hub::PushPlan plan{.target = {.id = words[1], .revision = flags.revision},
                     .files = hub::files_to_push(source.folder, choice),
                     .message = flags.message,
                     .is_private = flags.is_private,
                     .num_parallel = flags.jobs};
  if (plan.files.empty())
    throw DataError(fmt::format("no file of {} is selected", source.folder.string()),
                    {.file = source.folder.string(), .hint = "mend --include and --exclude"});
  const bool wants_card =
      !source.run.empty() && !fs::exists(source.folder / "README.md") && !has_card(plan.files);
  const std::string name = words[1].substr(words[1].find('/') + 1);
  if (wants_card)
    plan.files.insert(plan.files.begin(),
                      hub::file_of_text("README.md", model_card(source.run, source.folder, name)));
  return plan;
}

// An adapter that was trained over a folder names that folder as its base, which nobody else has.
void warn_of_local_base(const hub::PushPlan& plan, const Log& log) {
  for (const hub::PushFile& file : plan.files) {
    if (file.path != "adapter_config.json") continue;
    const std::string text = hub::PushBytes(file).read(0, file.size_bytes);
    const nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
    if (!config.is_object()) return;
    const auto base = config.find("base_model_name_or_path");
    if (base == config.end() || !base->is_string()) return;
    std::error_code ignored;
    const fs::path name = base->get<std::string>();
    if (name.is_absolute() || fs::is_directory(name, ignored))
      log.warning(
          fmt::format("adapter_config.json names the base model by a folder of this machine, "
                      "{}: write its id at the hub there, and push again",
                      name.string()));
  }
}

int64_t bytes_of(const std::vector<hub::PushFile>& files) {
  int64_t bytes = 0;
  for (const hub::PushFile& file : files) bytes += file.size_bytes;
  return bytes;
}

nlohmann::ordered_json files_json(const hub::PushPlan& plan, const hub::PushResult& result) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (size_t index = 0; index < plan.files.size(); ++index) {
    const hub::PushFile& file = plan.files[index];
    nlohmann::ordered_json row = {
        {"path", file.path}, {"bytes", file.size_bytes}, {"made", file.source.empty()}};
    if (!result.how.empty()) row["pushed"] = hub::pushed_word(result.how[index]);
    files.push_back(std::move(row));
  }
  return files;
}

void print_plan(const Context& context, const hub::PushPlan& plan) {
  if (context.common.json) {
    const nlohmann::ordered_json told = {{"repository", plan.target.id},
                                         {"revision", plan.target.revision},
                                         {"to_push_bytes", bytes_of(plan.files)},
                                         {"files", files_json(plan, {})}};
    std::cout << told.dump(1) << "\n";
    return;
  }
  for (const hub::PushFile& file : plan.files)
    fmt::print("{:>12}  {}{}\n", file.size_bytes, file.path,
               file.source.empty() ? "  (made from the run's record)" : "");
  fmt::print("{} to push to {}, less what the hub has\n",
             telemetry::bytes_text(bytes_of(plan.files)), plan.target.id);
}

void print_result(const Context& context, const hub::PushPlan& plan, const hub::PushResult& result,
                  const std::string& endpoint) {
  const std::string page = fmt::format("{}/{}", endpoint, plan.target.id);
  if (context.common.json) {
    const nlohmann::ordered_json told = {{"repository", plan.target.id},
                                         {"revision", plan.target.revision},
                                         {"url", page},
                                         {"is_new", result.is_new},
                                         {"commit", result.commit.commit},
                                         {"commit_url", result.commit.url},
                                         {"sent_bytes", result.sent_bytes},
                                         {"files", files_json(plan, result)}};
    std::cout << told.dump(1) << "\n";
    return;
  }
  const Log log = context.log();
  const auto changed = std::count_if(result.how.begin(), result.how.end(), [](hub::PushedAs how) {
    return how == hub::PushedAs::Small || how == hub::PushedAs::Large;
  });
  if (result.commit.url.empty())
    log.info(fmt::format("nothing changed: {} has all {}", plan.target.id,
                         counted(std::ssize(plan.files), "file")));
  else
    log.info(fmt::format("commit {:.12} of {} to {}: {} ({} of large files sent)",
                         result.commit.commit, counted(changed, "file"), plan.target.id,
                         result.commit.url, telemetry::bytes_text(result.sent_bytes)));
  fmt::print("{}\n", page);
}

int push_model(const Context& context, const PushFlags& flags, const Words& words) {
  if (words.size() != 2)
    throw ConfigError(fmt::format("wanted a folder and a name, found {}", words.size()),
                      {.hint = "convoy models push DIR USER/NAME"});
  hub::HubSettings settings = hub::read_hub_settings();
  hub::require_push_name({.id = words[1], .revision = flags.revision});
  const hub::PushPlan plan = plan_of(flags, words, context.log());
  warn_of_local_base(plan, context.log());
  if (flags.dry_run) {
    print_plan(context, plan);
    return 0;
  }
  hub::PushResult result;
  const Log log = context.log();
  const bool is_whole = run_transfer(
      context, "push", true, [&](const hub::StopTest& stop, hub::TransferProgress& progress) {
        result = hub::push(plan, settings, stop, progress, log);
      });
  if (!is_whole) {
    log.info("stopped; the same command goes on and sends nothing again that the hub has");
    return static_cast<int>(ExitCode::Stopped);
  }
  print_result(context, plan, result, settings.endpoint);
  return 0;
}

}  // namespace

Command models_push_action() {
  return {.name = "push",
          .summary = "Upload a model or adapter to the Hugging Face hub",
          .usage = "convoy models push FOLDER|RUN USER/NAME [flags]",
          .examples =
              "convoy models push runs/support me/support-lora --private\n"
              "convoy models push models/merged me/merged --dry-run",
          .flags = {flags_of<PushFlags>()},
          .run = with_flags_of<PushFlags, push_model>};
}

}  // namespace convoy::apps
