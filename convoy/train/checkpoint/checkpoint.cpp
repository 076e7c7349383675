// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/checkpoint/checkpoint.h"

#include <fmt/ranges.h>  // LibTorch's fmt declares fmt::join here

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/machine/device/stored_tensor.h"

namespace convoy::checkpoint {
namespace {

namespace fs = std::filesystem;

io::Json content_of(const TrainState& state, const TrainTensors& tensors) {
  io::Json groups = io::Json::array();
  for (const auto& [group, whole] : tensors.whole) groups.push_back(group);
  for (const auto& [group, pieces] : tensors.pieces) groups.push_back(group);
  return {{"program_version", CONVOY_VERSION},
          {"progress", to_json(state.progress)},
          {"stamp", state.stamp.to_json()},
          {"groups", std::move(groups)},
          {"extra", state.extra}};
}

std::vector<io::TensorSource> sources_of(const NamedTensors& tensors) {
  std::vector<io::TensorSource> sources;
  const auto reader = std::make_shared<device::PieceReader>();
  for (const auto& [name, tensor] : tensors)
    sources.push_back(device::tensor_source(name, tensor, reader));
  return sources;
}

void write_whole(io::SnapshotWriter& writer, const TrainTensors& tensors) {
  for (const auto& [group, whole] : tensors.whole)
    writer.write_tensors(group_file(group), sources_of(whole));
}

void require_folder(const fs::path& folder, int rank) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return;
  throw IoError(
      "every rank writes its part of a checkpoint, but its folder is not here: rank 0 cancelled "
      "the save (see its own error), or this host does not see the folder",
      {.file = folder.string(),
       .hint = "free disk space; on several hosts give --run-dir a folder that all share, or use "
               "strategy ddp",
       .rank = rank});
}

// The file that a rank other than 0 leaves in the folder when its part is written or has failed.
// Rank 0 reads it. It holds the records of the part's files, or the reason of the failure.
std::string part_file(int rank) { return fmt::format(".part-{:05}.json", rank); }

std::string records_text(const io::SnapshotWriter& writer) {
  io::Json list = io::Json::object();
  for (const auto& [name, record] : writer.records())
    list[name] = {{"bytes", record.bytes}, {"crc32c", record.crc32c}};
  return io::Json{{"files", list}}.dump();
}

// There is no time limit, because writing may take any time. If a rank has died, the launcher ends
// this rank.
void take_part(io::SnapshotWriter& writer, int rank, const PendingSave& save) {
  const fs::path file = writer.folder() / part_file(rank);
  for (std::chrono::milliseconds pause{1}; !fs::exists(file);
       pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
    if (save.is_cancelled())
      throw CheckpointError(
          "the save was cancelled",
          {.hint = "the run goes on from its last whole checkpoint: --resume auto"});
    std::this_thread::sleep_for(pause);
  }
  const io::Json part = io::parse_json(read_file(file), file.string());
  fs::remove(file);
  if (part.contains("failed"))
    throw CheckpointError(
        fmt::format("rank {} could not write its part: {}", rank,
                    part.at("failed").get<std::string>()),
        {.file = writer.folder().string(),
         .hint = "free disk space, and go on from the last whole checkpoint with --resume auto"});
  for (const auto& [name, record] : part.at("files").items())
    writer.add_written(name, {.bytes = record.at("bytes").get<int64_t>(),
                              .crc32c = record.at("crc32c").get<uint32_t>()});
}

// The message of the current exception. Only the first line of a foreign message is kept:
// LibTorch's backtrace begins on the second line.
std::string current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return error.sentence();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return text.substr(0, text.find('\n'));
  } catch (...) {
    return "an exception without a text";
  }
}

