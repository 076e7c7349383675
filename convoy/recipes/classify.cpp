// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/classify.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

#include "convoy/base/files.h"
#include "convoy/base/hash.h"
#include "convoy/device/determinism.h"
#include "convoy/device/dtype.h"
#include "convoy/device/placement.h"
#include "convoy/device/tensor_memory.h"
#include "convoy/device/threads.h"
#include "convoy/models/signal_files.h"
#include "convoy/parallel/trained_parameters.h"
#include "convoy/recipes/classify_report.h"
#include "convoy/recipes/effective_batch.h"
#include "convoy/recipes/memory_plan.h"
#include "convoy/recipes/optimizer_settings.h"
#include "convoy/recipes/run_fault.h"
#include "convoy/recipes/run_report.h"
#include "convoy/recipes/run_start.h"
#include "convoy/recipes/signal_data.h"
#include "convoy/recipes/traced_steps.h"
#include "convoy/recipes/train_stamp.h"
#include "convoy/telemetry/run_folder.h"
#include "convoy/telemetry/training_log.h"
#include "convoy/train/train_loop.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;

// Files of a checkpoint and of an exported model, without ".safetensors".
constexpr const char* kModelGroup = "model";
constexpr const char* kBuffersGroup = "buffers";

nn::SignalClassifierSpec network_of(const settings::ClassifySettings& classify,
                                    const SignalData& data) {
  return {.encoder = {.num_channels = data.train.num_channels(),
                      .window_rows = data.train.window_rows,
                      .pooling = models::parse_channel_pooling(classify.pooling),
                      .widths = classify.widths,
                      .kernel_sizes = classify.kernel_sizes},
          .hidden = classify.hidden_dims,
          .dropout = classify.dropout,
          .num_classes = data.num_classes()};
}

// The tags of the guide, by epoch.
std::map<std::string, double> epoch_tags(const train::EpochRecord& record) {
  std::map<std::string, double> tags = {{"Loss/train", record.train_loss},
                                        {"Accuracy/train", record.train_accuracy},
                                        {"Learning_rate", record.learning_rate}};
  if (record.val_loss) tags["Loss/val"] = *record.val_loss;
  if (record.val_accuracy) tags["Accuracy/val"] = *record.val_accuracy;
  return tags;
}

std::string hash_of(const std::vector<std::vector<nn::NamedTensor>>& lists) {
  Sha256 hash;
  for (const std::vector<nn::NamedTensor>& tensors : lists)
    for (const nn::NamedTensor& tensor : tensors) {
      const at::Tensor values = tensor.value.detach().cpu().contiguous();
      hash.update(std::as_bytes(
          std::span(values.const_data_ptr<float>(), static_cast<size_t>(values.numel()))));
    }
  return hash.hex();
}

// One rank's run, in the order in which things come to be.
class Classify {
 public:
  Classify(const FineTuneRequest& request, const settings::TrainSettings& settings,
           std::shared_ptr<comm::Meeting> meeting, const std::atomic<bool>& stop_requested,
           const Log& log)
      : request_(request),
        settings_(settings),
        stop_requested_(stop_requested),
        meeting_(std::move(meeting)),
        flight_(meeting_->flight()),
        environment_(meeting_->environment()),
        planned_(planned_job(environment_, request.plan_only)),
        placement_(device::place_rank(request.devices, environment_.local_rank)),
        dtype_(compute_dtype(settings, placement_)),
        log_(environment_.rank == 0 ? log : Log(LogLevel::Quiet)),
        folder_(telemetry::RunFolder::attach(request.run_folder)),
        checkpoints_(folder_.checkpoints_folder(), settings_.train.save_total_limit),
        start_(request_, settings_, *meeting_, checkpoints_, log_),
        trace_(flight_, settings::parse_step_range(settings_.logging.profile_steps),
               {.folder = folder_, .rank = environment_, .device = placement_.device}, log_) {}

  ExitCode run();

 private:
  ExitCode go();
  void make_model();
  void plan_steps();
  checkpoint::Stamp make_stamp() const;
  void compare_start();
  void prepare_training();
  void refuse_settings_of_language_models() const;
  void open_log();
  train::ClassifyOptions task_options() const;
  void use_best(const checkpoint::Progress& progress);
  void export_model();
  ExitCode finish(const train::LoopResult& result, const train::ClassifyTask& task);
  std::string kind_of_device() const {
    return at::DeviceTypeName(placement_.device.type(), /*lower_case=*/true);
  }

