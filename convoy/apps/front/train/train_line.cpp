// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/train_line.h"

#include <fmt/format.h>

#include <string_view>
#include <system_error>

#include "convoy/apps/front/peers/foreign_launchers.h"
#include "convoy/apps/front/peers/peer_launch.h"
#include "convoy/apps/front/train/train_config.h"
#include "convoy/apps/front/worker/worker_ranks.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/har_flags.h"
#include "convoy/launch/submit/quoting.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

// The run of a checkpoint: RUN/checkpoints/step-00000100. Empty when it is not in a run folder.
fs::path run_of_checkpoint(const fs::path& checkpoint) {
  std::error_code failure;
  const fs::path real = fs::canonical(checkpoint, failure);
  if (failure || real.parent_path().filename() != "checkpoints") return {};
  const fs::path run = real.parent_path().parent_path();
  return fs::exists(run / "config.yaml", failure) ? run : fs::path();
}

// Flags are settings under another name, so they are recorded and repeated like settings.
std::vector<std::string> with_flags(std::vector<std::string> arguments, const TrainFlags& flags,
                                    const settings::HarFlags& har) {
  for (std::string& word : har.settings()) arguments.push_back(std::move(word));
  if (!flags.model.empty()) arguments.push_back("model.name=" + flags.model);
  if (!flags.data.empty()) arguments.push_back("data.train_path=" + flags.data);
  if (!flags.deepspeed.empty()) arguments.push_back("train.deepspeed=" + flags.deepspeed);
  if (!flags.profile_steps.empty())
    arguments.push_back("logging.profile_steps=" + flags.profile_steps);
  if (flags.deterministic) arguments.push_back("train.deterministic=true");
  if (!flags.accelerate_config.empty())
    arguments.push_back("accelerate=" + flags.accelerate_config);
  fs::path folder = flags.output_dir;
  std::string resume = flags.resume;
  // A run folder means its newest checkpoint.
  if (!resume.empty() && fs::is_directory(fs::path(resume) / kRoundsFolder)) {
    if (folder.empty()) folder = resume;
    resume = "auto";
  }
  if (!resume.empty() && fs::is_directory(fs::path(resume) / "checkpoints")) {
    if (folder.empty()) folder = resume;
    resume = folder == resume ? "auto" : (fs::path(resume) / "checkpoints" / "last").string();
  }
  if (!resume.empty()) arguments.push_back("train.resume_from_checkpoint=" + resume);
  // A resumed run continues in the folder of its checkpoint.
  if (folder.empty() && !flags.resume.empty()) folder = run_of_checkpoint(flags.resume);
  if (!folder.empty()) arguments.push_back("train.output_dir=" + folder.string());
  return arguments;
}

// Accepts `CONFIG=run.yaml` (as in `make train`) and `--config run.yaml` (as in `train.py`) for the
// file that is a positional word here.
void name_config_by_a_word(std::vector<std::string>& words, const TrainFlags& flags) {
  for (std::string& word : words) word = without_config_name(std::move(word));
  if (!flags.config.empty()) words.insert(words.begin(), flags.config);
}

// Returns the words without flags. Reports a setting that was typed as a flag.
std::vector<std::string> parse_train_flags(const std::vector<config::Section>& lists,
                                           const std::vector<std::string>& arguments) {
  try {
    return parse_launcher_flags(lists, arguments, config::Positionals::Anywhere);
  } catch (const ConfigError& error) {
    const std::string& flag = error.location().key;
    const std::string setting = setting_of_flag(flag);
    const std::string_view message = error.what();
    // `--rank` lacks the last letter of `--ranks`; it does not mean LoRA's rank.
    const bool is_singular =
        message.ends_with(fmt::format("did you mean {}s?", flag.substr(0, flag.find('='))));
    if (setting.empty() || is_singular || !message.starts_with("unknown flag")) throw;
    throw ConfigError(fmt::format("unknown flag {}: {} is a setting", flag, setting),
                      {.key = flag, .hint = fmt::format("write it as {}=VALUE", setting)});
  }
}

bool is_started_as_rank() {
  const launch::Environment environment = launch::process_environment();
  return environment.contains("RANK") || environment.contains("LOCAL_RANK");
}

}  // namespace

bool is_config_file(const std::string& word) { return word.find('=') == std::string::npos; }

TrainInvocation read_train_line(Context& context, const std::vector<std::string>& arguments) {
  TrainInvocation found;
  launch::MemberFlags members;
  settings::HarFlags har;
  launch::read_pet_variables({config::list_fields(members)}, launch::process_environment());
  found.rest =
      with_flags(parse_train_flags({config::list_fields(found.flags), config::list_fields(members),
                                    config::list_fields(har), config::list_fields(context.common)},
                                   arguments),
                 found.flags, har);
  name_config_by_a_word(found.rest, found.flags);
  found.multi_gpu = har.multi_gpu;
  // One rank per usable device, unless another launcher has started them.
  if (har.multi_gpu == "ddp" && members.nproc_per_node.empty() && !is_started_as_rank())
    members.nproc_per_node = "auto";
  export_library_variables(found.rest, context.log());
  found.har_data = !har.data_dir.empty();
  settings::LaunchRequest typed;
  take_node_words(found.rest, typed);
  refuse_launcher_words(found.rest);
  found.documents = settings::read_train_documents(config_sources(found.rest, found.flags.preset));
  refuse_accelerate_file(found.documents.sources.files);
  take_launch_request(typed, members, found.flags, context.log());
  const settings::LaunchRequest& in_files = found.documents.launch_request;
  if (!is_started_as_rank()) {
    take_launch_request(in_files, members, found.flags, context.log());
    say_unread_accelerate_file(in_files, context.log());
  }
  found.request = worker_request(context, found.flags);
  found.request.members = members;
  found.request.own_program->devices_of_rank = in_files.devices_of_rank;
  return found;
}

std::vector<std::string> rank_words(const TrainInvocation& of) {
  launch::MemberFlags members = of.request.members;
  launch::MemberFlags defaults;
  std::vector<std::string> words =
      config::flags_that_differ(config::list_fields(members), config::list_fields(defaults));
  if (of.flags.devices != "auto") words.insert(words.end(), {"--devices", of.flags.devices});
  if (of.flags.threads > 0)
    words.insert(words.end(), {"--threads", std::to_string(of.flags.threads)});
  return words;
}

std::string command_to_go_on(const TrainInvocation& of, const settings::TrainSettings& train,
                             const fs::path& folder) {
  std::vector<std::string> words = {"convoy", "train"};
  if (const fs::path config = folder / "config.yaml"; fs::exists(config))
    words.push_back(config.string());
  else
    words.insert(words.end(), of.rest.begin(), of.rest.end());
  words.insert(words.end(), {"--run-dir", folder.string()});
  for (std::string& word : rank_words(of)) words.push_back(std::move(word));
  if (train.train.resume_from_checkpoint != "auto") words.insert(words.end(), {"--resume", "auto"});
  return launch::shell_words(words);
}

}  // namespace convoy::apps
