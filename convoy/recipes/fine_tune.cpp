// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/fine_tune.h"

#include <algorithm>
#include <optional>

#include "convoy/base/files.h"
#include "convoy/checkpoint/checkpoint.h"
#include "convoy/comm/environment.h"
#include "convoy/comm/group.h"
#include "convoy/data/batch_plan.h"
#include "convoy/data/encode_splits.h"
#include "convoy/device/dtype.h"
#include "convoy/device/threads.h"
#include "convoy/models/export.h"
#include "convoy/parallel/strategy.h"
#include "convoy/recipes/loaded_model.h"
#include "convoy/recipes/run_report.h"
#include "convoy/recipes/train_stamp.h"
#include "convoy/telemetry/flight_record_writer.h"
#include "convoy/telemetry/run_folder.h"
#include "convoy/telemetry/training_log.h"
#include "convoy/train/train_loop.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;

std::string compute_dtype(const settings::TrainSettings& settings) {
  if (settings.model.dtype != "auto") return settings.model.dtype;
  return settings.train.bf16 ? "bf16" : "fp32";
}

data::BatchPlanConfig plan_config(const settings::TrainSettings& settings, int64_t world_size,
                                  int64_t global_batch) {
  return {.batch_size = settings.train.batch_size,
          .grad_accum = settings.train.grad_accum,
          .world_size = world_size,
          .global_batch = global_batch,
          .packing = settings.train.packing,
          .block_tokens = settings.model.max_seq_len,
          .shuffle = settings.data.shuffle,
          .seed = static_cast<uint64_t>(settings.seed)};
}

// One rank's run, in the order in which things come to be.
class FineTune {
 public:
  FineTune(const FineTuneRequest& request, const std::atomic<bool>& stop_requested, const Log& log)
      : request_(request),
        settings_(request.settings),
        stop_requested_(stop_requested),
        flight_(telemetry::FlightWriter::attach()),
        environment_(comm::read_rank_environment()),
        log_(environment_.rank == 0 ? log : Log(LogLevel::Quiet)),
        folder_(telemetry::RunFolder::attach(request.run_folder)),
        checkpoints_(folder_.checkpoints_folder(), settings_.train.save_total_limit) {}

  ExitCode run();

 private:
  void load_base();
  void encode_data();
  void choose_parameters();
  void find_checkpoint();
  int64_t global_batch();
  void prepare_training();
  void adopt(const checkpoint::LoadedCheckpoint& loaded);
  void open_log();
  void write_alongside(const fs::path& folder) const;
  void use_best(const checkpoint::Progress& progress);
  void export_result();
  ExitCode finish(const train::LoopResult& result);

  const FineTuneRequest& request_;
  const settings::TrainSettings& settings_;
  const std::atomic<bool>& stop_requested_;
  telemetry::FlightWriter flight_;  // first, so that it watches over everything that follows
  comm::RankEnvironment environment_;
  Log log_;
  telemetry::RunFolder folder_;
  checkpoint::CheckpointStore checkpoints_;
  std::optional<LoadedModel> base_;
  data::EncodedSplits splits_;
  std::vector<nn::NamedTensor> parameters_;
  std::string parameter_group_;
  std::unique_ptr<comm::Group> group_;
  std::unique_ptr<parallel::Strategy> strategy_;
  std::optional<data::BatchPlan> plan_;
  std::optional<optim::AdamW> optimizer_;
  std::optional<optim::LearningRateSchedule> schedule_;
  checkpoint::Stamp stamp_;
  std::optional<checkpoint::LoadedCheckpoint> resumed_;  // until its state is taken over
  checkpoint::Progress start_;
  std::string resumed_trainer_state_;
  std::optional<telemetry::TrainingLog> training_log_;
};

void FineTune::load_base() {
  base_.emplace(load_model({.name = settings_.model.name,
                            .revision = settings_.model.revision,
                            .adapter = "",
                            .dtype = compute_dtype(settings_),
                            .template_path = settings_.data.template_path},
                           log_));
  if (settings_.model.max_seq_len > base_->model->max_positions())
    throw ConfigError(fmt::format("model.max_seq_len is {}, but the model has {} positions",
                                  settings_.model.max_seq_len, base_->model->max_positions()),
                      {.key = "model.max_seq_len", .hint = "lower it"});
}

void FineTune::encode_data() {
  const data::EncodeInputs inputs{.data = settings_.data,
                                  .task = settings_.task,
                                  .max_seq_len = settings_.model.max_seq_len,
                                  .seed = static_cast<uint64_t>(settings_.seed),
                                  .tokenizer = base_->tokenizer,
                                  .chat_template = base_->template_or_null(),
                                  .log = log_};
  splits_ = data::encode_splits(inputs, data::Splits::TrainAndVal);
}

