// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/resolve_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/flags.h"
#include "convoy/core/settings/template_kwargs.h"

namespace convoy::settings {
namespace {

std::map<std::string, std::string> values_of(ProcessSettings& settings) {
  return config::assigned_values(config::list_fields(settings));
}

// Settings of models that Convoy loads itself. They have no effect on servers.
constexpr std::array kOfLoadedModels = {
    "model.adapter",      "model.revision",      "model.dtype",        "model.quantization",
    "model.double_quant", "model.template_path", "workers.devices",    "workers.threads",
    "engine.low_memory",  "engine.memory_gib",   "engine.kv_blocks",   "engine.prefill_chunk",
    "engine.kv_dtype",    "engine.weights",      "engine.activations", "engine.cuda_graphs"};

[[noreturn]] void refuse_effectless(const std::string& path, const std::string& where) {
  throw ConfigError(fmt::format("{} ({}) has no effect {}", path, process_flag(path), where),
                    {.key = path, .hint = "leave it out"});
}

void check_remote(const ProcessSettings& settings) {
  ProcessSettings given = settings;
  ProcessSettings defaults;
  const std::map<std::string, std::string> values = values_of(given);
  const std::map<std::string, std::string> usual = values_of(defaults);
  if (settings.remote.is_used()) {
    for (const char* path : kOfLoadedModels)
      if (values.at(path) != usual.at(path))
        refuse_effectless(path, "with --engine: its servers have loaded the model");
    if (settings.engine.deterministic)
      refuse_effectless("engine.deterministic",
                        "with --engine: a server's texts depend on what else it computes");
    return;
  }
  for (const char* path : {"remote.engine_model", "remote.engine_timeout"})
    if (values.at(path) != usual.at(path)) refuse_effectless(path, "without --engine");
}

void check(const ProcessSettings& settings) {
  check_remote(settings);
  if (const auto problem = template_kwargs_problem(
          nlohmann::ordered_json::parse(settings.model.template_kwargs.json)))
    throw ConfigError("model.template_kwargs: " + *problem,
                      {.key = "model.template_kwargs",
                       .hint = "give --template-kwargs a map of the template's variables, such as "
                               "{enable_thinking: false}"});
  const ProcessModelSettings& model = settings.model;
  if (model.double_quant && model.quantization != "nf4" && model.quantization != "fp4")
    throw ConfigError(
        fmt::format("model.double_quant applies only to nf4 and fp4, found model.quantization {}",
                    model.quantization),
        {.key = "model.double_quant", .hint = "add --quantization nf4, or leave it out"});
  if (model.encodes() && settings.engine.weights != "model")
    throw ConfigError(
        fmt::format(
            "engine.weights {} and model.quantization {} both set the format of linear layers",
            settings.engine.weights, model.quantization),
        {.key = "engine.weights", .hint = "give one of --weights and --quantization"});
  if (settings.engine.weights == "model" && settings.engine.activations != "model")
    throw ConfigError(kActivationsNeedCodes,
                      {.key = "engine.activations", .hint = kActivationsNeedCodesHint});
  if (settings.workers.node_rank >= settings.workers.num_nodes)
    throw ConfigError(fmt::format("workers.node_rank: wanted below workers.num_nodes {}, found {}",
                                  settings.workers.num_nodes, settings.workers.node_rank),
                      {.key = "workers.node_rank", .hint = "node ranks count from 0"});
  if (settings.workers.texts_in_store && settings.workers.num_nodes == 1)
    throw ConfigError(
        "workers.texts_in_store is for several nodes, found workers.num_nodes 1",
        {.key = "workers.texts_in_store", .hint = "leave it out, or give --num-nodes"});
  if (settings.workers.world_size == 0)
    throw ConfigError("workers.world_size: wanted -1 or at least 1, found 0",
                      {.key = "workers.world_size",
                       .hint = "-1 takes every device; give a number from 1 on for fewer"});
}

bool says_process(const config::Node& tree) {
  const config::Node* task = tree.find("task");
  return task != nullptr && task->text == "process";
}

}  // namespace

config::Resolved resolve_process(ProcessSettings& settings, const config::Sources& sources,
                                 ProcessFlagValues flags) {
  config::Resolved resolved = config::resolve(settings, sources);
  const config::Section list = process_flag_list(settings);
  config::copy_values(process_flag_list(flags.settings), list, flags.names);
  const auto is_given = [&](const config::Field& setting) {
    return std::any_of(list.fields.begin(), list.fields.end(), [&](const config::Field& flag) {
      return flag.value == setting.value &&
             std::find(flags.names.begin(), flags.names.end(), flag.name) != flags.names.end();
    });
  };
  config::for_each_field(config::list_fields(settings), "",
                         [&](const std::string& path, const config::Field& setting) {
                           if (is_given(setting)) resolved.decided(path, "by a flag");
                         });
  try {
    check(settings);
  } catch (const ConfigError& error) {
    throw config::placed(error, resolved);
  }
  return resolved;
}

bool is_process_config(const config::Sources& sources) {
  for (const std::string& assignment : sources.overrides)
    if (assignment == "task=process") return true;
  const config::FileStack files = config::read_files(sources);
  for (const config::Node& tree : files.trees())
    if (says_process(tree)) return true;
  const std::string preset =
      sources.preset.empty() && files.preset() != nullptr ? files.preset()->text : sources.preset;
  const auto text = sources.presets.find(preset);
  return text != sources.presets.end() &&
         says_process(config::parse_yaml(text->second, "preset " + preset));
}

}  // namespace convoy::settings
