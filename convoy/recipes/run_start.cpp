// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/run_start.h"

#include <algorithm>
#include <charconv>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/data/effective_batch.h"
#include "convoy/io/foreign_checkpoint.h"
#include "convoy/recipes/effective_batch.h"
#include "convoy/recipes/train_stamp.h"
#include "convoy/telemetry/trainer_state.h"
#include "convoy/train/train_loop.h"

namespace convoy::recipes {

namespace fs = std::filesystem;

namespace {

// A run goes on from its own state alone.
void refuse_foreign_checkpoint(const std::string& folder) {
  io::refuse_deepspeed_checkpoint(folder);
  if (!io::trainer_checkpoint_notice(folder)) return;
  throw CheckpointError(
      "this is a checkpoint of transformers' Trainer: its state is pickles, which are never read",
      {.file = folder,
       .hint = fmt::format("start a new run from its weights: model.name={}", folder)});
}

}  // namespace

std::string compute_dtype(const settings::TrainSettings& settings,
                          const device::Placement& placement) {
  device::require_dtype(placement, settings.model.dtype);
  if (settings.model.dtype != "auto") return settings.model.dtype;
  return settings.train.computes_in_bf16() && placement.has_bf16 ? "bf16" : "fp32";
}

comm::RankEnvironment planned_job(comm::RankEnvironment environment, bool plan_only) {
  if (plan_only) environment.world = std::max(environment.world, environment.full_world);
  return environment;
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
  else if (wish != "never") {
    refuse_foreign_checkpoint(wish);
    resumed_ = checkpoint::load_checkpoint(wish);
  }
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
  forget_best_of_another_figure();
}

// What was best by one figure says nothing by another.
void RunStart::forget_best_of_another_figure() {
  const checkpoint::StampField* const saved = saved_stamp_->find("metric_for_best_model");
  if (saved == nullptr || saved->value == settings_.train.metric_for_best_model) return;
  forgets_best_ = true;
  progress_.best_metric.reset();
  progress_.best_step = 0;
  progress_.evaluations_without_improvement = 0;
}

int64_t RunStart::global_batch() const {
  std::optional<int64_t> kept;
  if (saved_stamp_) kept = kept_global_batch(*saved_stamp_, settings_, request_.forced_fields);
  if (kept) return *kept;
  return data::wanted_global_batch(settings_.train,
                                   std::max<int64_t>(full_world_, meeting_.environment().world));
}

std::optional<int64_t> RunStart::saved_number(const std::string& setting) const {
  const checkpoint::StampField* const field = saved_stamp_ ? saved_stamp_->find(setting) : nullptr;
  if (field == nullptr) return std::nullopt;
  int64_t number = 0;
  const char* const end = field->value.data() + field->value.size();
  const auto read = std::from_chars(field->value.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

void RunStart::check(const checkpoint::Stamp& stamp) const {
  if (!resumed_) return;
  for (const std::string& sentence : resumed_->notices) log_.warning(sentence);
  for (const std::string& sentence :
       checkpoint::require_same_stamp(with_later_settings(*saved_stamp_, stamp), stamp,
                                      request_.forced_fields, resumed_->folder.string()))
    log_.warning(sentence);
  log_.info(fmt::format("resuming at step {} from {}", progress_.step, resumed_->folder.string()));
  if (forgets_best_) log_.info("the figure that decides best is another one: best is sought anew");
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
    if (forgets_best_ && !trainer_state_.empty()) {
      telemetry::TrainerState state = telemetry::parse_trainer_state(trainer_state_);
      state.best_metric.reset();
      state.best_global_step.reset();
      state.best_model_checkpoint.reset();
      trainer_state_ = telemetry::trainer_state_json(state);
    }
  }
  resumed_.reset();
  if (shared) return;
  const std::vector<optim::NamedState> state = optimizer.state();
  for (const optim::NamedState& tensor : state) {
    // Paged states lie on the host; what is sent lies where the group computes.
    const at::Tensor sent =
        tensor.value.to(optimizer.parameters()[tensor.parameter].value.device());
    strategy.group().broadcast(sent, 0);
    if (!sent.is_same(tensor.value)) at::Tensor(tensor.value).copy_(sent);
  }
  optimizer.load_state(progress_.step, state);
}

}  // namespace convoy::recipes
