// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/train_node_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/apps/front/peers/peer_launch.h"
#include "convoy/apps/front/train/train_config.h"
#include "convoy/core/base/error.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

std::string name_by_file(const TrainInvocation& found) {
  for (const std::string& word : found.rest)
    if (is_config_file(word)) return fs::path(word).stem().string();
  return found.flags.preset.empty() ? "run" : found.flags.preset;
}

// True when the node may receive its configuration from rank 0: it then needs only its folder and
// its own paths.
bool may_be_sent(const launch::JobSetup& setup) {
  if (setup.adopted()) return setup.place.rank != 0;
  return setup.several_nodes() && setup.wanted_node_rank != 0;
}

// Refuses activity recognition without a configuration. Its flags are only settings, so the run
// would be taken for a training of a language model.
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

void require_config(const TrainInvocation& found) {
  if (found.rest.empty() && found.flags.preset.empty())
    throw ConfigError("`convoy train` needs a configuration", {.hint = "convoy train run.yaml"});
  refuse_recognition_without_config(found);
}

NodeConfig resolve_on_node(const TrainStart& start, const settings::TrainDocuments& documents,
                           settings::Wanted wanted) {
  auto train = std::make_unique<settings::TrainSettings>();
  config::Resolved resolved =
      resolve_logged(*train, documents, start.context.log(), wanted, ranks_of_job(start.setup));
  if (train->run_name.empty()) {
    train->run_name = name_by_file(start.found);
    resolved.decided("run_name", "name of the config file");
  }
  return {.train = std::move(train), .resolved = std::move(resolved)};
}

// Resolves the command line alone, without a file. These settings apply on this host to whatever
// configuration rank 0 sends.
NodeConfig resolve_without_file(const TrainStart& start) {
  settings::TrainDocuments documents = start.found.documents;
  documents.sources.files = {};  // also drops the error that the file is missing
  NodeConfig config = resolve_on_node(start, documents, settings::Wanted::Anything);
  config.is_here = false;
  return config;
}

}  // namespace

NodeConfig read_node_config(const TrainStart& start) {
  // A dry run has only the ranks of this node, so no other node sends a configuration.
  const bool is_sent = may_be_sent(start.setup) && !start.flags().dry_run;
  return is_sent && !start.found.documents.sources.files.is_here() ? resolve_without_file(start)
                                                                   : read_own_config(start);
}

NodeConfig read_own_config(const TrainStart& start) {
  require_config(start.found);
  return resolve_on_node(start, start.found.documents, settings::Wanted::TrainInputs);
}

void check_launch_settings(const TrainStart& start) {
  if (!start.found.rest.empty() || !start.flags().preset.empty())
    resolve_on_node(start, start.found.documents, settings::Wanted::Anything);
}

}  // namespace convoy::apps
