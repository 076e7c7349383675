// SPDX-License-Identifier: Apache-2.0
#include "convoy/checkpoint/checkpoint.h"

#include <fmt/ranges.h>  // join lies here in the fmt of LibTorch

#include <utility>

#include "convoy/base/error.h"
#include "convoy/device/stored_tensor.h"
#include "convoy/io/json_reader.h"
#include "convoy/io/safetensors.h"

namespace convoy::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string group_file(const std::string& group) { return group + ".safetensors"; }

io::Json content_of(const TrainState& state) {
  io::Json groups = io::Json::array();
  for (const auto& [group, tensors] : state.groups) groups.push_back(group);
  return {{"program_version", CONVOY_VERSION},
          {"progress", to_json(state.progress)},
          {"stamp", state.stamp.to_json()},
          {"groups", std::move(groups)},
          {"extra", state.extra}};
}

std::vector<io::TensorSource> sources_of(const NamedTensors& tensors) {
  std::vector<io::TensorSource> sources;
  for (const auto& [name, tensor] : tensors) sources.push_back(device::tensor_source(name, tensor));
  return sources;
}

NamedTensors read_group(const fs::path& path) {
  const io::SafetensorsFile file(path);
  NamedTensors tensors;
  for (const io::TensorView& view : file.tensors())
    tensors.emplace(view.name, device::copy_to_tensor(view));
  return tensors;
}

LoadedCheckpoint read_verified(const io::VerifiedSnapshot& snapshot,
                               std::vector<std::string> notices) {
  const std::string place = (snapshot.folder / "manifest.json").string();
  const io::JsonReader content(snapshot.manifest.content, place);
  LoadedCheckpoint loaded{snapshot.folder, {}, std::move(notices)};
  try {
    TrainState& state = loaded.state;
    state.progress = progress_from_json(content.require_object("progress").value(), place);
    state.stamp = Stamp::from_json(content.require_object("stamp").value(), place);
    state.extra = content.require_object("extra").value();
    for (const std::string& group : content.strings_or_empty("groups"))
      state.groups.emplace(group, read_group(snapshot.folder / group_file(group)));
    if (const std::string version = content.require_string("program_version");
        version != CONVOY_VERSION)
      loaded.notices.push_back(fmt::format("{} was written by Convoy {}, this is {}",
                                           snapshot.folder.string(), version, CONVOY_VERSION));
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("the checkpoint is not usable: {}", error.sentence()),
                          {.file = snapshot.folder.string()});
  }
  return loaded;
}

}  // namespace

io::Json to_json(const Progress& progress) {
  io::Json json = {{"step", progress.step},
                   {"epoch", progress.epoch},
                   {"position_in_epoch", progress.position_in_epoch},
                   {"micro_step", progress.micro_step},
                   {"tokens_seen", progress.tokens_seen},
                   {"supervised_tokens_seen", progress.supervised_tokens_seen},
                   {"best_metric", nullptr},
                   {"best_step", progress.best_step},
                   {"evaluations_without_improvement", progress.evaluations_without_improvement},
                   {"evaluation_pending", progress.evaluation_pending}};
  if (progress.best_metric) json["best_metric"] = *progress.best_metric;
  return json;
}

Progress progress_from_json(const io::Json& value, const std::string& place) {
  const io::JsonReader json(value, place);
  const auto count = [&](const char* key) { return json.require_int(key, 0, INT64_MAX); };
  Progress progress;
  progress.step = count("step");
  progress.epoch = count("epoch");
  progress.position_in_epoch = count("position_in_epoch");
  progress.micro_step = count("micro_step");
  progress.tokens_seen = count("tokens_seen");
  progress.supervised_tokens_seen = count("supervised_tokens_seen");
  progress.best_metric = json.optional_double("best_metric", -1e300, 1e300);
  progress.best_step = count("best_step");
  progress.evaluations_without_improvement = count("evaluations_without_improvement");
  progress.evaluation_pending = json.bool_or("evaluation_pending", false);
  return progress;
}

CheckpointStore::CheckpointStore(fs::path folder, int64_t keep) : store_(std::move(folder), keep) {}

void CheckpointStore::prepare() { store_.prepare(); }

fs::path CheckpointStore::save(const TrainState& state, bool is_best,
                               const NamedFiles& more_files) {
  return store_.save({state.progress.step, content_of(state), is_best},
                     [&](io::SnapshotWriter& writer) {
                       for (const auto& [group, tensors] : state.groups)
                         writer.write_tensors(group_file(group), sources_of(tensors));
                       for (const auto& [name, text] : more_files) writer.write(name, text);
                     });
}

void CheckpointStore::settle() { store_.settle(); }

std::optional<LoadedCheckpoint> CheckpointStore::load_newest() {
  std::vector<std::string> notices;
  const std::optional<io::VerifiedSnapshot> snapshot = store_.newest_valid(notices);
  if (snapshot) return read_verified(*snapshot, std::move(notices));
  if (notices.empty()) return std::nullopt;
  throw CheckpointError(fmt::format("no checkpoint is usable: {}", fmt::join(notices, ". ")),
                        {.file = store_.root().string(),
                         .hint = "start anew with --resume never, or name another folder"});
}

std::optional<LoadedCheckpoint> CheckpointStore::load_best() {
  std::vector<std::string> notices;
  const std::optional<io::VerifiedSnapshot> snapshot = store_.best(notices);
  if (snapshot) return read_verified(*snapshot, std::move(notices));
  if (notices.empty()) return std::nullopt;
  throw CheckpointError(
      fmt::format("the best checkpoint is not usable: {}", fmt::join(notices, ". ")),
      {.file = store_.root().string()});
}

std::optional<int64_t> CheckpointStore::newest_step() const {
  const std::vector<int64_t> steps = store_.steps();
  if (steps.empty()) return std::nullopt;
  return steps.back();
}

LoadedCheckpoint load_checkpoint(const fs::path& folder) {
  return read_verified(io::verify_snapshot(folder), {});
}

}  // namespace convoy::checkpoint
