// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/run_start.h"

#include <algorithm>

#include "convoy/base/files.h"
#include "convoy/recipes/effective_batch.h"
#include "convoy/recipes/train_stamp.h"
#include "convoy/train/train_loop.h"

namespace convoy::recipes {

namespace fs = std::filesystem;

std::string compute_dtype(const settings::TrainSettings& settings,
                          const device::Placement& placement) {
  device::require_dtype(placement, settings.model.dtype);
  if (settings.model.dtype != "auto") return settings.model.dtype;
  return settings.train.bf16 && placement.has_bf16 ? "bf16" : "fp32";
}

optim::AdamWConfig adamw_config(const settings::TrainingSettings& train) {
  return {.beta1 = train.optimizer.adam_beta1,
          .beta2 = train.optimizer.adam_beta2,
          .epsilon = train.optimizer.adam_epsilon,
          .weight_decay = train.weight_decay};
}

optim::LearningRateSchedule schedule_of(const settings::TrainingSettings& train,
                                        int64_t global_batch, int64_t steps_per_epoch) {
  return {train.schedule, scaled_learning_rate(train, global_batch),
          train::total_steps(train, steps_per_epoch), steps_per_epoch};
}

void RunStart::find_checkpoint() {
  if (meeting_.rank() != 0 || request_.plan_only) return;
  const std::string& wish = settings_.train.resume_from_checkpoint;
  checkpoints_.prepare();
  if (wish == "auto")
    resumed_ = checkpoints_.load_newest();
  else if (wish != "never")
    resumed_ = checkpoint::load_checkpoint(wish);
}

void RunStart::find() {
  find_checkpoint();
  const char* const of_rank_zero = "rank 0";
  io::Json word = {{"full_world", meeting_.environment().full_world}};
  if (resumed_) {
    word["progress"] = checkpoint::to_json(resumed_->state.progress);
    word["stamp"] = resumed_->state.stamp.to_json();
    word["folder"] = fs::absolute(resumed_->folder).string();
    word["task"] = resumed_->state.extra.value("task", io::Json::object());
  }
  word = io::parse_json(meeting_.word_of_rank_zero(word.dump()), of_rank_zero);
  full_world_ = word.at("full_world").get<int64_t>();
  if (!word.contains("progress")) return;
  progress_ = checkpoint::progress_from_json(word["progress"], of_rank_zero);
  saved_stamp_ = checkpoint::Stamp::from_json(word["stamp"], of_rank_zero);
  folder_ = word["folder"].get<std::string>();
  task_memory_ = word["task"];
}

int64_t RunStart::global_batch() const {
  std::optional<int64_t> kept;
  if (saved_stamp_) kept = kept_global_batch(*saved_stamp_, settings_, request_.forced_fields);
  if (kept) return *kept;
  return wanted_global_batch(settings_.train,
                             std::max<int64_t>(full_world_, meeting_.environment().world));
}

void RunStart::check(const checkpoint::Stamp& stamp) const {
  if (!resumed_) return;
  for (const std::string& sentence : resumed_->notices) log_.warning(sentence);
  for (const std::string& sentence :
       checkpoint::require_same_stamp(with_later_settings(*saved_stamp_, stamp), stamp,
                                      request_.forced_fields, resumed_->folder.string()))
    log_.warning(sentence);
  log_.info(fmt::format("resuming at step {} from {}", progress_.step, resumed_->folder.string()));
}

std::vector<std::string> RunStart::agree(StartingPoint start,
                                         const fs::path& checkpoints_folder) const {
  if (settings_.train.resume_from_checkpoint == "auto" && !request_.plan_only)
    start.newest_checkpoint = checkpoints_.newest_step().value_or(-1);
  start.checkpoints_folder = checkpoints_folder.string();
  return agree_on_start(meeting_, start);
}

void RunStart::restore_optimizer(optim::AdamW& optimizer, parallel::Strategy& strategy) {
  if (progress_.step == 0) {
    resumed_.reset();
    return;
  }
  const bool shared = strategy.shares_state();
  if (resumed_ || shared)
    optimizer.load_state(progress_.step,
                         saved_state({folder_, "optimizer"}, optimizer, strategy.shards()));
  if (resumed_) {
    const fs::path trainer_state = resumed_->folder / "trainer_state.json";
    if (fs::exists(trainer_state)) trainer_state_ = read_file(trainer_state);
  }
  resumed_.reset();
  if (shared) return;
  const std::vector<optim::NamedState> state = optimizer.state();
  for (const optim::NamedState& tensor : state) strategy.group().broadcast(tensor.value, 0);
  optimizer.load_state(progress_.step, state);
}

}  // namespace convoy::recipes
