// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/language_start.h"

#include <algorithm>
#include <utility>

#include "convoy/apps/recipes/memory/memory_plan.h"
#include "convoy/apps/recipes/posttraining/teacher.h"
#include "convoy/apps/recipes/training/attention_choice.h"
#include "convoy/apps/recipes/training/generating_objective.h"
#include "convoy/apps/recipes/training/optimizer_settings.h"
#include "convoy/apps/recipes/training/step_flops.h"
#include "convoy/apps/recipes/training/train_stamp.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/io/model_fingerprint.h"
#include "convoy/core/settings/strategies.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/machine/device/memory.h"
#include "convoy/train/loop/train_loop.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::recipes {
namespace {

// True when ranks may share the parameters. Then no rank reads all values at the start.
bool may_share_values(const TrainingRun& run) {
  return parallel::shards_values(run.settings.parallel) ||
         (run.settings.parallel.strategy == "auto" && run.planned.world > 1);
}

void report_device(const TrainingRun& run) {
  const settings::TrainSettings& settings = run.settings;
  const bool on_cpu = run.rank_device.device.is_cpu();
  if (!on_cpu)
    run.log.info(
        fmt::format("computing on {}, a rank on each, in {}", run.device_kind(), run.dtype));
  if (settings.wished_dtype() == "bf16" && run.dtype != "bf16")
    run.log.warning(
        fmt::format("{} has no bf16: computing in {}", run.rank_device.device.str(), run.dtype));
  if (on_cpu && optimizer_states(settings.train).is_paged)
    run.log.info(
        fmt::format("train.optim {}: the model is in the host's memory already, so nothing "
                    "is paged",
                    settings.train.optim));
  if (on_cpu && settings.train.activation_offload != "none")
    run.log.info("train.activation_offload: block inputs are in the host's memory already");
}

data::EncodedSplits encode(const TrainingRun& run, const LoadedModel& base) {
  const settings::TrainSettings& settings = run.settings;
  return data::encode_splits({.data = settings.data,
                              .task = settings.task,
                              .max_seq_len = settings.model.max_seq_len,
                              .seed = static_cast<uint64_t>(settings.seed),
                              .tokenizer = base.tokenizer,
                              .chat_template = base.template_or_null(),
                              .log = run.log,
                              .datasets = settings::mixed_datasets(settings.datasets),
                              .warns = run.environment.rank == 0},
                             data::Splits::TrainAndVal);
}

// Collective. The first rank of a host encodes; the others then find its token cache.
data::EncodedSplits encode_in_turn(const TrainingRun& run, const LoadedModel& base) {
  if (run.environment.local_rank == 0) {
    data::EncodedSplits splits = encode(run, base);
    run.store_barrier->wait_for_all();
    return splits;
  }
  run.store_barrier->wait_for_all();
  return encode(run, base);
}

adapters::LoraModel make_adapter(const TrainingRun& run, LoadedModel& base) {
  nn::CausalLm& model = *base.model;
  const settings::LoraSettings& settings = run.settings.tuning.lora;
  if (!settings.adapter.empty()) require_adapter(settings.adapter, run.log);
  if (!settings.adapter.empty() && adapters::brings_embeddings(settings.adapter))
    throw ConfigError(
        "the adapter brings an embedding that it does not train, so what continues it would lose "
        "it",
        {.file = settings.adapter,
         .key = "tuning.lora.adapter",
         .hint = "merge it (convoy models merge), and train an adapter of the merged model"});
  // The weights are read on use, because an adapter may be initialised from them.
  std::optional<nn::ReadOnUse> reading;
  if (base.values) reading.emplace(model.units(), *base.values);
  if (reading) model.set_residency(&*reading);
  adapters::LoraModel lora =
      settings.adapter.empty()
          ? adapters::LoraModel::create(model, adapters::LoraConfig::from_settings(settings),
                                        static_cast<uint64_t>(run.settings.seed))
          : adapters::LoraModel::load(model, settings.adapter);
  model.set_residency(nullptr);
  if (!settings.adapter.empty())
    run.log.info(
        fmt::format("continuing from the adapter {}: its r {}, alpha {} and {} target modules "
                    "replace those of tuning.lora",
                    settings.adapter, lora.config().r, lora.config().alpha, lora.num_adapted()));
  return lora;
}

TrainedParameters choose_parameters(const TrainingRun& run, LoadedModel& base) {
  choose_attention(*base.model, run.settings.train.attention, "train.attention");
  if (run.settings.tuning.mode == "full") {
    base.model->set_requires_grad(true);
    return {base.model->parameters(), "model", step_flops_of(*base.model, nullptr)};
  }
  base.lora = make_adapter(run, base);
  return {base.lora->parameters(), "adapter_model", step_flops_of(*base.model, &*base.lora)};
}

// Nothing is measured when the state alone exceeds the limit by formula: the kernel would kill the
// rank.
void require_room_for_state(const TrainingRun& run, sizing::MemoryQuestion question,
                            const sizing::StateSharing& sharing) {
  if (!run.rank_device.device.is_cpu()) return;
  const int64_t left =
      device::usable_rank_memory_bytes(run.rank_device.device, run.environment.local_world);
  const int64_t allowed = left + device::process_memory().resident_bytes;
  question.micro_batch_tokens = 1;
  const int64_t wanted = plan_memory(question, sharing).total_bytes();
  if (left <= 0 || wanted - wanted / 20 <= allowed) return;
  throw ConfigError(
      fmt::format("train.batch_size: auto: a micro-batch of one row has no room: the state of the "
                  "training alone needs {}, and a rank may take {}",
                  telemetry::bytes_text(wanted), telemetry::bytes_text(allowed)),
      {.key = "train.batch_size",
       .hint = "share the state (parallel.strategy=zero3 with more ranks), or train an adapter"});
}

// Collective. `question`: with settings whose strategy is auto.
std::string choose_strategy_of(const TrainingRun& run, const sizing::MemoryQuestion& question) {
  const int64_t usable_bytes =
      device::usable_rank_memory_bytes(run.rank_device.device, run.environment.local_world) +
      question.program_bytes;
  const sizing::StrategyChoice choice = choose_strategy(
      question, sizing::sharings_of(settings::strategies_of_processes()), usable_bytes);
  const std::string strategy = run.store_barrier->word_of_rank_zero(choice.strategy);
  const std::string sentence = fmt::format("strategy: {}; {}", choice.strategy, choice.reason);
  if (!choice.fits)
    run.log.warning(sentence);
  else if (run.planned.world > 1)
    run.log.info(sentence);
  return strategy;
}

// Collective. Returns the value for train.gradient_checkpointing.
std::string choose_recompute_of(const TrainingRun& run, sizing::MemoryQuestion question,
                                const sizing::StateSharing& sharing) {
  const int64_t usable_bytes =
      device::usable_rank_memory_bytes(run.rank_device.device, run.environment.local_world) +
      question.program_bytes;
  const auto chosen = sizing::choose_recompute(question, sharing, usable_bytes);
  question.recompute = architecture::Recompute::Nothing;
  const std::string word = run.store_barrier->word_of_rank_zero(
      std::string(architecture::gradient_checkpointing_of(chosen)));
  run.log.info(fmt::format(
      "train.gradient_checkpointing: {}; without recomputation a rank needs {}, and it has {}",
      word, telemetry::bytes_text(plan_memory(question, sharing).total_bytes()),
      telemetry::bytes_text(usable_bytes)));
  return word;
}

// Collective. All inputs of the memory estimate exist by now, and weights that can be deferred are
// not read yet.
Sharing choose_sharing(const TrainingRun& run, LoadedModel& base,
                       const data::EncodedSplits& splits) {
  settings::TrainSettings settings = run.settings;
  settings::ParallelSettings& chosen = settings.parallel;
  const bool chooses = chosen.strategy == "auto";
  const auto facts = [&chosen] { return settings::strategy_named(chosen.strategy); };
  if (!chooses) chosen.strategy = facts().name;
  if (run.rank_device.device.is_cpu() && chosen.offload != "none" && !chooses &&
      facts().cuts_states) {
    run.log.info("parallel.offload: on CPUs the state is in the host's memory already");
    chosen.offload = "none";
  }
  sizing::MemoryQuestion question =
      memory_question(settings, *base.model, splits.train, splits.val, run.planned);
  if (chooses) chosen.strategy = choose_strategy_of(run, question);
  const sizing::StateSharing sharing = sizing::sharing_of(facts());
  if (settings.train.gradient_checkpointing == "auto") {
    settings.train.gradient_checkpointing = choose_recompute_of(run, question, sharing);
    question.recompute = architecture::recompute_of(settings.train.gradient_checkpointing);
  }
  sizing::MemoryPlan memory = plan_memory(question, sharing);
  run.log.info(fmt::format("memory of a rank: {}", memory.text()));
  if (run.wished.batch_size.is_auto()) require_room_for_state(run, question, sharing);
  if (base.values && !parallel::shards_values(chosen)) read_values(base);
  return {std::move(settings), std::move(memory)};
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

data::BatchPlan plan_of(const TrainingRun& run, const LanguageInput& input,
                        const settings::TrainSettings& settings) {
  return {
      input.splits.train,
      {.batch_size = settings.train.batch_rows(),
       .world_size = run.planned.world,
       .global_batch = global_batch(run, input.checkpoint, settings),
       .packing = settings.train.packing,
       .block_tokens = settings::rows_of_item(settings.task_facts()) * settings.model.max_seq_len,
       .shuffle = settings.data.shuffle,
       .balance_tokens = settings.data.balance_tokens,
       .seed = static_cast<uint64_t>(settings.seed),
       .rows_of_item = settings::rows_of_item(settings.task_facts()),
       .mix = {input.splits.mix, data::mix_stop_named(settings.mix.stop)}}};
}

// Throws ConfigError for steps of a single row when the task compares a row with the answers of
// other rows.
void require_others(const SettledBatch& batch) {
  const data::BatchPlanConfig& steps = batch.plan.config();
  if (!batch.settings.estimates_divergence() || steps.global_batch > 1 || steps.packing) return;
  throw ConfigError("a step has a single row, and task kto compares it with answers of others",
                    {.key = "train.batch_size", .hint = "train.batch_size=8"});
}

SettledBatch batch_with(const TrainingRun& run, const LanguageInput& input,
                        settings::TrainSettings settings, const sizing::MemoryPlan& memory,
                        std::optional<BatchChoice> choice = {}) {
  data::BatchPlan plan = plan_of(run, input, settings);
  checkpoint::Stamp stamp =
      train_stamp(settings, input.base, input.splits, run.dtype, run.device_kind(), plan.config());
  return {std::move(settings), std::move(plan), std::move(stamp), memory, std::move(choice)};
}

BatchItems items_of(const TrainingRun& run, const LanguageInput& input,
                    const data::BatchPlan& plan) {
  return {.count = plan.num_items(),
          .mean_tokens = static_cast<double>(input.splits.train.total_tokens()) /
                         static_cast<double>(std::max<int64_t>(plan.num_items(), 1)),
          .ranks = run.planned.world};
}

// Continues an adapter with the chat template of its own training.
settings::TrainSettings with_adapter_template(settings::TrainSettings settings, const Log& log) {
  const std::string& adapter = settings.tuning.lora.adapter;
  if (settings.tuning.mode == "full" || adapter.empty() || !settings.data.template_path.empty())
    return settings;
  const std::filesystem::path own = std::filesystem::path(adapter) / "chat_template.jinja";
  if (!std::filesystem::exists(own)) return settings;
  log.info(fmt::format("the chat template is the adapter's: {}; data.template_path names another",
                       own.string()));
  settings.data.template_path = own.string();
  return settings;
}

}  // namespace

settings::TrainSettings with_adapter_start(settings::TrainSettings settings, const Log& log) {
  const std::optional<AdapterStart> start = adapter_start(settings.model.name, log);
  if (!start) return with_adapter_template(std::move(settings), log);
  std::string& adapter = settings.tuning.lora.adapter;
  if (settings.tuning.mode == "full" || !adapter.empty())
    throw ConfigError(
        fmt::format("model.name {} is a PEFT adapter", settings.model.name),
        {.key = "model.name",
         .hint = settings.tuning.mode == "full"
                     ? "merge it into its base first: convoy models merge"
                     : "name its base, since tuning.lora.adapter names another adapter"});
  settings.model.name = start->base;
  adapter = start->adapter;
  return with_adapter_template(std::move(settings), log);
}

LoadedModel load_base(const TrainingRun& run) {
  run.flight().set_phase("load");
  report_device(run);
  const settings::TrainSettings& settings = run.settings;
  const settings::QuantizationSettings& held = settings.tuning.quantization;
  LoadedModel base = load_model(
      {.name = settings.model.name,
       .revision = settings.model.revision,
       .adapter = "",
       .dtype = run.dtype,
       .dtype_reason = run.dtype_reason,
       .dtype_flag = "model.dtype=",
       .template_path = settings.data.template_path,
       .eos_token = settings.data.eos_token,
       .device = run.rank_device.device,
       .deferred = may_share_values(run),
       .coding = weight_coding(held.format(settings.tuning.mode == "qlora"), held.double_quant,
                               held.block_size, held.skip_modules.names)},
      run.log);
  if (settings.model.max_seq_len > base.model->max_positions())
    throw ConfigError(fmt::format("model.max_seq_len is {}, but the model has {} positions",
                                  settings.model.max_seq_len, base.model->max_positions()),
                      {.key = "model.max_seq_len", .hint = "lower it"});
  return base;
}

// Collective. All ranks render rows with the same date; a resumed run keeps the date of its first
// start.
void share_clock(const TrainingRun& run, LoadedModel& base, const FoundCheckpoint& checkpoint) {
  if (!base.chat_template || !base.chat_template->clock().is_read()) return;
  text::TemplateClock& clock = base.chat_template->clock();
  const std::optional<int64_t> saved = checkpoint.saved_number(kTemplateClock);
  const std::string start =
      run.store_barrier->word_of_rank_zero(fmt::format("{}", saved.value_or(clock.seconds())));
  if (const auto seconds = text_as<int64_t>(start)) clock.stop_at(*seconds);
}

LanguageInput find_language_input(TrainingRun& run, LoadedModel& base, FoundCheckpoint checkpoint) {
  share_clock(run, base, checkpoint);
  run.flight().set_phase("data");
  RolloutProblems problems;
  data::EncodedSplits splits;
  if (run.settings.task_facts().data == settings::TaskData::Rollouts) {
    problems = read_rollout_problems(base, run.settings, run.log);
    if (run.settings.has_teacher_in_memory())
      require_teacher(run.settings, base,
                      problems.longest_prompt_tokens() + run.settings.rollout.max_new_tokens);
    splits = splits_of(problems, run.settings.data);
  } else {
    splits = encode_in_turn(run, base);
  }
  Questions questions;
  if (run.settings.train.generating_evaluation.predict_with_generate)
    questions = evaluation_questions(base, run.settings, splits.val, run.log);
  run.flight().set_phase("prepare");
  TrainedParameters trained = choose_parameters(run, base);
  Sharing sharing = choose_sharing(run, base, splits);
  return {base,
          std::move(splits),
          std::move(questions),
          std::move(problems),
          std::move(trained),
          std::move(sharing),
          std::move(checkpoint)};
}

std::vector<SharedInput> shared_inputs(const TrainingRun& run, const LanguageInput& input) {
  // The ranks of a host read the same files, so only one rank per host computes the checksum.
  const bool reads_for_host = run.environment.local_rank == 0 && !run.environment.one_host();
  const LoadedModel& base = input.base;
  const std::string model = base.folder.path().string();
  return {{"the weights", reads_for_host ? weights_checksum(base) : "", model},
          {"the model's files", io::model_fingerprint(base.folder), model},
          {"the tokens of its tokenizer", base.tokenizer.content_hash(), model},
          rows_of(input.splits, "train"),
          rows_of(input.splits, "val")};
}

bool must_measure(const TrainingRun& run, const LanguageInput& input) {
  return (run.wished.batch_size.is_auto() || run.wished.auto_find_batch_size) &&
         !input.checkpoint.saved_number("batch_size");
}

SettledBatch settled_batch(const TrainingRun& run, const LanguageInput& input) {
  const settings::TrainingSettings& wished = run.wished;
  settings::TrainSettings settings = input.sharing.settings;
  SettledBatch batch = batch_with(run, input, settings, input.sharing.memory);
  if (must_measure(run, input)) return batch;
  if (!wished.chooses_batch()) {
    require_others(batch);
    return batch;
  }
  if (const auto saved_rows = input.checkpoint.saved_number("batch_size")) {
    settle_batch(wished, *saved_rows, {}, settings.train);
    if (wished.grad_accum.is_auto())
      settings.train.grad_accum = input.checkpoint.saved_number("grad_accum").value_or(0);
    run.log.info(fmt::format("batch_size {}, from the checkpoint", *saved_rows));
  } else if (settle_batch(wished, wished.batch_rows(), items_of(run, input, batch.plan),
                          settings.train)) {
    report_small_steps(settings.train, run.log);
  }
  batch = batch_with(run, input, std::move(settings), input.sharing.memory);
  require_others(batch);
  return batch;
}

// Zero gradients and a zero rate change no value and no moment, so only the optimizer's step count
// is restored.
std::optional<SettledBatch> measured_batch(const TrainingRun& run, const LanguageInput& input,
                                           const SettledBatch& least, PreparedState& prepared,
                                           comm::Group& group) {
  run.flight().set_phase("batch");
  const settings::TrainingSettings& wished = run.wished;
  settings::TrainSettings settings = least.settings;
  const settings::StrategyFacts& strategy = settings::strategy_named(settings.parallel.strategy);
  const BatchItems items = items_of(run, input, least.plan);
  const auto settle = [&](int64_t rows) {
    return settle_batch(wished, rows, items, settings.train);
  };
  sizing::MemoryQuestion question = memory_question(settings, *input.base.model, input.splits.train,
                                                    input.splits.val, run.planned);
  question.program_bytes = least.memory.program_bytes;
  // A strategy that shards states but not gradients keeps whole gradients until the last
  // micro-batch.
  const bool may_accumulate =
      wished.grad_accum.is_auto() || wished.accumulation() > 1 || wished.global_batch_size > 0;
  BatchProbe probe(
      {.model = *input.base.model,
       .strategy = *prepared.strategy,
       .optimizer = prepared.optimizer,
       .recompute = nn::recompute_of(settings.train.gradient_checkpointing),
       .accumulates = may_accumulate && strategy.cuts_states && !strategy.cuts_gradients,
       .stop_requested = run.stop_requested});
  const BatchSearch search{
      .probe = probe,
      .group = group,
      .device = run.rank_device.device,
      .plan_of =
          [&](int64_t rows) {
            settle(rows);
            return plan_of(run, input, settings);
          },
      .steps_of =
          [&](const data::BatchPlan& plan) {
            return train::total_steps(settings.train, plan.steps_per_epoch());
          },
      .most_rows = most_batch_rows(wished, items),
      .ends_without_gain = run.rank_device.device.is_cpu() && wished.batch_size.is_auto(),
      .processes_on_host = run.environment.local_world / run.environment.replicas,
      .formula = question,
      .sharing = sizing::sharing_of(strategy)};
  std::optional<BatchChoice> choice = choose_batch_rows(search, run.log);
  if (!choice) {
    run.log.info("stopped while the batch size was measured, of which nothing is kept");
    return std::nullopt;
  }
  run.log.info(choice->text());
  // When the epoch was the limit, the line about the choice already says this.
  if (settle(choice->batch_rows) && choice->bound != "the epoch")
    report_small_steps(settings.train, run.log);
  SettledBatch batch = batch_with(run, input, settings, least.memory, std::move(choice));
  require_others(batch);
  question.micro_batch_tokens =
      batch.plan.largest_micro_batch(0, search.steps_of(batch.plan)).tokens;
  question.least_batch_tokens =
      least_batch_tokens(batch.settings, input.splits.train, input.splits.val);
  batch.memory = plan_memory(question, sizing::sharing_of(strategy));
  prepared.optimizer.load_state(0, prepared.optimizer.state());
  return batch;
}

}  // namespace convoy::recipes
