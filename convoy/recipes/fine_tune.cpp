// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>

#include "convoy/base/files.h"
#include "convoy/checkpoint/checkpoint.h"
#include "convoy/comm/environment.h"
#include "convoy/comm/exchange.h"
#include "convoy/comm/group.h"
#include "convoy/comm/meeting.h"
#include "convoy/data/batch_plan.h"
#include "convoy/data/encode_splits.h"
#include "convoy/device/determinism.h"
#include "convoy/device/dtype.h"
#include "convoy/device/memory.h"
#include "convoy/device/placement.h"
#include "convoy/device/tensor_memory.h"
#include "convoy/device/threads.h"
#include "convoy/io/model_fingerprint.h"
#include "convoy/models/export.h"
#include "convoy/parallel/strategy.h"
#include "convoy/parallel/trained_parameters.h"
#include "convoy/recipes/auto_batch.h"
#include "convoy/recipes/export_result.h"
#include "convoy/recipes/fine_tune_rank.h"
#include "convoy/recipes/generating_task.h"
#include "convoy/recipes/loaded_model.h"
#include "convoy/recipes/memory_plan.h"
#include "convoy/recipes/memory_report.h"
#include "convoy/recipes/optimizer_settings.h"
#include "convoy/recipes/run_fault.h"
#include "convoy/recipes/run_report.h"
#include "convoy/recipes/run_start.h"
#include "convoy/recipes/step_flops.h"
#include "convoy/recipes/traced_steps.h"
#include "convoy/recipes/train_stamp.h"
#include "convoy/telemetry/flight_record_writer.h"
#include "convoy/telemetry/progress.h"
#include "convoy/telemetry/run_folder.h"
#include "convoy/telemetry/training_log.h"
#include "convoy/train/language_task.h"
#include "convoy/train/train_loop.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;

data::BatchPlanConfig plan_config(const settings::TrainSettings& settings, int64_t world_size,
                                  int64_t global_batch, const std::vector<data::MixPart>& mix) {
  return {.batch_size = settings.train.batch_rows(),
          .world_size = world_size,
          .global_batch = global_batch,
          .packing = settings.train.packing,
          .block_tokens = settings.model.max_seq_len,
          .shuffle = settings.data.shuffle,
          .balance_tokens = settings.data.balance_tokens,
          .seed = static_cast<uint64_t>(settings.seed),
          .mix = {mix, data::mix_stop_named(settings.mix.stop)}};
}

SharedInput rows_of(const data::EncodedSplits& splits, const std::string& split) {
  SharedInput rows{fmt::format("the {} rows", split), "none", fmt::format("data.{}_path", split)};
  for (const data::SplitReport& report : splits.reports)
    if (report.name == split) rows = {rows.what, report.content_hash, report.files.at(0)};
  for (const data::SplitReport& report : splits.reports)
    if (report.name.starts_with(split + " of "))
      rows = {rows.what, (rows.identity == "none" ? "" : rows.identity) + report.content_hash,
              "datasets"};
  return rows;
}

// A model that is an adapter's folder is its base, and the adapter that training goes on with.
settings::TrainSettings with_adapter_start(settings::TrainSettings settings, const Log& log) {
  const std::optional<AdapterStart> start = adapter_start(settings.model.name, log);
  if (!start) return settings;
  std::string& adapter = settings.tuning.lora.adapter;
  if (settings.tuning.mode == "full" || !adapter.empty())
    throw ConfigError(
        fmt::format("model.name {} is a PEFT adapter", settings.model.name),
        {.key = "model.name",
         .hint = settings.tuning.mode == "full"
                     ? "merge it into its base first: convoy merge"
                     : "name its base, since tuning.lora.adapter names another adapter"});
  settings.model.name = start->base;
  adapter = start->adapter;
  return settings;
}