  const FineTuneRequest& request_;
  const settings::TrainSettings& settings_;
  const std::atomic<bool>& stop_requested_;
  std::shared_ptr<comm::Meeting> meeting_;
  telemetry::FlightWriter& flight_;
  const comm::RankEnvironment& environment_;
  const comm::RankEnvironment planned_;
  const device::Placement placement_;
  const std::string dtype_;  // of products
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Log log_;
  telemetry::RunFolder folder_;
  checkpoint::CheckpointStore checkpoints_;
  RunStart start_;
  TracedSteps trace_;  // outlives the group
  SignalData data_;
  std::string data_hash_;
  std::string validation_hash_;
  std::string weights_hash_;  // as the run starts from them
  std::optional<nn::SignalClassifier> model_;
  std::string config_text_;  // config.json of the model
  std::vector<nn::NamedTensor> parameters_;
  std::unique_ptr<comm::Group> group_;
  std::unique_ptr<parallel::Strategy> strategy_;
  std::optional<data::EpochDeal> deal_;
  std::optional<optim::AdamW> optimizer_;
  std::optional<optim::LearningRateSchedule> schedule_;
  checkpoint::Stamp stamp_;
  std::vector<std::string> hosts_;  // one per node
  std::optional<telemetry::TrainingLog> training_log_;
};

void Classify::make_model() {
  data_ = load_signal_data(settings_);
  data_hash_ = data_.train.content_hash();
  validation_hash_ = data_.validation.content_hash();
  model_.emplace(network_of(settings_.classify, data_), static_cast<uint64_t>(settings_.seed),
                 placement_.device);
  config_text_ =
      models::signal_config_text(model_->spec(), data_.train.channel_names, data_.class_names);
  if (!settings_.classify.encoder_path.empty())
    models::load_signal_encoder(*model_, settings_.classify.encoder_path);
  if (settings_.classify.freezes_encoder()) model_->freeze_encoder();
  weights_hash_ = hash_of({model_->parameters(), model_->buffers()});
  parameters_ = model_->trained_parameters();
}

void Classify::plan_steps() {
  deal_.emplace(data_.train.num_windows,
                data::DealConfig{.batch_size = settings_.train.batch_rows(),
                                 .world_size = planned_.world,
                                 .global_batch = start_.global_batch(),
                                 .shuffle = settings_.data.shuffle,
                                 .seed = static_cast<uint64_t>(settings_.seed)});
  stamp_ = make_stamp();
}

checkpoint::Stamp Classify::make_stamp() const {
  checkpoint::Stamp stamp;
  stamp_settings(stamp, settings_);
  stamp.set("backend", kind_of_device());
  stamp.set("dtype", dtype_);
  stamp_optimizer(stamp, settings_.train);
  stamp.set("data", data_hash_);
  stamp.set("shuffle", settings_.data.shuffle ? "on" : "off");
  stamp.set("seed", settings_.seed);
  stamp.set("model", sha256_hex(config_text_).substr(0, 16));
  stamp.set("encoder", model_->encoder_is_frozen() ? "frozen" : "trained");
  stamp.set("start_weights", weights_hash_.substr(0, 16));
  stamp.set("global_batch", deal_->config().global_batch);
  if (data_.validation.num_windows > 0)
    stamp.set_informational("validation_data", validation_hash_);
  stamp.set_informational("world_size", fmt::format("{}", deal_->config().world_size));
  return stamp;
}

void Classify::compare_start() {
  StartingPoint start;
  start.stamp = stamp_;
  const std::string& folder = settings_.classify.data_dir;
  start.inputs = {{"the training windows", data_hash_, folder},
                  {"the validation windows", validation_hash_, folder},
                  {"the test windows", data_.test.content_hash(), folder},
                  {"the starting weights", weights_hash_, settings_.classify.encoder_path}};
  hosts_ = start_.agree(std::move(start), folder_.checkpoints_folder());
}

