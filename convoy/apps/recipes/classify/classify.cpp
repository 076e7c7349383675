// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <optional>
#include <span>

#include "convoy/apps/recipes/classify/classify_report.h"
#include "convoy/apps/recipes/classify/signal_data.h"
#include "convoy/apps/recipes/memory/memory_plan.h"
#include "convoy/apps/recipes/training/effective_batch.h"
#include "convoy/apps/recipes/training/fine_tune_rank.h"
#include "convoy/apps/recipes/training/joined_training.h"
#include "convoy/apps/recipes/training/optimizer_settings.h"
#include "convoy/apps/recipes/training/train_stamp.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/model/models/signal_files.h"
#include "convoy/train/parallel/trained_parameters.h"

namespace convoy::recipes {
namespace {

// File names in a checkpoint and an exported model, without ".safetensors".
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

// The guide's tags, by epoch.
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

// The input that a rank finds when it starts to train a classifier.
struct ClassifyInput {
  SignalData data;
  std::string data_hash;
  std::string validation_hash;
  nn::SignalClassifier model;
  std::string config_text;   // config.json of the model
  std::string weights_hash;  // hash of the weights at the start of the run
  std::vector<nn::NamedTensor> parameters;
  FoundCheckpoint checkpoint;
  data::EpochOrder order;
};

// Collective.
ClassifyInput find_classify_input(TrainingRun& run) {
  const settings::TrainSettings& settings = run.settings;
  const settings::ClassifySettings& classify = settings.classify;
  const auto seed = static_cast<uint64_t>(settings.seed);
  run.flight().set_phase("data");
  SignalData data = load_signal_data(settings);
  std::string data_hash = data.train.content_hash();
  std::string validation_hash = data.validation.content_hash();
  nn::SignalClassifier model(network_of(classify, data), seed, run.rank_device.device);
  std::string config_text =
      models::signal_config_text(model.spec(), data.train.channel_names, data.class_names);
  if (!classify.encoder_path.empty()) models::load_signal_encoder(model, classify.encoder_path);
  if (classify.freezes_encoder()) model.freeze_encoder();
  std::string weights_hash = hash_of({model.parameters(), model.buffers()});
  std::vector<nn::NamedTensor> parameters = model.trained_parameters();
  run.flight().set_phase("prepare");
  FoundCheckpoint checkpoint = find_checkpoint(run);
  const data::EpochOrder order(data.train.num_windows,
                               {.batch_size = settings.train.batch_rows(),
                                .world_size = run.planned.world,
                                .global_batch = global_batch(run, checkpoint, settings),
                                .shuffle = settings.data.shuffle,
                                .seed = seed});
  return {std::move(data),       std::move(data_hash),   std::move(validation_hash),
          std::move(model),      std::move(config_text), std::move(weights_hash),
          std::move(parameters), std::move(checkpoint),  order};
}

checkpoint::Stamp stamp_of(const TrainingRun& run, const ClassifyInput& input) {
  const settings::TrainSettings& settings = run.settings;
  checkpoint::Stamp stamp;
  stamp_settings(stamp, settings);
  stamp.set("backend", run.device_kind());
  stamp.set("dtype", run.dtype);
  stamp_optimizer(stamp, settings.train);
  stamp.set("data", input.data_hash);
  stamp.set("shuffle", settings.data.shuffle ? "on" : "off");
  stamp.set("seed", settings.seed);
  stamp.set("model", sha256_hex(input.config_text).substr(0, 16));
  stamp.set("encoder", input.model.encoder_is_frozen() ? "frozen" : "trained");
  stamp.set("start_weights", input.weights_hash.substr(0, 16));
  stamp.set("global_batch", input.order.config().global_batch);
  if (input.data.validation.num_windows > 0)
    stamp.set_informational("validation_data", input.validation_hash);
  stamp.set_informational("world_size", fmt::format("{}", input.order.config().world_size));
  return stamp;
}

std::vector<SharedInput> shared_inputs(const TrainingRun& run, const ClassifyInput& input) {
  const settings::ClassifySettings& classify = run.settings.classify;
  return {{"the training windows", input.data_hash, classify.data_dir},
          {"the validation windows", input.validation_hash, classify.data_dir},
          {"the test windows", input.data.test.content_hash(), classify.data_dir},
          {"the starting weights", input.weights_hash, classify.encoder_path}};
}

PreparedState prepare_state(const TrainingRun& run, ClassifyInput& input, comm::Group& group) {
  if (const auto& loaded = input.checkpoint.loaded) {
    restore_parameters(input.parameters, loaded->group(kModelGroup));
    restore_parameters(input.model.buffers(), loaded->group(kBuffersGroup));
  }
  std::unique_ptr<parallel::Strategy> strategy =
      parallel::make_strategy(run.settings.parallel, group, run.environment.local_world);
  optim::AdamW optimizer(adamw_config(run.settings.train, run.settings.seed),
                         parallel::prepare_units(*strategy, input.model.units(), input.parameters));
  input.model.set_residency(strategy->residency());
  return {std::move(strategy), std::move(optimizer)};
}

// A classifier's training, for train_joined().
struct Classify : JoinedTraining {
  const ClassifyInput& input;
  const sizing::MemoryPlan& memory;