// One rank's run, in the order in which things come to be.
class FineTune {
 public:
  FineTune(const FineTuneRequest& request, const settings::TrainSettings& settings,
           std::shared_ptr<comm::Meeting> meeting, const std::atomic<bool>& stop_requested,
           const Log& log)
      : request_(request),
        settings_(with_adapter_start(settings, meeting->rank() == 0 ? log : Log(LogLevel::Quiet))),
        wished_(settings_.train),
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
               {.folder = folder_, .rank = environment_, .device = placement_.device}, log_) {
    if (wished_.chooses_batch()) settle_batch(wished_, 1, {}, settings_.train);
  }

  ExitCode run();

 private:
  ExitCode go();
  void load_base();
  void encode_data();
  std::unique_ptr<train::Task> make_task() const;
  double measured_peak();
  void tell_speed() const;
  void choose_parameters();
  bool may_share_values() const;
  // Once it is chosen.
  const settings::StrategyFacts& strategy_facts() const {
    return settings::strategy_named(settings_.parallel.strategy);
  }
  void choose_sharing();
  void require_room_for_state(sizing::MemoryQuestion question) const;
  nlohmann::json memory_figures(bool has_trained);
  data::BatchPlan plan_now() const;
  void plan_steps();
  BatchUnits batch_units() const;
  bool settle_without_measuring();
  void measure_batch();
  void compare_start();
  void prepare_state();
  void prepare_steps();
  void restore_values();
  void open_log(double peak_flops);
  checkpoint::NamedFiles files_alongside() const;
  void use_best(const checkpoint::Progress& progress);
  std::string kind_of_device() const {
    return at::DeviceTypeName(placement_.device.type(), /*lower_case=*/true);
  }
  ExitCode finish(const train::LoopResult& result);
  void give_up(const Error& error);

  const FineTuneRequest& request_;
  settings::TrainSettings settings_;  // with what `auto` has become; until then the least
  const settings::TrainingSettings wished_;
  const std::atomic<bool>& stop_requested_;
  std::shared_ptr<comm::Meeting> meeting_;
  telemetry::FlightWriter& flight_;
  const comm::RankEnvironment& environment_;
  const comm::RankEnvironment planned_;  // of the job that batch, steps and memory are told of
  const device::Placement placement_;
  const std::string dtype_;  // compute type of the weights
  Log log_;
  telemetry::RunFolder folder_;
  checkpoint::CheckpointStore checkpoints_;
  RunStart start_;
  TracedSteps trace_;  // outlives the group
  std::optional<LoadedModel> base_;
  data::EncodedSplits splits_;
  Questions questions_;  // of evaluations with answers
  std::vector<nn::NamedTensor> parameters_;
  std::string parameter_group_;
  train::StepFlops step_flops_;
  std::unique_ptr<comm::Group> group_;
  std::unique_ptr<parallel::Strategy> strategy_;
  sizing::MemoryPlan memory_plan_;
  std::optional<BatchChoice> batch_choice_;
  std::optional<data::BatchPlan> plan_;
  std::optional<optim::AdamW> optimizer_;
  std::optional<optim::LearningRateSchedule> schedule_;
  checkpoint::Stamp stamp_;
  std::vector<std::string> hosts_;  // one per node
  std::optional<telemetry::TrainingLog> training_log_;
};