void FineTune::choose_parameters() {
  nn::CausalLm& model = *base_->model;
  if (settings_.tuning.mode == "full") {
    model.set_requires_grad(true);
    parameters_ = model.parameters();
    parameter_group_ = "model";
    return;
  }
  const settings::LoraSettings& lora = settings_.tuning.lora;
  base_->lora = lora.adapter.empty()
                    ? adapters::LoraModel::create(model, adapters::LoraConfig::from_settings(lora),
                                                  static_cast<uint64_t>(settings_.seed))
                    : adapters::LoraModel::load(model, lora.adapter);
  parameters_ = base_->lora->parameters();
  parameter_group_ = "adapter_model";
}

void FineTune::find_checkpoint() {
  const std::string& wish = settings_.train.resume_from_checkpoint;
  if (group_->rank() == 0) checkpoints_.prepare();
  group_->barrier();
  if (wish == "never") return;
  if (wish == "auto")
    resumed_ = checkpoints_.load_newest();
  else
    resumed_ = checkpoint::load_checkpoint(wish);
}

// Of the job with all its nodes, so that the numbers do not depend on who is there; of rank 0's word where nodes start unlike numbers of ranks.
int64_t FineTune::global_batch() {
  const at::Tensor full_world = at::full({1}, environment_.full_world, at::kLong);
  group_->broadcast(full_world, 0);
  const int64_t own = settings_.train.batch_size * settings_.train.grad_accum *
                      std::max<int64_t>(full_world.item<int64_t>(), group_->size());
  if (!resumed_) return own;
  return kept_global_batch(resumed_->state.stamp, settings_, request_.forced_fields).value_or(own);
}

void FineTune::prepare_training() {
  strategy_ = parallel::make_strategy(settings_.parallel, *group_);
  std::vector<parallel::TrainableParameter> trainable;
  for (const nn::NamedTensor& parameter : parameters_)
    trainable.push_back({parameter.name, parameter.value});
  strategy_->prepare(std::move(trainable));

  plan_.emplace(splits_.train, plan_config(settings_, group_->size(), global_batch()));
  std::vector<optim::OptimizedParameter> optimized;
  for (size_t index = 0; index < parameters_.size(); ++index)
    optimized.push_back({.name = parameters_[index].name,
                         .value = parameters_[index].value,
                         .gradient = strategy_->gradients()[index],
                         .decays = optim::takes_weight_decay(parameters_[index].name)});
  const settings::OptimizerSettings& constants = settings_.train.optimizer;
  optimizer_.emplace(optim::AdamWConfig{.beta1 = constants.adam_beta1,
                                        .beta2 = constants.adam_beta2,
                                        .epsilon = constants.adam_epsilon,
                                        .weight_decay = settings_.train.weight_decay},
                     std::move(optimized));
  schedule_.emplace(settings_.train.schedule, settings_.train.learning_rate,
                    train::total_steps(settings_.train, plan_->steps_per_epoch()));
  stamp_ = train_stamp(settings_, *base_, splits_, compute_dtype(settings_), plan_->config());
}

void FineTune::adopt(const checkpoint::LoadedCheckpoint& loaded) {
  for (const std::string& sentence : loaded.notices) log_.warning(sentence);
  for (const std::string& sentence : checkpoint::require_same_stamp(
           loaded.state.stamp, stamp_, request_.forced_fields, loaded.folder.string()))
    log_.warning(sentence);
  restore_parameters(parameters_, parameter_group_, loaded);
  std::vector<optim::NamedState> state;
  for (const auto& [name, tensor] : loaded.state.groups.at("optimizer"))
    state.push_back({name, tensor});
  optimizer_->load_state(loaded.state.progress.step, state);
  start_ = loaded.state.progress;
  const fs::path trainer_state = loaded.folder / "trainer_state.json";
  if (fs::exists(trainer_state)) resumed_trainer_state_ = read_file(trainer_state);
  log_.info(fmt::format("resuming at step {} from {}", start_.step, loaded.folder.string()));
}

void FineTune::open_log() {
  if (group_->rank() != 0) return;
  const auto& backends = settings_.logging.backend.names;
  const bool writes_tensorboard =
      std::find(backends.begin(), backends.end(), "tensorboard") != backends.end();
  const telemetry::TelemetryEnvironment environment = telemetry::read_environment();
  telemetry::TrainingLogOptions options;
  options.run_folder = folder_.path();
  if (writes_tensorboard)
    options.tensorboard_folder = environment.tensorboard_folder.empty()
                                     ? folder_.tensorboard_folder()
                                     : environment.tensorboard_folder;
  options.total_steps = train::total_steps(settings_.train, plan_->steps_per_epoch());
  options.total_epochs =
      static_cast<double>(options.total_steps) / static_cast<double>(plan_->steps_per_epoch());
  options.logging_steps = settings_.train.logging_steps;
  options.log_interval = settings_.logging.log_interval;
  options.eval_steps = settings_.train.eval_steps;
  options.save_steps = settings_.train.save_steps;
  options.world_size = group_->size();
  options.resume_step = start_.step > 0 ? start_.step : -1;
  options.resume_state = resumed_trainer_state_;
  options.config_yaml = read_file(folder_.config_path());
  options.model_config_json = read_file(base_->folder.require("config.json"));
  options.progress.total = options.total_steps;
  options.progress.start = start_.step;
  options.progress.color = request_.color;
  if (log_.level() == LogLevel::Quiet) options.progress.style = telemetry::ProgressStyle::None;
  training_log_.emplace(std::move(options), log_);
}

