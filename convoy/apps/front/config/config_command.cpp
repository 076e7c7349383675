// SPDX-License-Identifier: Apache-2.0
//
// `convoy config show|check|presets|prompts|schema`, and the hidden `docs` that writes
// docs/reference/config.md.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/build_facts.h"
#include "convoy/apps/front/config/memory_fit.h"
#include "convoy/apps/front/config/preset_facts.h"
#include "convoy/apps/front/process/process_config.h"
#include "convoy/apps/front/train/train_config.h"
#include "convoy/apps/front/train/train_inputs.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/settings/resolve_train.h"
#include "convoy/data/datasets/batches/effective_batch.h"
#include "convoy/farm/process/pipeline/pipeline_plan.h"

namespace convoy::apps {
namespace {

// The sources of a configuration.
struct ConfigFlags {
  std::string config;
  std::string preset;
  std::string deepspeed;
  std::string accelerate_config;
  int64_t nproc = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("config", config, "the configuration; the same as the word without a flag");
    visit("preset", preset, "start from this preset (`convoy config presets`)");
    visit("deepspeed", deepspeed, "DeepSpeed's JSON file, as train.deepspeed")
        .alias("deepspeed_config");
    visit("accelerate_config", accelerate_config, "file of `accelerate config`, as accelerate");
    visit("nproc", nproc,
          "check the configuration for this many ranks of all nodes, and print the effective "
          "batch; 0 = skip this")
        .flag("ranks")
        .alias("nproc_per_node")
        .alias("world_size")
        .at_least(0);
  }
};

struct ConfigShowFlags : ConfigFlags {
  bool origin = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("origin", origin, "print where each value came from");
    ConfigFlags::fields(visit);
  }
};

struct ConfigCheckFlags : ConfigFlags {
  std::string hardware;

  template <class Visitor>
  void fields(Visitor& visit) {
    ConfigFlags::fields(visit);
    visit("hardware", hardware,
          "report whether the training fits into this machine of `convoy config presets`; auto = "
          "this host; empty = the preset's own machine, else auto");
  }
};

struct NoFlags {
  template <class Visitor>
  void fields(Visitor&) {}
};

// Adds the files that `flags` name to the words of the command line: the configuration in front,
// the files of other launchers as `key=value` settings at the end, where they win.
Words with_files(Words words, const ConfigFlags& flags) {
  if (!flags.config.empty()) words.insert(words.begin(), flags.config);
  if (!flags.deepspeed.empty()) words.push_back("train.deepspeed=" + flags.deepspeed);
  if (!flags.accelerate_config.empty()) words.push_back("accelerate=" + flags.accelerate_config);
  return words;
}

void print_values(const Context& context, const ConfigShowFlags& flags,
                  const config::Resolved& resolved) {
  if (context.common.json) {
    const nlohmann::json record = flags.origin ? resolved.json_with_origins() : resolved.json();
    fmt::print("{}\n", record.dump(2));
  } else {
    fmt::print("{}", flags.origin ? resolved.yaml_with_origins() : resolved.yaml());
  }
}

// Also reads the files: their `task` decides whether the settings are for training or processing.
config::Sources read_sources(const Words& arguments, const ConfigFlags& flags) {
  config::Sources sources = config_sources(arguments, flags.preset);
  sources.files = config::read_files(sources);
  return sources;
}

config::Resolved read_process(settings::ProcessSettings& process, const Context& context,
                              const config::Sources& sources) {
  config::Resolved resolved = settings::resolve_process(process, sources);
  try {
    process::PipelinePlan(process, process::read_prompt_texts(process.prompts, prompt_texts()),
                          process::read_stage_schemas(process));
  } catch (const ConfigError& error) {
    throw config::placed(error, resolved);
  }
  for (const std::string& notice : resolved.notices()) context.log().info(notice);
  return resolved;
}

int show(const Context& context, const ConfigShowFlags& flags, const Words& words) {
  const config::Sources sources = read_sources(with_files(words, flags), flags);
  if (settings::is_process_config(sources)) {
    settings::ProcessSettings process;
    print_values(context, flags, read_process(process, context, sources));
    return 0;
  }
  settings::TrainSettings train;
  print_values(context, flags,
               resolve_logged(train, settings::read_train_documents(sources), context.log(),
                              settings::Wanted::Anything, flags.nproc));
  return 0;
}

// The batch of a step on the ranks that --ranks gives.
struct RankBatch {
  int64_t ranks = 0;
  int64_t rows = 0;  // rows of one step; 0 = unknown before the run
  std::string sentence = {};
};