  void report_plan() const;
  std::map<std::string, std::string> record(telemetry::TrainingLogOptions& options) const;
  std::unique_ptr<train::ClassifyObjective> make_objective(telemetry::TrainingLog* log) const;
  checkpoint::NamedFiles files_alongside() const { return {{"config.json", input.config_text}}; }
  nlohmann::json conclude(const train::LoopResult& result,
                          const train::ClassifyObjective& objective,
                          telemetry::TrainingLog* log) const;

 private:
  train::ClassifyOptions objective_options() const;
  void use_best(const checkpoint::Progress& progress) const;
  void export_model() const;
  void write_results(const train::LoopResult& result, const train::EpochHistory& history) const;
};

void Classify::report_plan() const {
  report_classify_plan(run.log, settings, input.data, input.model, order, run.dtype);
  run.log.info(fmt::format("memory of a rank: {}", memory.text()));
}

std::map<std::string, std::string> Classify::record(telemetry::TrainingLogOptions& options) const {
  options.tensorboard_folder = run.folder.logs_folder();
  options.model_config_json = input.config_text;
  options.best_name = settings.train.larger_is_better() ? "accuracy" : "loss";
  options.counts_tokens = false;
  return {{"train", input.data_hash}, {"val", input.validation_hash}};
}

std::unique_ptr<train::ClassifyObjective> Classify::make_objective(
    telemetry::TrainingLog* log) const {
  auto objective = std::make_unique<train::ClassifyObjective>(
      input.model, input.data.train, order, input.data.validation, objective_options(),
      [log](const train::EpochRecord& record) {
        if (log != nullptr) log->scalars(record.epoch, epoch_tags(record));
      });
  if (!checkpoint.folder.empty())
    objective->remember(
        train::EpochHistory::from_json(checkpoint.objective_memory, checkpoint.folder.string()));
  return objective;
}

train::ClassifyOptions Classify::objective_options() const {
  return {.label_smoothing = settings.classify.label_smoothing,
          .bf16 = run.dtype == "bf16",
          .eval_batch_size = settings.train.rows_of_evaluation_batch()};
}

// Loads the best checkpoint on every rank, because all ranks test the model.
void Classify::use_best(const checkpoint::Progress& progress) const {
  if (!takes_best(settings.train, progress)) return;
  std::optional<checkpoint::LoadedCheckpoint> best;
  if (group.rank() == 0) best = run.checkpoints.load_best();
  const std::string folder = folder_of_best(group, best);
  if (folder.empty()) return;
  if (best) restore_parameters(buffers, best->group(kBuffersGroup));
  for (const nn::NamedTensor& buffer : buffers) group.broadcast(buffer.value, 0);
  if (state.strategy->values_are_whole()) {
    if (best) restore_parameters(parameters, best->group(kModelGroup));
    for (const nn::NamedTensor& parameter : parameters)
      group.broadcast(parameter.value.detach(), 0);
  } else {
    restore_shards(state.strategy->shards(), {folder, kModelGroup});
    state.strategy->finish_step();
  }
  run.log.info(fmt::format("taking the best checkpoint: step {}, {} {:.4f}", progress.best_step,
                           settings.train.metric_for_best_model, *progress.best_metric));
}

void Classify::export_model() const {
  std::vector<std::unique_ptr<nn::UnitUse>> uses;  // gathers whole parameters on every rank
  for (size_t unit = 0; unit < input.model.units().size(); ++unit)
    uses.push_back(std::make_unique<nn::UnitUse>(input.model.residency(), unit));
  if (group.rank() != 0) return;
  models::save_signal_classifier(input.model, input.config_text, run.folder.model_folder());
  run.log.info(fmt::format("model written to {}", run.folder.model_folder().string()));
}

// Collective. Tests the best model, and writes it and the results.
void Classify::write_results(const train::LoopResult& result,
                             const train::EpochHistory& history) const {
  run.flight().set_phase("export");
  use_best(result.progress);
  ClassifyResults results{
      .history = history, .progress = result.progress, .steps_per_epoch = order.steps_per_epoch()};
  if (input.data.test.num_windows > 0)
    results.test = evaluate_windows(input.model, input.data.test, objective_options(), group);
  export_model();
  results.seconds = seconds_since(run.begin);
  if (group.rank() != 0) return;
  run.checkpoints.settle();
  write_classify_results(run.folder.path(), results, settings, input.data, run.log);
}

nlohmann::json Classify::conclude(const train::LoopResult& result,
                                  const train::ClassifyObjective& objective,
                                  telemetry::TrainingLog* log) const {
  run.trace.finish();
  if (log != nullptr) log->close_progress();
  report_early_stop(result);
  if (result.end != train::LoopEnd::Stopped && settings.train.export_model)
    write_results(result, objective.history());
  const int64_t global_batch = order.config().global_batch;
  return {{"run_name", settings.run_name},
          {"step", result.progress.step},
          {"global_batch_size", global_batch},
          {"lr_scaling", settings.train.lr_scaling},
          {"peak_learning_rate", scaled_learning_rate(settings.train, global_batch)}};
}

// Refuses settings that only language models use, instead of ignoring them.
void refuse_settings_of_language_models(const settings::TrainSettings& settings) {
  const std::vector<std::pair<const char*, bool>> asked = {
      {"model.name", !settings.model.name.empty()},
      {"data.train_path", !settings.data.train_path.empty()},
      {"data.val_path", !settings.data.val_path.empty()},
      {"train.packing", settings.train.packing},
      {"train.gradient_checkpointing", settings.train.gradient_checkpointing != "false"}};
  for (const auto& [key, is_asked] : asked)
    if (is_asked)
      throw ConfigError("this is a setting of language models, and the task is classify",
                        {.key = key, .hint = "leave it out; windows come from classify.data_dir"});
  if (settings.train.wished_dtype() == "fp32" && settings.model.dtype == "bf16")
    throw ConfigError("bf16 products are off (train.bf16, --no-amp), and model.dtype asks for them",
                      {.key = "model.dtype", .hint = "leave out one of the two"});
}

ExitCode start_classify(TrainingRun& run) {
  refuse_settings_of_language_models(run.settings);
  prepare_rank(run);
  ClassifyInput input = find_classify_input(run);
  const checkpoint::Stamp stamp = stamp_of(run, input);
  const sizing::MemoryPlan memory =
      classifier_memory(run.settings, input.model, run.planned, run.dtype == "bf16");
  const Agreed agreed =
      agree(run, input.checkpoint, stamp, [&] { return shared_inputs(run, input); });
  const std::unique_ptr<comm::Group> group = join(run, agreed);
  return or_give_up(run, {.settings = run.settings, .group = group.get()}, [&] {
    PreparedState prepared = prepare_state(run, input, *group);
    return train_joined(Classify{{.run = run,
                                  .settings = run.settings,
                                  .checkpoint = input.checkpoint,
                                  .agreed = agreed,
                                  .stamp = stamp,
                                  .order = input.order,
                                  .parameters = input.parameters,
                                  .parameter_group = kModelGroup,
                                  .buffers = input.model.buffers(),
                                  .group = *group,
                                  .state = prepared},
                                 input,
                                 memory});
  });
}

}  // namespace

ExitCode classify_rank(const FineTuneRequest& request, const settings::TrainSettings& settings,
                       const std::shared_ptr<comm::StoreBarrier>& store_barrier,
                       const std::atomic<bool>& stop_requested, const Log& log) {
  TrainingRun run(request, settings, store_barrier, stop_requested, log);
  return or_give_up(run, {.settings = run.settings}, [&] { return start_classify(run); });
}

}  // namespace convoy::recipes