void FineTune::load_base() {
  if (!placement_.device.is_cpu())
    log_.info(fmt::format("computing on {}, a rank on each, in {}", kind_of_device(), dtype_));
  if (settings_.model.dtype == "auto" && settings_.train.computes_in_bf16() && dtype_ != "bf16")
    log_.warning(fmt::format("{} has no bf16: computing in {}", placement_.device.str(), dtype_));
  if (placement_.device.is_cpu() && optimizer_states(settings_.train).is_paged)
    log_.info(
        fmt::format("train.optim {}: the model is in the host's memory already, so nothing "
                    "is paged",
                    settings_.train.optim));
  if (placement_.device.is_cpu() && settings_.train.activation_offload != "none")
    log_.info("train.activation_offload: block inputs are in the host's memory already");
  const settings::QuantizationSettings& held = settings_.tuning.quantization;
  base_.emplace(load_model(
      {.name = settings_.model.name,
       .revision = settings_.model.revision,
       .adapter = "",
       .dtype = dtype_,
       .template_path = settings_.data.template_path,
       .device = placement_.device,
       .deferred = may_share_values(),
       .coding = weight_coding(held.format(settings_.tuning.mode == "qlora"), held.double_quant,
                               held.block_size, held.skip_modules.names)},
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
                                  .log = log_,
                                  .datasets = settings::mixed_datasets(settings_.datasets),
                                  .warns = environment_.rank == 0};
  splits_ = data::encode_splits(inputs, data::Splits::TrainAndVal);
}

std::unique_ptr<train::Task> FineTune::make_task() const {
  std::unique_ptr<train::LanguageTask> task;
  if (settings_.train.generating_evaluation.predict_with_generate)
    task = std::make_unique<GeneratingTask>(
        *base_, *plan_, splits_.val, questions_, settings_,
        GeneratingOptions{.samples_folder = folder_.samples_folder(),
                          .engines_on_host = environment_.local_world},
        log_);
  else
    task = std::make_unique<train::LanguageTask>(*base_->model, *plan_, splits_.val,
                                                 settings_.train.rows_of_evaluation_batch());
  task->count_flops(step_flops_);
  return task;
}

// Collective. 0 where nobody has measured one of the hosts.
double FineTune::measured_peak() {
  const std::vector<double> peaks = comm::exchange(
      *group_, known_peak_of_rank(kind_of_device(), dtype_, environment_.local_world));
  const bool all_known =
      std::all_of(peaks.begin(), peaks.end(), [](double peak) { return peak > 0; });
  return all_known ? std::accumulate(peaks.begin(), peaks.end(), 0.0) : 0;
}

void FineTune::tell_speed() const {
  const nlohmann::json figures = training_log_->final_figures();
  if (!figures.contains("train_mfu")) return;  // convoy bench peak has not measured this machine
  const double per_second = figures["train_flops_per_second"];
  log_.info(
      fmt::format("speed: {:.1f} GFLOP/s of the model, {}", per_second / 1e9,
                  peak_share_text(figures["train_mfu"], figures["peak_flops_per_second"], dtype_)));
}

void FineTune::choose_parameters() {
  nn::CausalLm& model = *base_->model;
  if (settings_.tuning.mode == "full") {
    model.set_requires_grad(true);
    parameters_ = model.parameters();
    parameter_group_ = "model";
    return;
  }
  // An adapter may start from what the weights are.
  std::optional<nn::ReadOnUse> reading;
  if (base_->values) reading.emplace(model.units(), *base_->values);
  if (reading) model.set_residency(&*reading);
  const settings::LoraSettings& lora = settings_.tuning.lora;
  base_->lora = lora.adapter.empty()
                    ? adapters::LoraModel::create(model, adapters::LoraConfig::from_settings(lora),
                                                  static_cast<uint64_t>(settings_.seed))
                    : adapters::LoraModel::load(model, lora.adapter);
  model.set_residency(nullptr);
  if (!lora.adapter.empty())
    log_.info(fmt::format(
        "going on from the adapter {}: its r {}, alpha {} and {} target modules; tuning.lora's own "
        "do not count",
        lora.adapter, base_->lora->config().r, base_->lora->config().alpha,
        base_->lora->num_adapted()));
  parameters_ = base_->lora->parameters();
  parameter_group_ = "adapter_model";
}

// Where ranks may come to share the parameters, none of them reads all at first.
bool FineTune::may_share_values() const {
  return parallel::shards_values(settings_.parallel) ||
         (settings_.parallel.strategy == "auto" && planned_.world > 1);
}

// By now all that decides over memory is known, and weights that can wait are not read yet.
void FineTune::choose_sharing() {
  const bool chooses = settings_.parallel.strategy == "auto";
  if (!chooses) settings_.parallel.strategy = strategy_facts().name;
  if (placement_.device.is_cpu() && settings_.parallel.offload != "none" && !chooses &&
      strategy_facts().cuts_states) {
    log_.info("parallel.offload: on CPUs the state is in the host's memory already");
    settings_.parallel.offload = "none";
  }
  const sizing::MemoryQuestion question =
      memory_question(settings_, *base_->model, splits_.train, planned_);
  if (chooses) {
    const int64_t usable_bytes =
        device::usable_rank_memory_bytes(placement_.device, environment_.local_world) +
        question.program_bytes;
    std::vector<sizing::StateSharing> candidates;
    for (const settings::StrategyFacts& strategy : settings::strategies_of_processes())
      candidates.push_back(sizing::sharing_of(strategy));
    const sizing::StrategyChoice choice = choose_strategy(question, candidates, usable_bytes);
    settings_.parallel.strategy = meeting_->word_of_rank_zero(choice.strategy);
    const std::string sentence = fmt::format("strategy: {}; {}", choice.strategy, choice.reason);
    if (!choice.fits)
      log_.warning(sentence);
    else if (planned_.world > 1)
      log_.info(sentence);
  }
  memory_plan_ = plan_memory(question, sizing::sharing_of(strategy_facts()));
  log_.info(fmt::format("memory of a rank: {}", memory_plan_.text()));
  if (wished_.batch_size.is_auto()) require_room_for_state(question);
  if (base_->values && !parallel::shards_values(settings_.parallel)) read_values(*base_);
}

// Nothing is measured where the state alone, by formula, is past the limit: the kernel would end the rank.
void FineTune::require_room_for_state(sizing::MemoryQuestion question) const {
  if (!placement_.device.is_cpu()) return;
  const int64_t left =
      device::usable_rank_memory_bytes(placement_.device, environment_.local_world);
  const int64_t allowed = left + device::process_memory().resident_bytes;
  question.micro_batch_tokens = 1;
  const int64_t wanted = plan_memory(question, sizing::sharing_of(strategy_facts())).total_bytes();
  if (left <= 0 || wanted - wanted / 20 <= allowed) return;
  throw ConfigError(
      fmt::format("train.batch_size: auto: a micro-batch of one row has no room: the state of the "
                  "training alone wants {}, and a rank may take {}",
                  telemetry::bytes_text(wanted), telemetry::bytes_text(allowed)),
      {.key = "train.batch_size",
       .hint = "share the state (parallel.strategy=zero3 with more ranks), or train an adapter"});
}

data::BatchPlan FineTune::plan_now() const {
  return {splits_.train,
          plan_config(settings_, planned_.world, start_.global_batch(), splits_.mix)};
}

BatchUnits FineTune::batch_units() const {
  return {.count = plan_->num_units(),
          .mean_tokens = static_cast<double>(splits_.train.total_tokens()) /
                         static_cast<double>(std::max<int64_t>(plan_->num_units(), 1)),
          .ranks = planned_.world};
}

// True: the numbers of the batch stand. What a checkpoint was trained with is not chosen anew.
bool FineTune::settle_without_measuring() {
  if (!wished_.chooses_batch()) return true;
  const std::optional<int64_t> saved_rows = start_.saved_number("batch_size");
  if (saved_rows) {
    settle_batch(wished_, *saved_rows, {}, settings_.train);
    if (wished_.grad_accum.is_auto())
      settings_.train.grad_accum = start_.saved_number("grad_accum").value_or(0);
    log_.info(fmt::format("batch_size {}, as the checkpoint has it", *saved_rows));
  } else if (wished_.batch_size.is_auto() || wished_.auto_find_batch_size) {
    return false;
  } else {
    if (settle_batch(wished_, wished_.batch_rows(), batch_units(), settings_.train))
      report_small_steps(settings_.train, log_);
  }
  plan_steps();
  return true;
}

// Collective. Afterwards the run is what it is with these numbers written: gradients of zero at a rate of
// zero changed no value and no moment, so only the optimizer's count of steps is taken back.
void FineTune::measure_batch() {
  flight_.set_phase("batch");
  const BatchUnits units = batch_units();
  const auto settle = [&](int64_t rows) {
    return settle_batch(wished_, rows, units, settings_.train);
  };
  sizing::MemoryQuestion question =
      memory_question(settings_, *base_->model, splits_.train, planned_);
  question.program_bytes = memory_plan_.program_bytes;
  // Where states are cut and gradients are not, whole gradients wait for the last micro-batch.
  const bool may_accumulate =
      wished_.grad_accum.is_auto() || wished_.accumulation() > 1 || wished_.global_batch_size > 0;
  BatchProbe probe({.model = *base_->model,
                    .strategy = *strategy_,
                    .optimizer = *optimizer_,
                    .recompute_blocks = settings_.train.gradient_checkpointing,
                    .accumulates = may_accumulate && strategy_facts().cuts_states &&
                                   !strategy_facts().cuts_gradients});
  const BatchSearch search{.probe = probe,
                           .group = *group_,
                           .device = placement_.device,
                           .plan_of =
                               [&](int64_t rows) {
                                 settle(rows);
                                 return plan_now();
                               },
                           .steps_of =
                               [&](const data::BatchPlan& plan) {
                                 return train::total_steps(settings_.train, plan.steps_per_epoch());
                               },
                           .most_rows = most_batch_rows(wished_, units),
                           .processes_on_host = environment_.local_world / environment_.replicas,
                           .formula = question,
                           .sharing = sizing::sharing_of(strategy_facts()),
                           .stop_requested = stop_requested_};
  batch_choice_ = choose_batch_rows(search, log_);
  log_.info(batch_choice_->text());
  // Where the rows have said it already, it is not said twice.
  if (settle(batch_choice_->batch_rows) && batch_choice_->bound != "the epoch")
    report_small_steps(settings_.train, log_);
  plan_steps();
  question.micro_batch_tokens = plan_->largest_micro_batch(0, search.steps_of(*plan_)).tokens;
  memory_plan_ = plan_memory(question, sizing::sharing_of(strategy_facts()));
  optimizer_->load_state(0, optimizer_->state());
}

void FineTune::plan_steps() {
  plan_.emplace(plan_now());
  stamp_ = train_stamp(settings_, *base_, splits_, dtype_, kind_of_device(), plan_->config());
}

void FineTune::compare_start() {
  StartingPoint start;
  start.stamp = stamp_;
  // The ranks of a host read the same files.
  const bool speaks = environment_.local_rank == 0 && !environment_.one_host();
  const std::string model = base_->folder.path().string();
  start.inputs = {{"the weights", speaks ? weights_checksum(*base_) : "", model},
                  {"the model's files", io::model_fingerprint(base_->folder), model},
                  {"the tokens of its tokenizer", base_->tokenizer.content_hash(), model}};
  start.inputs.push_back(rows_of(splits_, "train"));
  start.inputs.push_back(rows_of(splits_, "val"));
  hosts_ = start_.agree(std::move(start), folder_.checkpoints_folder());
}

void FineTune::prepare_state() {
  restore_values();
  strategy_ = parallel::make_strategy(settings_.parallel, *group_, environment_.local_world);
  std::vector<optim::OptimizedParameter> optimized =
      parallel::prepare_parameters(*strategy_, *base_->model, parameters_, base_->values.get());
  if (base_->lora) {
    std::vector<int64_t> dims;
    for (const parallel::ParameterShard& shard : strategy_->shards())
      dims.push_back(static_cast<int64_t>(shard.shape.size()));
    set_loraplus_rates(optimized, dims, settings_.tuning.lora.loraplus_lr_ratio);
  }
  optimizer_.emplace(adamw_config(settings_.train, settings_.seed), std::move(optimized));
  base_->values.reset();
}

void FineTune::prepare_steps() {
  schedule_ = schedule_of(settings_.train, plan_->config().global_batch, plan_->steps_per_epoch());
  start_.restore_optimizer(*optimizer_, *strategy_);
}

// What lies in memory rank 0 reads for all; what does not yet every rank reads for itself.
void FineTune::restore_values() {
  if (start_.folder().empty()) return;
  std::vector<nn::NamedTensor> in_memory = parameters_;
  if (base_->values) {
    defer_to_saved(
        *base_->values, parameters_,
        std::make_shared<const checkpoint::GroupReader>(start_.folder(), parameter_group_));
    std::erase_if(in_memory, [this](const nn::NamedTensor& parameter) {
      return base_->values->contains(parameter.value);
    });
  }
  if (const checkpoint::LoadedCheckpoint* const resumed = start_.resumed())
    restore_parameters(in_memory, resumed->group(parameter_group_));
}

void FineTune::open_log(double peak_flops) {
  if (group_->rank() != 0) return;
  telemetry::TrainingLogOptions options = training_log_options(
      settings_, folder_.tensorboard_folder(), plan_->steps_per_epoch(), start_.progress(), log_);
  options.run_folder = folder_.path();
  options.world_size = group_->size();
  options.resume_state = start_.trainer_state();
  options.config_yaml = read_file(request_.settings.file);
  options.model_config_json = read_file(base_->folder.require("config.json"));
  options.best_name = settings_.train.best_metric_name();
  options.greater_is_better = settings_.train.larger_is_better();
  options.told_figures = {"perplexity"};
  if (settings_.train.generating_evaluation.predict_with_generate)
    for (const std::string& name :
         settings_.train.generating_evaluation.measured_metrics(options.best_name))
      options.told_figures.push_back(name);
  options.progress.color = request_.color;
  options.peak_flops = peak_flops;
  training_log_.emplace(std::move(options), log_);
}

// A checkpoint folder of a LoRA run is a PEFT adapter, one of a full run a Hugging Face model: the group's own file lies
// beside what is added here.
checkpoint::NamedFiles FineTune::files_alongside() const {
  if (group_->rank() != 0) return {};
  if (base_->lora) return {{"adapter_config.json", base_->lora->config_text(settings_.model.name)}};
  if (!strategy_->values_are_whole()) return {};  // pieces make no model folder
  return models::model_files(base_->folder, device::parse_dtype(dtype_));
}

void FineTune::use_best(const checkpoint::Progress& progress) {
  if (!settings_.train.load_best_model_at_end || settings_.train.save_strategy == "no") return;
  if (!progress.best_metric || progress.best_step == progress.step) return;
  std::optional<checkpoint::LoadedCheckpoint> best;
  if (group_->rank() == 0) best = checkpoints_.load_best();
  if (strategy_->values_are_whole()) {
    if (!best) return;
    restore_parameters(parameters_, best->group(parameter_group_));
  } else {
    group_->wait_for_all();  // while rank 0 verified it
    const std::string folder =
        group_->all_gather_bytes(best ? fs::absolute(best->folder).string() : "").front();
    if (folder.empty()) return;
    restore_shards(strategy_->shards(), {folder, parameter_group_});
    strategy_->finish_step();
  }
  base_->model->head().weight_changed();
  for (nn::Linear* linear : base_->model->block_linears()) linear->weight_changed();
  log_.info(fmt::format("taking the best checkpoint: step {}, eval {} {:.4f}", progress.best_step,
                        settings_.train.best_metric_name(), *progress.best_metric));
}

// Collective. What was planned beside what it came to; of a run that had nothing left, nothing: the
// figures of the one before it stand.
nlohmann::json FineTune::memory_figures(bool has_trained) {
  const std::vector<int64_t> peaks =
      comm::exchange(*group_, device::rank_memory(placement_.device).peak_bytes);
  if (!has_trained) return nlohmann::json::object();
  log_.info(fmt::format(
      "memory of a rank: {} at the peak, {} planned{}",
      telemetry::bytes_text(*std::max_element(peaks.begin(), peaks.end())),
      telemetry::bytes_text(memory_plan_.total_bytes()),
      batch_choice_
          ? fmt::format(", {} predicted", telemetry::bytes_text(batch_choice_->predicted_bytes))
          : ""));
  nlohmann::json figures = {{"planned_memory_bytes", memory_plan_.total_bytes()},
                            {"rank_peak_memory_bytes", peaks}};
  if (batch_choice_) figures["auto_batch"] = batch_choice_->to_json();
  return figures;
}

ExitCode FineTune::finish(const train::LoopResult& result) {
  if (training_log_) training_log_->close_progress();
  nlohmann::json memory = memory_figures(result.progress.step > start_.progress().step);
  trace_.finish();
  const bool stopped = result.end == train::LoopEnd::Stopped;
  report_early_stop(log_, settings_.train, result);
  const bool exports = settings_.train.export_model && !stopped;
  if (exports && (group_->rank() == 0 || !strategy_->values_are_whole())) {
    flight_.set_phase("export");
    use_best(result.progress);
    export_result({.loaded = *base_,
                   .name = settings_.model.name,
                   .folder = folder_,
                   .dtype = device::parse_dtype(dtype_),
                   .writes = group_->rank() == 0},
                  log_);
  }
  if (group_->rank() == 0) {
    if (!stopped) checkpoints_.settle();
    if (result.progress.step > start_.progress().step) tell_speed();
    training_log_->end(run_end(result.end));
    nlohmann::json figures =
        final_metrics(training_log_->final_figures(), settings_, *plan_, result.progress);
    figures["status"] = telemetry::end_word(run_end(result.end));
    figures.update(memory);
    folder_.write_metrics(figures);
  }
  group_->wait_for_all();
  return stopped ? ExitCode::Stopped : ExitCode::Done;
}

ExitCode FineTune::run() {
  try {
    return go();
  } catch (const Error& error) {
    give_up(error);
    throw;
  } catch (const c10::OutOfMemoryError&) {
    const IoError error = full_device(
        placement_.device.str(),
        held_memory(base_ ? base_->model.get() : nullptr, optimizer_ ? &*optimizer_ : nullptr),
        device::rank_memory(placement_.device).peak_bytes, settings_);
    give_up(error);
    throw error;
  } catch (const std::exception& foreign) {
    const Error error = fault_of(foreign, "lower train.batch_size or model.max_seq_len");
    give_up(error);
    throw error;
  }
}

ExitCode FineTune::go() {
  if (settings_.train.deterministic && !placement_.device.is_cpu())
    device::take_deterministic_algorithms();
  device::keep_tensor_memory();
  device::share_cpu_threads(environment_.local_world, environment_.replicas);
  flight_.set_phase("load");
  load_base();
  flight_.set_phase("data");
  // The first rank of a host encodes, the others then find its token cache.
  if (environment_.local_rank == 0) encode_data();
  meeting_->wait_for_all();
  if (environment_.local_rank != 0) encode_data();
  if (settings_.train.generating_evaluation.predict_with_generate)
    questions_ = evaluation_questions(*base_, settings_, splits_.val, log_);
  flight_.set_phase("prepare");
  choose_parameters();
  step_flops_ = step_flops_of(*base_->model, base_->lora ? &*base_->lora : nullptr);
  choose_sharing();
  start_.find();
  plan_steps();
  const bool settled = settle_without_measuring();
  start_.check(stamp_);
  compare_start();
  // From here on every wait has a limit but those for files: all that a rank reads at start it has read.
  group_ = comm::join_group_at(meeting_, std::chrono::seconds(settings_.parallel.timeout_s),
                               placement_.device);
  prepare_state();
  if (!settled) measure_batch();
  prepare_steps();
  report_plan(log_, settings_, *base_, splits_, *plan_, parameters_, dtype_);
  if (request_.plan_only) return ExitCode::Done;
  const int64_t total_steps = train::total_steps(settings_.train, plan_->steps_per_epoch());
  if (start_.progress().step >= total_steps)
    log_.info(
        fmt::format("nothing left to train: step {} of {}", start_.progress().step, total_steps));
  if (group_->rank() == 0)
    folder_.write_identity(run_identity(settings_, read_file(request_.settings.file),
                                        data_hashes(splits_), stamp_, hosts_, group_->size(),
                                        kind_of_device(), start_.progress()));
  open_log(measured_peak());
  const std::unique_ptr<train::Task> task = make_task();
  const train::LoopParts parts{.task = *task,
                               .parameters = parameters_,
                               .parameter_group = parameter_group_,
                               .strategy = *strategy_,
                               .optimizer = *optimizer_,
                               .schedule = *schedule_,
                               .stamp = stamp_,
                               .checkpoints = checkpoints_,
                               .log = training_log_ ? &*training_log_ : nullptr,
                               .flight = flight_,
                               .files_alongside = files_alongside(),
                               .stop_requested = stop_requested_};
  return finish(train::run_training_loop(parts, settings_, start_.progress()));
}

// The others are not made to wait for this rank.
void FineTune::give_up(const Error& error) {
  if (training_log_) training_log_->failure(error);
  if (group_) group_->abort();
}

}  // namespace

ExitCode fine_tune_rank(const FineTuneRequest& request, const settings::TrainSettings& settings,
                        const std::shared_ptr<comm::Meeting>& meeting,
                        const std::atomic<bool>& stop_requested, const Log& log) {
  return FineTune(request, settings, meeting, stop_requested, log).run();
}

}  // namespace convoy::recipes