// Throws ConfigError for settings that contradict each other on this number of ranks.
RankBatch batch_on_ranks(const Context& context, const settings::TrainSettings& train,
                         int64_t ranks) {
  const settings::TaskData data = train.task_facts().data;
  const std::string unit = data == settings::TaskData::Windows            ? "window"
                           : train.train.packing                          ? "block"
                           : data == settings::TaskData::Pairs            ? "pair"
                           : settings::makes_its_rows(train.task_facts()) ? "problem"
                                                                          : "row";
  RankBatch batch{.ranks = ranks};
  if (train.train.chooses_batch()) {
    batch.rows = train.train.global_batch_size;
    batch.sentence =
        batch.rows > 0
            ? fmt::format(
                  "effective batch: {} a step on {}; how it is spread is measured when the "
                  "run starts",
                  batch.rows, counted(ranks, "rank"))
            : fmt::format("effective batch: measured when the run starts, on {}",
                          counted(ranks, "rank"));
    return batch;
  }
  const data::EpochOrder order(1, {.batch_size = train.train.batch_rows(),
                                   .grad_accum = std::max<int64_t>(1, train.train.accumulation()),
                                   .world_size = ranks,
                                   .global_batch = data::wanted_global_batch(train.train, ranks)});
  batch.rows = order.config().global_batch;
  batch.sentence = data::batch_sentence(order.config(), unit);
  const std::string idle = data::idle_ranks_warning(order.config(), unit);
  if (!idle.empty()) context.log().warning(idle);
  return batch;
}

int say_ok(const Context& context, const config::Resolved& resolved, const RankBatch& batch = {},
           const std::optional<MemoryFit>& fit = {}) {
  if (context.common.json) {
    nlohmann::ordered_json report = {
        {"ok", true}, {"notices", resolved.notices()}, {"warnings", resolved.warnings()}};
    if (!batch.sentence.empty()) {
      report["ranks"] = batch.ranks;
      // null: the batch is measured at the start of the run.
      report["effective_batch"] =
          batch.rows > 0 ? nlohmann::ordered_json(batch.rows) : nlohmann::ordered_json();
    }
    if (fit) report["memory"] = fit->to_json();
    fmt::print("{}\n", report.dump());
    return 0;
  }
  if (fit) say_memory_fit(*fit, context.log());
  if (!batch.sentence.empty()) fmt::print("{}\n", batch.sentence);
  fmt::print("ok\n");
  return 0;
}

int check(const Context& context, const ConfigCheckFlags& flags, const Words& words) {
  const Words arguments = with_files(words, flags);
  if (arguments.empty() && flags.preset.empty())
    throw ConfigError("`convoy config check` needs a file",
                      {.hint = "convoy config check run.yaml"});
  const config::Sources sources = read_sources(arguments, flags);
  if (settings::is_process_config(sources)) {
    if (flags.nproc > 0)
      throw ConfigError("--ranks applies only to trainings, found a configuration of task process",
                        {.key = "--ranks", .hint = "its workers are workers.world_size"});
    if (!flags.hardware.empty())
      throw ConfigError(
          "--hardware applies only to trainings, found a configuration of task process",
          {.key = "--hardware", .hint = "leave it out"});
    settings::ProcessSettings process;
    return say_ok(context, read_process(process, context, sources));
  }
  settings::TrainSettings train;
  const config::Resolved resolved =
      resolve_logged(train, settings::read_train_documents(sources), context.log(),
                     settings::Wanted::TrainInputs, flags.nproc);
  // A configuration may be for another machine: missing files only cause warnings.
  for (const DataError& error : missing_train_inputs(train))
    context.log().warning(fmt::format("{}: {}", error.location().key, error.sentence()));
  std::optional<MemoryFit> fit;
  if (const auto model = sizes_of(train.model))
    fit = memory_fit(*model, train, machine_of_config(flags.hardware, resolved), flags.nproc);
  return say_ok(context, resolved,
                flags.nproc > 0 ? batch_on_ranks(context, train, flags.nproc) : RankBatch(), fit);
}

nlohmann::ordered_json preset_json(const PresetFacts& preset) {
  nlohmann::ordered_json json = {{"summary", preset.summary}};
  if (preset.machine == nullptr) return json;
  const sizing::EstimateRequest request = estimate_request(preset.settings, *preset.machine);
  json["model"] = preset.settings.model.name;
  json["machine"] = preset.machine->words;
  json["devices"] = preset.machine->devices;
  json["device_bytes"] = preset.machine->device_bytes;
  json["mode"] = request.mode;
  json["strategy"] = request.sharing.strategy;
  json["batch_rows"] = request.batch_rows;
  json["row_tokens"] = request.row_tokens;
  json["memory"] = preset.memory.to_json();
  return json;
}

