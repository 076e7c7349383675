// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/config/starter_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/cpu_level_limit.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/usable_cpus.h"
#include "convoy/core/base/usable_memory.h"
#include "convoy/core/config/resolve.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/core/settings/strategies.h"
#include "convoy/core/settings/tasks.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/schemas/schema.h"
#include "convoy/data/datasets/schemas/unpaired_sample.h"
#include "convoy/data/datasets/sources/dataset.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"
#include "convoy/machine/monitor/gpus/devices.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/sizing/compute_dtype.h"

namespace convoy::apps {
namespace {

constexpr int64_t kRowsLookedAt = 20'000;
constexpr int64_t kRowsWithoutModel = 200;  // read only to detect their schema
constexpr int64_t kUsualRowTokens = 512;
constexpr int64_t kRowTokensStep = 64;
constexpr int64_t kMostRowTokens = 8192;
constexpr int kFirstGpuWithBf16 = 8;  // major compute capability

sizing::Machine this_machine() {
  const monitor::GpuList here =
      monitor::list_gpus(monitor::device_sources(config::process_environment()));
  if (here.gpus.empty())
    return {.name = "cpu",
            .words = fmt::format("{} of this host", counted(usable_cpus(), "CPU")),
            .hardware = sizing::Hardware::Cpu,
            .device_bytes = usable_memory_bytes(),
            .cpu_level = std::string(kCpuLevels[static_cast<size_t>(best_cpu_level())])};
  int64_t least = here.gpus.front().device.memory_bytes;
  for (const monitor::Gpu& gpu : here.gpus) least = std::min(least, gpu.device.memory_bytes);
  const bool has_bf16 =
      std::all_of(here.gpus.begin(), here.gpus.end(), [](const monitor::Gpu& gpu) {
        return gpu.device.compute_major == 0 || gpu.device.compute_major >= kFirstGpuWithBf16;
      });
  return {.name = "gpu",
          .words = fmt::format("{}x {}", here.gpus.size(), here.gpus.front().device.name),
          .devices = static_cast<int>(here.gpus.size()),
          .device_bytes = least,
          .has_bf16 = has_bf16};
}

// Shows rows as the model reads them. Needs the model's folder on this host.
class RowsOfModel {
 public:
  explicit RowsOfModel(const io::ModelFolder& folder)
      : tokenizer_(text::Tokenizer::load(folder.path())),
        chat_template_(text::ChatTemplate::load(folder.path(), "")),
        encoder_(tokenizer_, chat_template_ ? &*chat_template_ : nullptr, data::Supervision()) {}

  // Number of tokens of the row; for a pair, of its longer side.
  int64_t tokens(data::Sample sample) const {
    if (!sample.is_pair) return static_cast<int64_t>(encoder_.encode(sample).ids.size());
    sample.is_pair = false;
    const int64_t chosen = tokens(sample);
    sample.completion = std::move(sample.rejected);
    sample.completion_messages = std::move(sample.rejected_messages);
    return std::max(chosen, tokens(std::move(sample)));
  }