// Called on every rank but rank 0.
void leave_part(const fs::path& folder, int rank,
                const std::function<void(io::SnapshotWriter&)>& write) {
  require_folder(folder, rank);
  const fs::path file = folder / part_file(rank);
  try {
    io::SnapshotWriter writer(folder);
    write(writer);
    write_file_atomic(file, records_text(writer));
  } catch (...) {
    const std::string why = current_failure();
    try {
      write_file_atomic(file, io::Json{{"failed", why}}.dump());
    } catch (const Error&) {
      // The disk that refused the part refuses this note too. The original error is reported below.
    }
    throw;
  }
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
    for (const std::string& group : content.strings_or_empty("groups")) loaded.group(group);
    if (const std::string version = content.require_string("program_version");
        version != CONVOY_VERSION)
      loaded.notices.push_back(fmt::format("{} was written by Convoy {}, this is {}",
                                           snapshot.folder.string(), version, CONVOY_VERSION));
  } catch (const DataError& error) {
    throw CheckpointError(
        fmt::format("the checkpoint is not usable: {}", error.sentence()),
        {.file = snapshot.folder.string(),
         .hint = "resume from an older checkpoint, or start anew with --resume never"});
  }
  return loaded;
}

}  // namespace

io::Json to_json(const Progress& progress) {
  io::Json json = {{"step", progress.step},
                   {"epoch", progress.epoch},
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
  progress.tokens_seen = count("tokens_seen");
  progress.supervised_tokens_seen = count("supervised_tokens_seen");
  progress.best_metric = json.optional_double("best_metric", -1e300, 1e300);
  progress.best_step = count("best_step");
  progress.evaluations_without_improvement = count("evaluations_without_improvement");
  progress.evaluation_pending = json.bool_or("evaluation_pending", false);
  return progress;
}

CheckpointStore::CheckpointStore(fs::path folder, int64_t keep) : store_(std::move(folder), keep) {}

fs::path CheckpointStore::folder_of(int64_t step) const {
  return store_.root() / io::snapshot_folder_name(step);
}

void CheckpointStore::prepare() { store_.prepare(); }

fs::path CheckpointStore::save(const TrainState& state, const TrainTensors& tensors, bool is_best,
                               const NamedFiles& more_files) {
  return start_save(state, tensors, is_best, more_files)->wait();
}

std::unique_ptr<PendingSave> CheckpointStore::start_save(TrainState state, TrainTensors tensors,
                                                         bool is_best, NamedFiles more_files) {
  return std::make_unique<PendingSave>([this, is_best, state = std::move(state),
                                        tensors = std::move(tensors),
                                        more_files = std::move(more_files)](PendingSave& save) {
    return store_.save({state.progress.step, content_of(state, tensors), is_best},
                       [&](io::SnapshotWriter& writer) {
                         write_whole(writer, tensors);
                         save.tensors_are_read();
                         for (const auto& [name, text] : more_files) writer.write(name, text);
                       });
  });
}

std::unique_ptr<PendingSave> CheckpointStore::start_save_together(comm::Group& group,
                                                                  TrainState state,
                                                                  TrainTensors tensors,
                                                                  bool is_best,
                                                                  NamedFiles more_files) {
  const int rank = group.rank();
  const int size = group.size();
  const auto write_own = [rank, size, pieces = tensors.pieces](io::SnapshotWriter& writer) {
    for (const auto& [name, of_group] : pieces) write_pieces(writer, name, rank, size, of_group);
  };
  if (rank != 0) {
    const fs::path folder = group.all_gather_bytes("").front();
    return std::make_unique<PendingSave>([folder, rank, write_own](PendingSave&) {
      if (folder.empty())
        throw CheckpointError("rank 0 could not begin to save",
                              {.hint = "see the error of rank 0"});
      leave_part(folder, rank, write_own);
      return fs::path();
    });
  }
  const auto begun = std::make_shared<std::promise<std::string>>();
  auto pending = std::make_unique<PendingSave>(
      [this, is_best, size, begun, write_own, state = std::move(state),
       tensors = std::move(tensors), more_files = std::move(more_files)](PendingSave& save) {
        bool told = false;
        try {
          return store_.save({state.progress.step, content_of(state, tensors), is_best},
                             [&](io::SnapshotWriter& writer) {
                               begun->set_value(fs::absolute(writer.folder()).string());
                               told = true;
                               write_own(writer);
                               write_whole(writer, tensors);
                               save.tensors_are_read();
                               for (int other = 1; other < size; ++other)
                                 take_part(writer, other, save);
                               for (const auto& [name, text] : more_files) writer.write(name, text);
                             });
        } catch (...) {
          if (!told) begun->set_value("");
          throw;
        }
      });
  group.all_gather_bytes(begun->get_future().get());
  return pending;
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
      {.file = store_.root().string(), .hint = "evaluate the last checkpoint of the run instead"});
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