int presets(const Context& context, const NoFlags&, const Words& arguments) {
  const std::map<std::string, std::string> texts = preset_texts();
  if (!arguments.empty()) {
    const auto preset = texts.find(arguments[0]);
    if (preset == texts.end()) {
      std::vector<std::string> names;
      for (const auto& [name, text] : texts) names.push_back(name);
      throw ConfigError(
          fmt::format("there is no preset `{}`{}", arguments[0], did_you_mean(arguments[0], names)),
          {.hint = "`convoy config presets` lists them"});
    }
    fmt::print("{}", preset->second);
    return 0;
  }
  const std::vector<PresetFacts> presets = preset_facts();
  if (context.common.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::object();
    for (const PresetFacts& preset : presets) list[preset.name] = preset_json(preset);
    fmt::print("{}\n", list.dump(2));
    return 0;
  }
  for (const PresetFacts& preset : presets) fmt::print("{:<27} {}\n", preset.name, preset.summary);
  fmt::print("\n{}", machine_presets_text(presets));
  return 0;
}

int prompts(const Context& context, const NoFlags&, const Words& arguments) {
  const std::map<std::string, std::string> texts = prompt_texts();
  if (arguments.empty()) {
    if (context.common.json) fmt::print("{}\n", nlohmann::json(texts).dump(2));
    for (const auto& [name, text] : texts)
      if (!context.common.json) fmt::print("{:<10} {}\n", name, text.substr(0, text.find('\n')));
    return 0;
  }
  const auto prompt = texts.find(arguments[0]);
  if (prompt == texts.end()) {
    std::vector<std::string> names;
    for (const auto& [name, text] : texts) names.push_back(name);
    throw ConfigError(
        fmt::format("there is no prompt `{}`{}", arguments[0], did_you_mean(arguments[0], names)),
        {.hint = "`convoy config prompts` lists them"});
  }
  fmt::print("{}", prompt->second);
  return 0;
}

int schema(const Context&, const NoFlags&, const Words& arguments) {
  if (arguments == Words{"process"}) {
    settings::ProcessSettings process;
    fmt::print("{}\n",
               config::json_schema(config::list_fields(process), "Convoy processing configuration")
                   .dump(2));
    return 0;
  }
  settings::TrainSettings train;
  fmt::print(
      "{}\n",
      config::json_schema(config::list_fields(train), "Convoy training configuration").dump(2));
  return 0;
}

int docs(const Context&, const NoFlags&, const Words&) {
  fmt::print("{}{}", train_config_markdown(), process_config_markdown());
  return 0;
}

}  // namespace

Command config_command() {
  return {
      .name = "config",
      .summary = "Show and check configurations and presets",
      .usage = "convoy config show|check|presets|prompts|schema [flags]",
      .examples =
          "convoy config show --origin run.yaml train.batch_size=2\n"
          "convoy config check run.yaml --ranks 2\n"
          "convoy config presets",
      .actions = {{.name = "show",
                   .summary = "Show every value, and with --origin its source",
                   .usage = "convoy config show [--origin] [CONFIG.yaml] [key=value ...]",
                   .examples = "convoy config show --origin run.yaml train.batch_size=2\n"
                               "convoy config show --preset chat-lora model.name=Qwen/Qwen2.5-0.5B",
                   .flags = {flags_of<ConfigShowFlags>()},
                   .run = with_flags_of<ConfigShowFlags, show>},
                  {.name = "check",
                   .summary = "Check a configuration, its batch and its memory",
                   .usage = "convoy config check CONFIG.yaml [key=value ...] [--ranks N] "
                            "[--hardware H]",
                   .examples =
                       "convoy config check run.yaml --ranks 2\n"
                       "convoy config check run.yaml --hardware rtx4090x2 train.batch_size=6\n"
                       "convoy config check run.yaml train.learning_rate=1e-4 --json",
                   .flags = {flags_of<ConfigCheckFlags>()},
                   .run = with_flags_of<ConfigCheckFlags, check>},
                  {.name = "presets",
                   .summary = "List the presets, or print one",
                   .usage = "convoy config presets [NAME]",
                   .examples = "convoy config presets\nconvoy config presets chat-lora",
                   .run = with_flags_of<NoFlags, presets>},
                  {.name = "prompts",
                   .summary = "List the prompts of processing, or print one",
                   .usage = "convoy config prompts [NAME]",
                   .examples = "convoy config prompts\nconvoy config prompts generate",
                   .run = with_flags_of<NoFlags, prompts>},
                  {.name = "schema",
                   .summary = "Print the JSON Schema of a configuration",
                   .usage = "convoy config schema [process]",
                   .examples = "convoy config schema > convoy.schema.json\n"
                               "convoy config schema process",
                   .run = with_flags_of<NoFlags, schema>},
                  {.name = "docs",
                   .summary = "Print docs/reference/config.md",
                   .usage = "convoy config docs",
                   .examples = "convoy config docs",
                   .run = with_flags_of<NoFlags, docs>,
                   .hidden = true}},
      .group = HelpGroup::ModelsAndData};
}

}  // namespace convoy::apps
