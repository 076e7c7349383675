// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/train_inputs.h"

#include <cerrno>
#include <filesystem>

#include "convoy/core/base/nearby_files.h"
#include "convoy/core/io/foreign_checkpoint.h"
#include "convoy/core/io/model_fingerprint.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/data/datasets/sources/dataset.h"
#include "convoy/farm/remote/served_teacher.h"
#include "convoy/farm/rewards/reward.h"

namespace convoy::apps {
namespace {

template <class Look>
void look(std::vector<DataError>& missing, const char* key, const Look& look_for) {
  try {
    look_for();
  } catch (const DataError& error) {
    ErrorLocation location = error.location();
    location.key = key;
    missing.emplace_back(error.what(), location);
  }
}

// A reward that names its key itself.
void look_at_reward(std::vector<DataError>& missing, const settings::RewardSettings& reward) {
  try {
    rewards::check_reward(reward);
  } catch (const DataError& error) {
    missing.push_back(error);
  }
}

// Throws unless a file or folder exists at `path`.
void require_there(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw DataError("there is no such file or folder",
                    {.file = path, .hint = unreadable_file_hint(path, ENOENT)});
}

// Throws for an adapter, or for a run that has trained one.
void require_whole_model(const std::string& name) {
  const std::filesystem::path trained = std::filesystem::path(name) / "adapter";
  for (const std::filesystem::path& adapter : {std::filesystem::path(name), trained})
    if (const auto base = io::base_of_adapter_folder(adapter))
      throw DataError("wanted a whole model, found an adapter",
                      {.file = adapter.string(),
                       .hint = fmt::format("merge it into its base, and name that folder: `convoy "
                                           "models merge --model {} --adapter {} --output FOLDER`",
                                           *base, adapter.string())});
  io::ModelFolder::open(name);
}

}  // namespace

std::vector<DataError> missing_train_inputs(const settings::TrainSettings& train) {
  std::vector<DataError> missing;
  const settings::TaskData kind = train.task_facts().data;
  if (kind == settings::TaskData::Windows) {
    const settings::ClassifySettings& classify = train.classify;
    if (!classify.data_dir.empty())
      look(missing, "classify.data_dir", [&] { require_there(classify.data_dir); });
    if (!classify.encoder_path.empty())
      look(missing, "classify.encoder_path", [&] { require_there(classify.encoder_path); });
    return missing;
  }
  if (!train.model.name.empty())
    look(missing, "model.name", [&] {
      const auto base = io::base_of_adapter_folder(train.model.name);
      io::ModelFolder::open(base.value_or(train.model.name), train.model.revision);
    });
  if (kind == settings::TaskData::Mix)
    for (const settings::MixedDataset& dataset : settings::mixed_datasets(train.datasets))
      for (const std::string& name : {dataset.path, dataset.val_path})
        if (!name.empty()) look(missing, "datasets", [&] { data::find_dataset({.name = name}); });
  const std::pair<const char*, const std::string*> datasets[] = {
      {"data.train_path", &train.data.train_path},
      {"data.val_path", &train.data.val_path},
      {"data.test_path", &train.data.test_path}};
  for (const auto& [key, name] : datasets)
    if (!name->empty() && kind != settings::TaskData::Mix)
      look(missing, key, [&name = name] { data::find_dataset({.name = *name}); });
  if (const std::string& reference = train.preference.reference;
      train.has_reference() && reference != "base" && reference != "start")
    look(missing, "preference.reference", [&] { require_whole_model(reference); });
  if (const std::string& reference = train.policy.reference;
      kind == settings::TaskData::Rollouts && reference != "base" && reference != "start")
    look(missing, "policy.reference", [&] { io::folder_of_weights(reference); });
  if (train.has_served_teacher()) remote::teacher_servers(train.distill);
  if (const std::string& teacher = train.distill.teacher;
      train.has_teacher_in_memory() && !teacher.empty())
    look(missing, "distill.teacher", [&] { io::folder_of_weights(teacher); });
  if (kind == settings::TaskData::Rollouts && !train.rollout.prompt.empty())
    look(missing, "rollout.prompt", [&] { require_there(train.rollout.prompt); });
  for (const settings::RewardSettings& reward : settings::rewards_of(train.reward))
    look_at_reward(missing, reward);
  const std::pair<const char*, const std::string*> paths[] = {
      {"data.template_path", &train.data.template_path},
      {"tuning.lora.adapter", &train.tuning.lora.adapter}};
  for (const auto& [key, path] : paths)
    if (!path->empty()) look(missing, key, [&path = path] { require_there(*path); });
  return missing;
}

void require_train_inputs(const settings::TrainSettings& train) {
  const std::vector<DataError> missing = missing_train_inputs(train);
  if (missing.empty()) return;
  if (missing.size() == 1) throw missing.front();
  std::string text;
  for (const DataError& error : missing)
    text += fmt::format("{}: {}\n", error.location().key, error.sentence());
  throw DataError(fmt::format("{}{} errors", text, missing.size()));
}

}  // namespace convoy::apps
