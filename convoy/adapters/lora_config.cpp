// SPDX-License-Identifier: Apache-2.0
#include "convoy/adapters/lora_config.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "convoy/base/error.h"

namespace convoy::adapters {
namespace {

using Json = nlohmann::ordered_json;

bool ends_with_component(const std::string& name, const std::string& ending) {
  return name == ending || (name.size() > ending.size() && name.ends_with(ending) &&
                            name[name.size() - ending.size() - 1] == '.');
}

// RE2 runs in linear time, so a pattern from a file cannot stall the run.
bool matches_whole(const std::string& pattern, const std::string& name) {
  const RE2 expression(pattern, RE2::Quiet);
  if (!expression.ok())
    throw ConfigError(
        fmt::format("the module pattern `{}` cannot be used: {}", pattern, expression.error()),
        {.key = "target_modules", .hint = "look-around and back-references are not supported"});
  return RE2::FullMatch(name, expression);
}

// PEFT's get_pattern_key: the first pattern that matches the end of the name, at a component boundary.
template <class Value>
std::optional<Value> pattern_value(const std::map<std::string, Value>& patterns,
                                   const std::string& name) {
  for (const auto& [pattern, value] : patterns)
    if (matches_whole("(?:.*\\.)?(?:" + pattern + ")", name)) return value;
  return std::nullopt;
}

// Keys of PEFT's LoraConfig whose non-default value changes the maths in a way that Convoy does not compute, with
// the values that are harmless.
void refuse_unsupported(const Json& json, const std::string& file) {
  const auto refuse = [&](const std::string& key, const std::string& found) {
    throw DataError(
        fmt::format("the adapter uses `{}` = {}, which Convoy does not compute", key, found),
        {.file = file, .key = key, .hint = "merge it into the base model with PEFT first"});
  };
  static const std::vector<std::string> must_be_empty = {
      "auto_mapping",   "target_parameters", "layer_replication",       "trainable_token_indices",
      "use_bdlora",     "loftq_config",      "alora_invocation_tokens", "arrow_config",
      "eva_config",     "kasa_config",       "velora_config",           "monteclora_config",
      "megatron_config"};
  for (const std::string& key : must_be_empty)
    if (json.contains(key) && !json[key].is_null() && !json[key].empty() && json[key] != false) {
      // auto_mapping names Python classes; it changes nothing for a causal language model.
      if (key != "auto_mapping") refuse(key, json[key].dump());
    }
  for (const std::string key : {"fan_in_fan_out", "lora_bias", "use_qalora"})
    if (json.value(key, false)) refuse(key, "true");
  if (json.value("bias", std::string("none")) != "none") refuse("bias", json["bias"].dump());
  if (json.contains("task_type") && json["task_type"].is_string() &&
      json["task_type"] != "CAUSAL_LM")
    refuse("task_type", json["task_type"].dump());
}

std::vector<std::string> string_list(const Json& json, const std::string& key,
                                     const std::string& file) {
  std::vector<std::string> list;
  if (!json.contains(key) || json[key].is_null()) return list;
  if (json[key].is_string()) return {json[key].get<std::string>()};
  if (!json[key].is_array())
    throw DataError(fmt::format("wanted a list of names, found {}", json[key].type_name()),
                    {.file = file, .key = key});
  for (const Json& item : json[key]) {
    if (!item.is_string())
      throw DataError(fmt::format("wanted a list of names, found an item {}", item.dump()),
                      {.file = file, .key = key});
    list.push_back(item.get<std::string>());
  }
  return list;
}

template <class Value>
std::map<std::string, Value> pattern_map(const Json& json, const std::string& key,
                                         const std::string& file) {
  std::map<std::string, Value> map;
  if (!json.contains(key) || json[key].is_null()) return map;
  if (!json[key].is_object())
    throw DataError("wanted an object of pattern: number", {.file = file, .key = key});
  for (const auto& [pattern, value] : json[key].items()) {
    if (!value.is_number() || value.template get<double>() <= 0)
      throw DataError(
          fmt::format("wanted a positive number for `{}`, found {}", pattern, value.dump()),
          {.file = file, .key = key});
    map[pattern] = value.template get<Value>();
  }
  return map;
}

}  // namespace

LoraConfig LoraConfig::from_settings(const settings::LoraSettings& settings) {
  LoraConfig config;
  config.r = settings.r;
  config.alpha = settings.alpha;
  config.dropout = settings.dropout;
  config.use_rslora = settings.use_rslora;
  config.use_dora = settings.use_dora;
  config.exclude_names = settings.exclude_modules.names;
  config.rank_pattern = settings.rank_pattern;
  config.alpha_pattern = settings.alpha_pattern;
  config.modules_to_save = settings.modules_to_save.names;
  const std::vector<std::string>& targets = settings.target_modules.names;
  CONVOY_CHECK(!targets.empty(), ConfigError,
               "tuning.lora.target_modules is empty: wanted auto, all-linear or names");
  config.all_linear = targets.size() == 1 && (targets[0] == "auto" || targets[0] == "all-linear");
  if (!config.all_linear) {
    // One name with regular-expression characters is a pattern, as a string is in PEFT.
    const bool is_pattern =
        targets.size() == 1 && targets[0].find_first_of("*+?[](){}|^$\\") != std::string::npos;
    if (is_pattern)
      config.target_pattern = targets[0];
    else
      config.target_names = targets;
  }
  return config;
}

LoraConfig LoraConfig::from_peft_json(const Json& json, const std::string& file) {
  if (!json.is_object()) throw DataError("wanted a JSON object", {.file = file});
  const std::string type = json.contains("peft_type") && json["peft_type"].is_string()
                               ? json["peft_type"].get<std::string>()
                               : "";
  if (type != "LORA")
    throw DataError(fmt::format("wanted an adapter of peft_type LORA, found `{}`", type),
                    {.file = file, .key = "peft_type"});
  refuse_unsupported(json, file);
  LoraConfig config;
  const auto positive = [&](const char* key, double fallback) {
    if (!json.contains(key) || json[key].is_null()) return fallback;
    if (!json[key].is_number() || json[key].get<double>() <= 0)
      throw DataError(fmt::format("wanted a positive number, found {}", json[key].dump()),
                      {.file = file, .key = key});
    return json[key].get<double>();
  };
  const double rank = positive("r", 8);
  if (rank != std::floor(rank) || rank > 1 << 20)
    throw DataError(fmt::format("wanted a whole rank, found {}", rank), {.file = file, .key = "r"});
  config.r = static_cast<int64_t>(rank);
  config.alpha = positive("lora_alpha", 8);
  config.dropout = json.contains("lora_dropout") && json["lora_dropout"].is_number()
                       ? json["lora_dropout"].get<double>()
                       : 0;
  config.use_rslora = json.value("use_rslora", false);
  config.use_dora = json.value("use_dora", false);
  config.all_linear = false;
  if (json.contains("target_modules") && json["target_modules"].is_string()) {
    const std::string target = json["target_modules"];
    if (target == "all-linear")
      config.all_linear = true;
    else
      config.target_pattern = target;
  } else {
    config.target_names = string_list(json, "target_modules", file);
  }
  config.exclude_names = string_list(json, "exclude_modules", file);
  config.rank_pattern = pattern_map<int64_t>(json, "rank_pattern", file);
  config.alpha_pattern = pattern_map<double>(json, "alpha_pattern", file);
  config.modules_to_save = string_list(json, "modules_to_save", file);
  if (json.contains("layers_pattern") && !json["layers_pattern"].is_null() &&
      !json["layers_pattern"].empty() && json["layers_pattern"] != "layers" &&
      json["layers_pattern"] != Json::array({"layers"}))
    throw DataError(fmt::format("wanted null or `layers`, found {}", json["layers_pattern"].dump()),
                    {.file = file, .key = "layers_pattern"});
  if (json.contains("layers_to_transform") && !json["layers_to_transform"].is_null()) {
    const Json& layers = json["layers_to_transform"];
    for (const Json& layer : layers.is_array() ? layers : Json::array({layers})) {
      if (!layer.is_number_integer())
        throw DataError(fmt::format("wanted layer numbers, found {}", layer.dump()),
                        {.file = file, .key = "layers_to_transform"});
      config.layers_to_transform.push_back(layer.get<int64_t>());
    }
  }
  if (json.contains("base_model_name_or_path") && json["base_model_name_or_path"].is_string())
    config.base_model = json["base_model_name_or_path"];
  if (json.contains("revision") && json["revision"].is_string()) config.revision = json["revision"];
  return config;
}

std::string LoraConfig::to_peft_json(const std::vector<std::string>& targets) const {
  const auto null_if_empty = [](const auto& list) {
    return list.empty() ? Json(nullptr) : Json(list);
  };
  const auto number = [](double value) {  // PEFT writes whole alphas as integers
    return value == std::floor(value) ? Json(static_cast<int64_t>(value)) : Json(value);
  };
  nlohmann::json json;  // sorted keys
  for (const char* key :
       {"alora_invocation_tokens", "arrow_config", "auto_mapping", "corda_config", "eva_config",
        "kasa_config", "layer_replication", "layers_pattern", "lora_ga_config", "megatron_config",
        "monteclora_config", "target_parameters", "trainable_token_indices", "use_bdlora",
        "velora_config"})
    json[key] = nullptr;
  json["base_model_name_or_path"] = base_model;
  json["bias"] = "none";
  json["ensure_weight_tying"] = false;
  json["exclude_modules"] = null_if_empty(exclude_names);
  json["fan_in_fan_out"] = false;
  json["inference_mode"] = true;
  json["init_lora_weights"] = true;
  json["layers_to_transform"] = null_if_empty(layers_to_transform);
  json["loftq_config"] = nlohmann::json::object();
  json["lora_alpha"] = number(alpha);
  json["lora_bias"] = false;
  json["lora_dropout"] = dropout;
  json["megatron_core"] = "megatron.core";
  json["modules_to_save"] = null_if_empty(modules_to_save);
  json["peft_type"] = "LORA";
  json["peft_version"] = "0.20.1";
  json["qalora_group_size"] = 16;
  json["r"] = r;
  json["rank_pattern"] =
      rank_pattern.empty() ? nlohmann::json::object() : nlohmann::json(rank_pattern);
  nlohmann::json alphas = nlohmann::json::object();
  for (const auto& [pattern, value] : alpha_pattern)
    alphas[pattern] = nlohmann::json(number(value));
  json["alpha_pattern"] = alphas;
  json["revision"] = revision.empty() ? nlohmann::json(nullptr) : nlohmann::json(revision);
  json["target_modules"] =
      target_pattern.empty() ? nlohmann::json(targets) : nlohmann::json(target_pattern);
  json["task_type"] = "CAUSAL_LM";
  json["use_dora"] = use_dora;
  json["use_qalora"] = false;
  json["use_rslora"] = use_rslora;
  return json.dump(2);
}

bool LoraConfig::saves_whole(const std::string& module_name) const {
  return std::any_of(modules_to_save.begin(), modules_to_save.end(), [&](const std::string& name) {
    return ends_with_component(module_name, name);
  });
}

bool LoraConfig::targets(const std::string& module_name) const {
  const auto ends_with_any = [&](const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return ends_with_component(module_name, name);
    });
  };
  if (ends_with_any(exclude_names) || saves_whole(module_name)) return false;
  if (!layers_to_transform.empty()) {
    int64_t layer = -1;
    if (!RE2::PartialMatch(module_name, R"(\.[^.]*\.(\d+)\.)", &layer)) return false;
    if (std::find(layers_to_transform.begin(), layers_to_transform.end(), layer) ==
        layers_to_transform.end())
      return false;
  }
  if (all_linear) return true;
  return target_pattern.empty() ? ends_with_any(target_names)
                                : matches_whole(target_pattern, module_name);
}

int64_t LoraConfig::rank_of(const std::string& module_name) const {
  return pattern_value(rank_pattern, module_name).value_or(r);
}

double LoraConfig::scaling_of(const std::string& module_name) const {
  const double module_alpha = pattern_value(alpha_pattern, module_name).value_or(alpha);
  const double rank = static_cast<double>(rank_of(module_name));
  return module_alpha / (use_rslora ? std::sqrt(rank) : rank);
}

}  // namespace convoy::adapters