 private:
  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> chat_template_;
  data::SampleEncoder encoder_;
};

// Returns the task that learns from rows such as `row`, the first row of the data set.
std::string task_of(const data::Row& row) {
  if (row.value.is_object() && row.value.contains("chosen") && row.value.contains("rejected"))
    return "dpo";
  if (data::is_ranked_row(row.value)) return "dpo";
  if (data::detect_schema(row, {}) == data::Schema::Text) return "pretrain";
  const char* const column = data::judgement_column(row.value);
  return column != nullptr && data::judgement_of(row.value[column]) ? "kto" : "sft";
}

void look_at_rows(const std::string& name, const std::string& task, const RowsOfModel* model,
                  StarterFacts& facts) {
  const data::Dataset dataset = data::find_dataset({.name = name});
  data::SchemaConfig config;
  if (const auto first = data::open_dataset(dataset)->next())
    config.task = task == "auto" ? task_of(*first) : task;
  const auto rows = data::rows_by_schema(data::open_dataset(dataset), config, data::BadRows::Error,
                                         std::make_shared<data::RankedCounts>());
  while (const auto row = rows->next()) {
    if (facts.looked_at_rows == kRowsLookedAt) {
      facts.looked_at_all_rows = false;
      break;
    }
    const data::Schema schema = data::detect_schema(*row, config);
    if (facts.looked_at_rows++ == 0) {
      facts.schema = data::schema_name(schema);
      facts.task = config.task;
    }
    if (model == nullptr && facts.looked_at_rows == kRowsWithoutModel) break;
    if (model == nullptr) continue;
    facts.row_tokens.push_back(model->tokens(data::convert_row(*row, schema, config).sample));
  }
  if (facts.looked_at_rows == 0)
    throw DataError("there are no rows", {.file = name, .hint = "name a file with rows"});
  std::sort(facts.row_tokens.begin(), facts.row_tokens.end());
}

struct RowLength {
  int64_t tokens = kUsualRowTokens;
  std::string reason = "tokens of the longest row; data.truncation decides about longer ones";
};

// Length of the longest row. When that row is more than twice as long as the 99th percentile, the
// percentile is taken instead.
RowLength row_length(const StarterFacts& facts) {
  RowLength length;
  // A model that is known only by its name has no max_positions here.
  const bool is_bounded = facts.model && facts.model->max_positions > 0;
  const int64_t positions = is_bounded ? facts.model->max_positions : 0;
  const std::vector<int64_t>& rows = facts.row_tokens;
  if (!rows.empty()) {
    const int64_t longest = rows.back();
    const int64_t of_most = rows[(rows.size() * 99 - 1) / 100];
    const int64_t wanted = longest > 2 * of_most ? of_most : longest;
    length.tokens = (wanted + kRowTokensStep - 1) / kRowTokensStep * kRowTokensStep;
    length.tokens = std::min(length.tokens, kMostRowTokens);
  }
  if (is_bounded) length.tokens = std::min(length.tokens, positions);
  if (rows.empty()) return length;
  const auto longer =
      std::distance(std::upper_bound(rows.begin(), rows.end(), length.tokens), rows.end());
  length.reason = fmt::format(
      "the longest of {}{} has {} tokens{}", facts.looked_at_all_rows ? "" : "the first ",
      counted(facts.looked_at_rows, "row"), rows.back(),
      length.tokens == positions ? fmt::format(", and the model has {} positions", positions)
                                 : std::string());
  length.reason += longer > 0 ? fmt::format("; {} longer, about which data.truncation decides",
                                            counted(longer, "row is", "rows are"))
                              : std::string();
  return length;
}

// The dtype in which the machine trains.
sizing::DtypeChoice dtype_of(const StarterAnswers& answers, const StarterFacts& facts,
                             int64_t tokens) {
  settings::TrainSettings settings;
  settings.tuning.mode = answers.mode;
  settings.model.max_seq_len = tokens;
  settings.train.batch_size = 1;
  return sizing::choose_training_dtype(settings, facts.machine, facts.model);
}

sizing::EstimateRequest request_of(const StarterAnswers& answers, const StarterFacts& facts,
                                   int64_t tokens, const std::string& dtype) {
  return {.mode = answers.mode,
          .dtype = dtype,
          .sharing = sizing::sharing_of(settings::strategy_for("auto", facts.machine.devices)),
          .ranks = facts.machine.devices,
          .row_tokens = tokens,
          .accumulates = true,
          .hardware = facts.machine.hardware};
}

// Settings that depend on memory.
struct MemoryChoices {
  sizing::DtypeChoice dtype = {};
  architecture::Recompute recompute = architecture::Recompute::Selective;
  std::string sentence = {};
};

MemoryChoices choose(const StarterAnswers& answers, const StarterFacts& facts, int64_t tokens) {
  MemoryChoices choices{.dtype = dtype_of(answers, facts, tokens)};
  if (!facts.model || facts.machine.device_bytes == 0) return choices;
  sizing::EstimateRequest request = request_of(answers, facts, tokens, choices.dtype.dtype);
  const auto total = [&] { return sizing::estimate_memory(*facts.model, request).total_bytes(); };
  const int64_t roomy = facts.machine.device_bytes / 2;
  for (const auto recompute : {architecture::Recompute::Nothing, architecture::Recompute::Selective,
                               architecture::Recompute::Blocks}) {
    request.recompute = choices.recompute = recompute;
    if (total() <= roomy) break;
  }
  if (total() > facts.machine.device_bytes && facts.machine.devices > 1)
    request.sharing = sizing::sharing_of(settings::strategies_of_processes().back());
  const std::string& strategy = request.sharing.strategy;
  choices.sentence =
      fmt::format("one row a micro-batch takes about {} of {}{}", telemetry::bytes_text(total()),
                  telemetry::bytes_text(facts.machine.device_bytes),
                  strategy == "none" ? "" : " under " + strategy);
  if (total() > facts.machine.device_bytes)
    choices.sentence += ": it does not fit; take a smaller model, or a mode that takes less";
  return choices;
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

// DPO: Zephyr's (arXiv 2310.16944) 5e-7 for all weights and 5e-6 for LoRA, as in TRL's
// trl/scripts/dpo.py. ORPO: its paper's 8e-6 (arXiv 2403.07691) for all weights and 8e-5 for LoRA,
// as in TRL's examples/scripts/orpo.py. KTO: its paper's 5e-7 (arXiv 2402.01306) for all weights,
// and ten times that for LoRA.
const char* learning_rate(const settings::TaskFacts& task, bool full) {
  if (!settings::learns_preferences(task)) return full ? "1e-5" : "2e-4";
  if (task.data == settings::TaskData::Judged || task.chooses_loss) return full ? "5e-7" : "5e-6";
  return full ? "8e-6" : "8e-5";
}

// The reference model scores preferences without dropout, so the trained model has no dropout
// either. TRL's trainers for DPO, KTO and ORPO also disable all dropout (disable_dropout, true by
// default).
const char* lora_dropout(const settings::TaskFacts& task) {
  return settings::learns_preferences(task) ? "0" : "0.05";
}

// KTO estimates a divergence over the rows of a step. TRL's documentation recommends 16 to 128
// rows, so KTO gets fixed numbers instead of `auto`.
std::string rows_of_step_text(const settings::TaskFacts& task) {
  if (task.data == settings::TaskData::Judged)
    return "  batch_size: 8  # rows of a rank; a step compares at least 2 with each other\n"
           "  grad_accum: 4\n";
  return "  batch_size: auto  # auto: what fits into memory and leaves an epoch 32 steps\n"
         "  grad_accum: auto  # auto: steps of about target_tokens_per_device_step tokens\n"
         "  target_tokens_per_device_step: 4096  # more make fewer and larger steps\n";
}

std::string preference_text(const settings::TaskFacts& task) {
  if (task.data == settings::TaskData::Judged)
    return "\npreference:\n"
           "  beta: 0.1  # more keeps the model closer to its reference\n"
           "  desirable_weight: 1.0  # raise it where there are fewer good answers\n"
           "  undesirable_weight: 1.0\n";
  return fmt::format("\npreference:\n{}",
                     task.chooses_loss
                         ? "  loss: sigmoid  # DPO's own; simpo needs no reference\n"
                           "  beta: 0.1  # more keeps the model closer to its reference\n"
                         : "  beta: 0.1  # weight of the term of preferences\n");
}

}  // namespace

sizing::Machine machine_of(const std::string& hardware) {
  if (hardware == "auto") return this_machine();
  if (const sizing::Machine* const known = sizing::known_machine(hardware)) return *known;
  std::vector<std::string> names = {"auto"};
  for (const sizing::Machine& machine : sizing::known_machines()) names.push_back(machine.name);
  throw ConfigError(fmt::format("the hardware must be one of {}, found `{}`{}",
                                fmt::join(names, ", "), hardware, did_you_mean(hardware, names)),
                    {.key = "hardware", .hint = "--hardware auto takes this machine"});
}

void check_model(const std::string& model) {
  const io::ModelFolder folder = io::ModelFolder::open(model);
  families::read_decoder_spec(folder);
  RowsOfModel{folder};
}

void check_data(const std::string& data) {
  StarterFacts ignored;
  look_at_rows(data, "auto", nullptr, ignored);
}

StarterFacts look_at(const StarterAnswers& answers, std::vector<std::string>& notes) {
  StarterFacts facts{.machine = machine_of(answers.hardware)};
  if (answers.task != "auto") facts.task = answers.task;
  std::optional<io::ModelFolder> folder;
  try {
    folder = io::ModelFolder::open(answers.model);
  } catch (const DataError& error) {
    notes.push_back(fmt::format("model: {}", error.what()));
    facts.model = sizing::known_model(answers.model);
  }
  std::optional<RowsOfModel> model;
  if (folder) {
    facts.model = families::read_decoder_spec(*folder);
    model.emplace(*folder);
  }
  try {
    data::find_dataset({.name = answers.data});
  } catch (const DataError& error) {
    // A run on this machine needs its rows here.
    if (answers.hardware == "auto" && !answers.data_may_be_elsewhere) throw;
    notes.push_back(fmt::format("data: {}", error.sentence()));
    return facts;
  }
  look_at_rows(answers.data, answers.task, model ? &*model : nullptr, facts);
  return facts;
}

std::string starter_config(const StarterAnswers& answers, const StarterFacts& facts) {
  const RowLength length = row_length(facts);
  const int64_t tokens = length.tokens;
  const settings::TaskFacts& task = settings::task_named(facts.task);
  const bool compares = settings::learns_preferences(task);
  const MemoryChoices choices = choose(answers, facts, settings::rows_of_item(task) * tokens);
  const bool full = answers.mode == "full";
  std::string text = fmt::format("# {} of {} on {}, for {}\n", full ? "All weights" : answers.mode,
                                 answers.model, answers.data, facts.machine.words);
  if (!choices.sentence.empty()) text += fmt::format("# By formula, {}.\n", choices.sentence);
  text += fmt::format("task: {}\n\nmodel:\n  name: {}\n", facts.task, quoted(answers.model));
  text += fmt::format("  max_seq_len: {}  # {}\n\n", tokens, length.reason);
  text += fmt::format("tuning:\n  mode: {}\n", answers.mode);
  if (!full)
    text += fmt::format(
        "  lora: {{r: 32, alpha: 64, dropout: {}, target_modules: auto}}  # all projections of "
        "blocks\n",
        lora_dropout(task));
  if (compares) text += preference_text(task);
  text += fmt::format(
      "\ntrain:\n"
      "  epochs: {}\n"
      "  learning_rate: {}\n"
      "  lr_scheduler_type: cosine\n"
      "  warmup_ratio: 0.06\n"
      "{}"
      "  packing: {}  # true: whole rows side by side in blocks of max_seq_len\n"
      "  bf16: auto  # auto: {} here ({}); true: compute in bf16; false: in fp32\n"
      "  gradient_checkpointing: {}  # selective: compute norms and activations again in backward; "
      "true: "
      "whole blocks, for a third more time\n"
      "  eval_steps: 0  # 0: evaluate at the end of each epoch\n"
      "  save_steps: 0  # 0: save at the end of each epoch\n",
      compares ? 1 : 3, learning_rate(task, full), rows_of_step_text(task),
      facts.task == "pretrain", choices.dtype.dtype, choices.dtype.reason,
      architecture::gradient_checkpointing_of(choices.recompute));
  text += fmt::format(
      "\ndata:\n  train_path: {}\n"
      "{}"
      "  split: {{val_ratio: auto}}  # a tenth of the rows, at most 500, for evaluations; 0 = "
      "none\n"
      "\nparallel:\n  strategy: auto  # auto: ddp, or zero1 to zero3 when memory requires it\n",
      quoted(answers.data),
      facts.schema.empty()
          ? ""
          : fmt::format("  schema: {}  # by the keys of the first row\n", facts.schema));
  return text;
}

}  // namespace convoy::apps