void Classify::prepare_training() {
  if (const checkpoint::LoadedCheckpoint* const resumed = start_.resumed()) {
    restore_parameters(parameters_, resumed->group(kModelGroup));
    restore_parameters(model_->buffers(), resumed->group(kBuffersGroup));
  }
  strategy_ = parallel::make_strategy(settings_.parallel, *group_, environment_.local_world);
  optimizer_.emplace(adamw_config(settings_.train, settings_.seed),
                     parallel::prepare_units(*strategy_, model_->units(), parameters_));
  model_->set_residency(strategy_->residency());
  schedule_ = schedule_of(settings_.train, deal_->config().global_batch, deal_->steps_per_epoch());
  start_.restore_optimizer(*optimizer_, *strategy_);
}

void Classify::open_log() {
  if (group_->rank() != 0) return;
  telemetry::TrainingLogOptions options = training_log_options(
      settings_, folder_.logs_folder(), deal_->steps_per_epoch(), start_.progress(), log_);
  options.run_folder = folder_.path();
  options.world_size = group_->size();
  options.resume_state = start_.trainer_state();
  options.config_yaml = read_file(request_.settings.file);
  options.model_config_json = config_text_;
  options.best_name = settings_.train.larger_is_better() ? "accuracy" : "loss";
  options.greater_is_better = settings_.train.larger_is_better();
  options.counts_tokens = false;
  options.progress.color = request_.color;
  training_log_.emplace(std::move(options), log_);
}

train::ClassifyOptions Classify::task_options() const {
  return {.label_smoothing = settings_.classify.label_smoothing,
          .bf16 = dtype_ == "bf16",
          .eval_batch_size = settings_.train.rows_of_evaluation_batch()};
}

// On every rank: all of them test it.
void Classify::use_best(const checkpoint::Progress& progress) {
  if (!settings_.train.load_best_model_at_end || settings_.train.save_strategy == "no") return;
  if (!progress.best_metric || progress.best_step == progress.step) return;
  std::optional<checkpoint::LoadedCheckpoint> best;
  if (group_->rank() == 0) best = checkpoints_.load_best();
  group_->wait_for_all();  // while rank 0 verified it
  const std::string folder =
      group_->all_gather_bytes(best ? fs::absolute(best->folder).string() : "").front();
  if (folder.empty()) return;
  if (best) restore_parameters(model_->buffers(), best->group(kBuffersGroup));
  for (const nn::NamedTensor& buffer : model_->buffers()) group_->broadcast(buffer.value, 0);
  if (strategy_->values_are_whole()) {
    if (best) restore_parameters(parameters_, best->group(kModelGroup));
    for (const nn::NamedTensor& parameter : parameters_)
      group_->broadcast(parameter.value.detach(), 0);
  } else {
    restore_shards(strategy_->shards(), {folder, kModelGroup});
    strategy_->finish_step();
  }
  log_.info(fmt::format("taking the best checkpoint: step {}, {} {:.4f}", progress.best_step,
                        settings_.train.metric_for_best_model, *progress.best_metric));
}

void Classify::export_model() {
  std::vector<std::unique_ptr<nn::UnitUse>> uses;  // whole parameters on every rank
  for (size_t unit = 0; unit < model_->units().size(); ++unit)
    uses.push_back(std::make_unique<nn::UnitUse>(model_->residency(), unit));
  if (group_->rank() != 0) return;
  models::save_signal_classifier(*model_, config_text_, folder_.model_folder());
  log_.info(fmt::format("model written to {}", folder_.model_folder().string()));
}

ExitCode Classify::finish(const train::LoopResult& result, const train::ClassifyTask& task) {
  trace_.finish();
  const bool stopped = result.end == train::LoopEnd::Stopped;
  if (training_log_) training_log_->close_progress();
  report_early_stop(log_, settings_.train, result);
  if (!stopped && settings_.train.export_model) {
    flight_.set_phase("export");
    use_best(result.progress);
    ClassifyResults results{.history = task.history(),
                            .progress = result.progress,
                            .steps_per_epoch = deal_->steps_per_epoch()};
    if (data_.test.num_windows > 0)
      results.test = evaluate_windows(*model_, data_.test, task_options(), *group_);
    export_model();
    results.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    if (group_->rank() == 0) {
      checkpoints_.settle();
      write_classify_results(folder_.path(), results, settings_, data_, log_);
    }
  }
  if (training_log_) {
    training_log_->end(run_end(result.end));
    nlohmann::json figures = training_log_->final_figures();
    figures["run_name"] = settings_.run_name;
    figures["step"] = result.progress.step;
    figures["global_batch_size"] = deal_->config().global_batch;
    figures["lr_scaling"] = settings_.train.lr_scaling;
    figures["peak_learning_rate"] =
        scaled_learning_rate(settings_.train, deal_->config().global_batch);
    folder_.write_metrics(figures);
  }
  group_->wait_for_all();
  return stopped ? ExitCode::Stopped : ExitCode::Done;
}