// A checkpoint folder of a LoRA run is a PEFT adapter, one of a full run a Hugging Face model: the group's own file lies
// beside what is added here.
void FineTune::write_alongside(const fs::path& folder) const {
  if (base_->lora)
    base_->lora->save_config(folder, settings_.model.name);
  else
    models::copy_model_files(base_->folder, folder, device::parse_dtype(compute_dtype(settings_)));
}

void FineTune::use_best(const checkpoint::Progress& progress) {
  if (!settings_.train.load_best_model_at_end || settings_.train.save_strategy == "no") return;
  if (!progress.best_metric || progress.best_step == progress.step) return;
  const std::optional<checkpoint::LoadedCheckpoint> best = checkpoints_.load_best();
  if (!best) return;
  restore_parameters(parameters_, parameter_group_, *best);
  base_->model->head().weight_changed();
  for (nn::Linear* linear : base_->model->block_linears()) linear->weight_changed();
  log_.info(fmt::format("taking the best checkpoint: step {}, eval loss {:.4f}", progress.best_step,
                        *progress.best_metric));
}

void FineTune::export_result() {
  if (base_->lora) {
    base_->lora->save(folder_.adapter_folder(), settings_.model.name);
    log_.info(fmt::format("adapter written to {}", folder_.adapter_folder().string()));
    log_.info(fmt::format("try it: convoy generate --model {} --adapter {} --interactive",
                          settings_.model.name, folder_.adapter_folder().string()));
    return;
  }
  models::export_model(*base_->model, base_->folder, folder_.model_folder(),
                       {.dtype = device::parse_dtype(compute_dtype(settings_))});
  log_.info(fmt::format("model written to {}", folder_.model_folder().string()));
  log_.info(fmt::format("try it: convoy generate --model {} --interactive",
                        folder_.model_folder().string()));
}

ExitCode FineTune::finish(const train::LoopResult& result) {
  const bool stopped = result.end == train::LoopEnd::Stopped;
  if (group_->rank() == 0) {
    if (!stopped) {
      flight_.set_phase("export");
      use_best(result.progress);
      export_result();
    }
    training_log_->end(stopped ? telemetry::RunEnd::Stopped
                       : result.end == train::LoopEnd::EarlyStopped
                           ? telemetry::RunEnd::EarlyStopped
                           : telemetry::RunEnd::Finished);
    folder_.write_metrics(
        final_metrics(training_log_->final_figures(), settings_, *plan_, result.progress));
  }
  group_->barrier();
  return stopped ? ExitCode::Stopped : ExitCode::Done;
}

ExitCode FineTune::run() {
  device::share_cpu_threads(environment_.local_world);
  flight_.set_phase("load");
  load_base();
  group_ =
      comm::join_group(environment_, std::chrono::seconds(settings_.parallel.timeout_s), &flight_);
  flight_.set_phase("data");
  // The first rank of a host encodes, the others then find its token cache.
  if (environment_.local_rank == 0) encode_data();
  group_->barrier();
  if (environment_.local_rank != 0) encode_data();
  flight_.set_phase("prepare");
  choose_parameters();
  if (!request_.plan_only) find_checkpoint();
  prepare_training();
  report_plan(log_, settings_, *base_, splits_, *plan_, parameters_, compute_dtype(settings_));
  if (request_.plan_only) return ExitCode::Done;
  if (resumed_) adopt(*resumed_);
  resumed_.reset();
  const int64_t total_steps = train::total_steps(settings_.train, plan_->steps_per_epoch());
  if (start_.step >= total_steps)
    log_.info(fmt::format("nothing left to train: step {} of {}", start_.step, total_steps));
  if (group_->rank() == 0)
    folder_.write_identity(run_identity(settings_, folder_, splits_, stamp_, *group_, start_));
  open_log();
  try {
    const train::LoopParts parts{
        .model = *base_->model,
        .parameters = parameters_,
        .parameter_group = parameter_group_,
        .plan = *plan_,
        .validation = splits_.val,
        .strategy = *strategy_,
        .optimizer = *optimizer_,
        .schedule = *schedule_,
        .stamp = stamp_,
        .checkpoints = checkpoints_,
        .log = training_log_ ? &*training_log_ : nullptr,
        .flight = flight_,
        .set_training =
            [this](bool training) {
              if (base_->lora) base_->lora->set_training(training);
            },
        .write_alongside = [this](const fs::path& folder) { write_alongside(folder); },
        .stop_requested = stop_requested_};
    return finish(train::run_training_loop(parts, settings_, start_));
  } catch (const Error& error) {
    if (training_log_) training_log_->failure(error);
    group_->abort();
    throw;
  }
}

}  // namespace

ExitCode fine_tune(const FineTuneRequest& request, const std::atomic<bool>& stop_requested,
                   const Log& log) {
  return FineTune(request, stop_requested, log).run();
}

}  // namespace convoy::recipes
