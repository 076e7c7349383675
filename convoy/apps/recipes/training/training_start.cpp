// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/training_start.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "convoy/apps/recipes/compute_machine.h"
#include "convoy/apps/recipes/training/train_stamp.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/foreign_checkpoint.h"
#include "convoy/core/telemetry/logs/trainer_state.h"
#include "convoy/data/datasets/batches/effective_batch.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/sizing/compute_dtype.h"

namespace convoy::recipes {

namespace fs = std::filesystem;

namespace {

// A run resumes only from its own state.
void refuse_foreign_checkpoint(const std::string& folder) {
  io::refuse_deepspeed_checkpoint(folder);
  if (!io::trainer_checkpoint_notice(folder)) return;
  throw CheckpointError(
      "this is a checkpoint of transformers' Trainer: its state is pickles, which are never read",
      {.file = folder,
       .hint = fmt::format("start a new run from its weights: model.name={}", folder)});
}

std::optional<checkpoint::LoadedCheckpoint> load_wished(TrainingRun& run) {
  if (run.store_barrier->rank() != 0) return std::nullopt;
  const std::string& wish = run.settings.train.resume_from_checkpoint;
  // A plan writes nothing, and its own folder has no checkpoints.
  if (!run.request.plan_only) run.checkpoints.prepare();
  // Without a checkpoint, the texts of an earlier life of the run do not count either.
  if (wish == "never" && !run.request.plan_only) fs::remove_all(run.folder.rollouts_folder());
  if (wish == "never" || (wish == "auto" && run.request.plan_only)) return std::nullopt;
  if (wish == "auto") return run.checkpoints.load_newest();
  refuse_foreign_checkpoint(wish);
  return checkpoint::load_checkpoint(wish);
}

// The best model by one metric is not the best by another.
void forget_best_of_another_figure(FoundCheckpoint& found,
                                   const settings::TrainingSettings& train) {
  const checkpoint::StampField* const saved = found.stamp->find("metric_for_best_model");
  if (saved == nullptr || saved->value == train.metric_for_best_model) return;
  found.forgets_best = true;
  found.progress.best_metric.reset();
  found.progress.best_step = 0;
  found.progress.evaluations_without_improvement = 0;
}

// Called on rank 0. Throws CheckpointError when the stamp of the checkpoint differs.
void check_stamp(const TrainingRun& run, const FoundCheckpoint& found,
                 const checkpoint::Stamp& stamp) {
  if (!found.loaded) return;
  const std::string folder = found.loaded->folder.string();
  for (const std::string& sentence : found.loaded->notices) run.log.warning(sentence);
  for (const std::string& sentence : checkpoint::require_same_stamp(
           with_later_settings(*found.stamp, stamp), stamp, run.request.forced_fields, folder))
    run.log.warning(sentence);
  run.log.info(fmt::format("resuming at step {} from {}", found.progress.step, folder));
  if (found.forgets_best)
    run.log.info(
        "the metric that decides the best checkpoint has changed: the earlier best does not count");
}

}  // namespace

namespace {

// Empty for task classify, and for an error that the load of the model will report.
std::optional<architecture::DecoderSpec> sizes_of(const settings::ModelSettings& model) {
  if (model.name.empty()) return std::nullopt;
  try {
    return families::read_decoder_spec(io::ModelFolder::open(model.name, model.revision));
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Chooses the dtype on rank 0 when the settings leave it open. A resumed run keeps its dtype on
// another machine.
sizing::DtypeChoice open_dtype(const TrainingRun& run, const FoundCheckpoint& found) {
  if (found.loaded) {
    const checkpoint::StampField* const saved = found.loaded->state.stamp.find("dtype");
    if (saved != nullptr && (saved->value != "bf16" || run.rank_device.has_bf16))
      return {saved->value, "as in the checkpoint"};
  }
  sizing::Machine machine = compute_machine(run.rank_device);
  machine.devices = run.planned.world;
  machine.device_bytes /= run.environment.local_world;
  return sizing::choose_training_dtype(run.settings, machine, sizes_of(run.settings.model));
}

}  // namespace

FoundCheckpoint find_checkpoint(TrainingRun& run) {
  FoundCheckpoint found{.loaded = load_wished(run)};
  const char* const of_rank_zero = "rank 0";
  io::Json word = {{"full_world", run.environment.full_world}};
  const bool is_open = run.dtype == "auto";
  if (is_open && run.store_barrier->rank() == 0) {
    const sizing::DtypeChoice choice = open_dtype(run, found);
    word["dtype"] = choice.dtype;
    word["dtype_reason"] = choice.reason;
  }
  if (found.loaded) {
    const checkpoint::TrainState& state = found.loaded->state;
    word["progress"] = checkpoint::to_json(state.progress);
    word["stamp"] = state.stamp.to_json();
    word["folder"] = fs::absolute(found.loaded->folder).string();
    word["task"] = state.extra.value("task", io::Json::object());
  }
  word = io::parse_json(run.store_barrier->word_of_rank_zero(word.dump()), of_rank_zero);
  found.full_world = word.at("full_world").get<int64_t>();
  if (is_open) {
    run.dtype = word.at("dtype").get<std::string>();
    run.dtype_reason = word.at("dtype_reason").get<std::string>();
    device::require_dtype(run.rank_device, run.dtype);
  }
  if (!word.contains("progress")) return found;
  found.progress = checkpoint::progress_from_json(word["progress"], of_rank_zero);
  found.stamp = checkpoint::Stamp::from_json(word["stamp"], of_rank_zero);
  found.folder = word["folder"].get<std::string>();
  found.objective_memory = word["task"];
  forget_best_of_another_figure(found, run.settings.train);
  return found;
}

std::optional<int64_t> FoundCheckpoint::saved_number(const std::string& setting) const {
  const checkpoint::StampField* const field = stamp ? stamp->find(setting) : nullptr;
  if (field == nullptr) return std::nullopt;
  int64_t number = 0;
  const char* const end = field->value.data() + field->value.size();
  const auto read = std::from_chars(field->value.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

std::string FoundCheckpoint::trainer_state() const {
  if (!loaded || progress.step == 0) return "";
  const fs::path file = loaded->folder / "trainer_state.json";
  if (!fs::exists(file)) return "";
  const std::string text = read_file(file);
  if (!forgets_best || text.empty()) return text;
  telemetry::TrainerState state = telemetry::parse_trainer_state(text);
  state.best_metric.reset();
  state.best_global_step.reset();
  state.best_model_checkpoint.reset();
  return telemetry::trainer_state_json(state);
}

int64_t global_batch(const TrainingRun& run, const FoundCheckpoint& found,
                     const settings::TrainSettings& settings) {
  std::optional<int64_t> kept;
  if (found.stamp) kept = kept_global_batch(*found.stamp, settings, run.request.forced_fields);
  if (kept) return *kept;
  return data::wanted_global_batch(settings.train,
                                   std::max<int64_t>(found.full_world, run.environment.world));
}

Agreed agree(const TrainingRun& run, const FoundCheckpoint& found, const checkpoint::Stamp& stamp,
             const std::function<std::vector<SharedInput>()>& inputs) {
  check_stamp(run, found, stamp);
  StartingPoint start{.inputs = inputs(),
                      .stamp = stamp,
                      .checkpoints_folder = run.folder.checkpoints_folder().string()};
  if (run.settings.train.resume_from_checkpoint == "auto" && !run.request.plan_only)
    start.newest_checkpoint = run.checkpoints.newest_step().value_or(-1);
  return {agree_on_start(*run.store_barrier, start)};
}

std::unique_ptr<comm::Group> join(const TrainingRun& run, const Agreed& /*agreed*/) {
  return comm::join_group_at(run.store_barrier,
                             std::chrono::seconds(run.settings.parallel.timeout_s),
                             run.rank_device.device);
}

void restore_optimizer(const FoundCheckpoint& found, optim::AdamW& optimizer,
                       parallel::Strategy& strategy) {
  const int64_t step = found.progress.step;
  if (step == 0) return;
  const bool shared = strategy.shares_state();
  if (found.loaded || shared)
    optimizer.load_state(step,
                         saved_state({found.folder, "optimizer"}, optimizer, strategy.shards()));
  if (shared) return;
  const std::vector<optim::NamedState> state = optimizer.state();
  for (const optim::NamedState& tensor : state) {
    // Paged states are on the host; data to send must be where the group computes.
    const at::Tensor sent =
        tensor.value.to(optimizer.parameters()[tensor.parameter].value.device());
    strategy.group().broadcast(sent, 0);
    if (!sent.is_same(tensor.value)) at::Tensor(tensor.value).copy_(sent);
  }
  optimizer.load_state(step, state);
}

bool takes_best(const settings::TrainingSettings& train, const checkpoint::Progress& progress) {
  return train.load_best_model_at_end && train.save_strategy != "no" && progress.best_metric &&
         progress.best_step != progress.step;
}

std::string folder_of_best(comm::Group& group,
                           const std::optional<checkpoint::LoadedCheckpoint>& best) {
  group.wait_for_all();  // rank 0 has verified `best` meanwhile
  return group.all_gather_bytes(best ? fs::absolute(best->folder).string() : "").front();
}

}  // namespace convoy::recipes