ExitCode Classify::run() {
  try {
    return go();
  } catch (const std::exception& fault) {
    const Error error = fault_of(fault, "lower train.batch_size");
    // The others are not made to wait for this rank.
    if (training_log_) training_log_->failure(error);
    if (group_) group_->abort();
    if (dynamic_cast<const Error*>(&fault) != nullptr) throw;
    throw error;
  }
}

// What shapes language models has no meaning here, and is not passed over.
void Classify::refuse_settings_of_language_models() const {
  const std::vector<std::pair<const char*, bool>> asked = {
      {"model.name", !settings_.model.name.empty()},
      {"data.train_path", !settings_.data.train_path.empty()},
      {"data.val_path", !settings_.data.val_path.empty()},
      {"train.packing", settings_.train.packing},
      {"train.gradient_checkpointing", settings_.train.gradient_checkpointing}};
  for (const auto& [key, is_asked] : asked)
    if (is_asked)
      throw ConfigError("this is a setting of language models, and the task is classify",
                        {.key = key, .hint = "leave it out; windows come from classify.data_dir"});
  if (!settings_.train.computes_in_bf16() && settings_.model.dtype == "bf16")
    throw ConfigError("bf16 products are off (train.bf16, --no-amp), and model.dtype asks for them",
                      {.key = "model.dtype", .hint = "leave out one of the two"});
}

ExitCode Classify::go() {
  refuse_settings_of_language_models();
  if (settings_.train.deterministic && !placement_.device.is_cpu())
    device::take_deterministic_algorithms();
  device::keep_tensor_memory();
  device::share_cpu_threads(environment_.local_world, environment_.replicas);
  flight_.set_phase("data");
  make_model();
  flight_.set_phase("prepare");
  start_.find();
  plan_steps();
  const sizing::MemoryPlan memory =
      classifier_memory(settings_, *model_, planned_, dtype_ == "bf16");
  start_.check(stamp_);
  compare_start();
  group_ = comm::join_group_at(meeting_, std::chrono::seconds(settings_.parallel.timeout_s),
                               placement_.device);
  prepare_training();
  report_classify_plan(log_, settings_, data_, *model_, *deal_, dtype_);
  log_.info(fmt::format("memory of a rank: {}", memory.text()));
  if (request_.plan_only) return ExitCode::Done;
  if (group_->rank() == 0)
    folder_.write_identity(run_identity(settings_, read_file(request_.settings.file),
                                        {{"train", data_hash_}, {"val", validation_hash_}}, stamp_,
                                        hosts_, group_->size(), kind_of_device(),
                                        start_.progress()));
  open_log();
  train::ClassifyTask task(*model_, data_.train, *deal_, data_.validation, task_options(),
                           [this](const train::EpochRecord& record) {
                             if (training_log_)
                               training_log_->scalars(record.epoch, epoch_tags(record));
                           });
  if (!start_.folder().empty())
    task.remember(train::EpochHistory::from_json(start_.task_memory(), start_.folder().string()));
  checkpoint::NamedFiles files;
  if (group_->rank() == 0) files["config.json"] = config_text_;
  const train::LoopParts parts{.task = task,
                               .parameters = parameters_,
                               .parameter_group = kModelGroup,
                               .strategy = *strategy_,
                               .optimizer = *optimizer_,
                               .schedule = *schedule_,
                               .stamp = stamp_,
                               .checkpoints = checkpoints_,
                               .log = training_log_ ? &*training_log_ : nullptr,
                               .flight = flight_,
                               .files_alongside = std::move(files),
                               .buffers = model_->buffers(),
                               .stop_requested = stop_requested_};
  return finish(train::run_training_loop(parts, settings_, start_.progress()), task);
}

}  // namespace

ExitCode classify(const FineTuneRequest& request, const settings::TrainSettings& settings,
                  std::shared_ptr<comm::Meeting> meeting, const std::atomic<bool>& stop_requested,
                  const Log& log) {
  return Classify(request, settings, std::move(meeting), stop_requested, log).run();
}

}  // namespace convoy::recipes
