// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/adapters/lora_config.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "convoy/core/base/error.h"

namespace convoy::adapters {
namespace {

using Json = nlohmann::ordered_json;

// Bounds for values in a file, far above the values of real adapters. No product of them overflows.
constexpr int64_t kMostRank = 1 << 20;
constexpr int64_t kMostLayer = 1 << 20;
constexpr double kLeastAlpha = 1e-9;
constexpr double kMostAlpha = 1e9;
constexpr double kMostDropout = 0.99;  // the bound of tuning.lora.dropout

bool ends_with_component(const std::string& name, const std::string& ending) {
  return name == ending || (name.size() > ending.size() && name.ends_with(ending) &&
                            name[name.size() - ending.size() - 1] == '.');
}

// RE2 runs in linear time, so a pattern from a file cannot stall the run.
bool matches_whole(const std::string& pattern, const std::string& name, const char* key) {
  const RE2 expression(pattern, RE2::Quiet);
  if (!expression.ok())
    throw ConfigError(
        fmt::format("the module pattern `{}` cannot be used: {}", pattern, expression.error()),
        {.key = key, .hint = "look-around and back-references are not supported"});
  return RE2::FullMatch(name, expression);
}

bool matches_end(const std::string& pattern, const std::string& name, const char* key) {
  return matches_whole("(?:.*\\.)?(?:" + pattern + ")", name, key);
}

// PEFT's get_pattern_key: the first pattern that matches the end of the name, at a component
// boundary.
template <class Value>
std::optional<Value> pattern_value(const config::OrderedMap<Value>& patterns,
                                   const std::string& name, const char* key) {
  for (const auto& [pattern, value] : patterns)
    if (matches_end(pattern, name, key)) return value;
  return std::nullopt;
}

// Modules as PEFT names them: a list of name endings, or one regular expression over whole names.
struct ModuleChoice {
  std::vector<std::string> names;
  std::string pattern;
};

ModuleChoice read_modules(const io::JsonReader& json, const std::string& key) {
  if (json.has(key) && json.find(key)->is_string()) return {{}, json.string_or(key, "")};
  return {json.strings_or_empty(key), ""};
}

// A single name with characters of regular expressions is a pattern, as a string is in PEFT.
ModuleChoice choose_modules(const std::vector<std::string>& names) {
  const bool is_pattern =
      names.size() == 1 && names[0].find_first_of("*+?[](){}|^$\\") != std::string::npos;
  if (is_pattern) return {{}, names[0]};
  return {names, ""};
}

// Settings of PEFT's LoraConfig that change the maths in a way that Convoy does not compute.
void refuse_unsupported(const io::JsonReader& json) {
  const auto refuse = [&](const std::string& key) {
    throw DataError(
        fmt::format("the adapter uses `{}` = {:.200}, which Convoy does not compute", key,
                    json.find(key)->dump()),
        {.file = json.place(), .key = key, .hint = "merge it into the base model with PEFT first"});
  };
  // `auto_mapping` names Python classes; it changes nothing for a causal language model.
  for (const char* key : {"target_parameters", "layer_replication", "trainable_token_indices",
                          "use_bdlora", "loftq_config", "alora_invocation_tokens", "arrow_config",
                          "kasa_config", "velora_config", "monteclora_config", "megatron_config"})
    if (json.has(key) && !json.find(key)->empty() && *json.find(key) != false) refuse(key);
  for (const char* key : {"fan_in_fan_out", "lora_bias", "use_qalora"})
    if (json.bool_or(key, false)) refuse(key);
  if (json.string_or("bias", "none") != "none") refuse("bias");
  if (json.string_or("task_type", "CAUSAL_LM") != "CAUSAL_LM") refuse("task_type");
  // The accepted values initialise A and B only, and the file has the values of both. Other values
  // (pissa, olora, ...) also change the base weight.
  const io::Json* start = json.find("init_lora_weights");
  const bool starts_plainly = start == nullptr || start->is_null() || start->is_boolean() ||
                              *start == "gaussian" || *start == "orthogonal" || *start == "eva";
  if (!starts_plainly) refuse("init_lora_weights");
  const ModuleChoice layer_lists = read_modules(json, "layers_pattern");
  for (const std::string& list : layer_lists.names)
    if (list != "layers") refuse("layers_pattern");
  if (!layer_lists.pattern.empty() && layer_lists.pattern != "layers") refuse("layers_pattern");
}

// PEFT never writes null for these keys. Given null, it fails or loads a different adapter, so a
// default would be a guess.
void refuse_nulls(const io::JsonReader& json) {
  for (const char* key : {"peft_type", "r", "lora_alpha", "lora_dropout", "target_modules"})
    if (json.find(key) != nullptr && json.find(key)->is_null())
      json.fail(key, "must not be null; save the adapter again with PEFT");
}

}  // namespace

LoraConfig LoraConfig::from_settings(const settings::LoraSettings& settings) {
  LoraConfig config;
  config.r = settings.r;
  config.alpha = settings.alpha;
  config.dropout = settings.dropout;
  config.use_rslora = settings.use_rslora;
  config.use_dora = settings.use_dora;
  const ModuleChoice excluded = choose_modules(settings.exclude_modules.names);
  config.exclude_names = excluded.names;
  config.exclude_pattern = excluded.pattern;
  for (const auto& [pattern, rank] : settings.rank_pattern)
    if (rank < 1 || rank > kMostRank)
      throw ConfigError(
          fmt::format("tuning.lora.rank_pattern: wanted a rank from 1 to {} for `{}`, found {}",
                      kMostRank, pattern, rank),
          {.key = "tuning.lora.rank_pattern",
           .hint = "correct the rank, or leave the pattern out"});
  config.rank_pattern = settings.rank_pattern;
  config.alpha_pattern = settings.alpha_pattern;
  config.layers_to_transform = settings.layers_to_transform;
  config.modules_to_save = settings.modules_to_save.names;
  const std::vector<std::string>& targets = settings.target_modules.names;
  if (targets.empty())
    throw ConfigError("tuning.lora.target_modules is empty",
                      {.key = "tuning.lora.target_modules",
                       .hint = "such as auto, all-linear or [q_proj, v_proj]"});
  config.all_linear = targets.size() == 1 && (targets[0] == "auto" || targets[0] == "all-linear");
  if (!config.all_linear) {
    const ModuleChoice chosen = choose_modules(targets);
    config.target_names = chosen.names;
    config.target_pattern = chosen.pattern;
  }
  return config;
}

LoraConfig LoraConfig::from_peft_json(const io::JsonReader& json) {
  refuse_nulls(json);
  const std::string type = json.require_string("peft_type");
  if (type != "LORA")
    json.fail_unsupported("peft_type",
                          fmt::format("wanted an adapter of type LORA, found `{}`", type),
                          "merge it into the base model with PEFT first");
  refuse_unsupported(json);
  LoraConfig config;
  config.r = json.int_or("r", 8, 1, kMostRank);
  config.alpha = json.double_or("lora_alpha", 8, kLeastAlpha, kMostAlpha);
  config.dropout = json.double_or("lora_dropout", 0, 0, kMostDropout);
  config.use_rslora = json.bool_or("use_rslora", false);
  config.use_dora = json.bool_or("use_dora", false);
  const ModuleChoice targets = read_modules(json, "target_modules");
  config.all_linear = targets.pattern == "all-linear";
  if (!config.all_linear) config.target_pattern = targets.pattern;
  config.target_names = targets.names;
  if (targets.names.empty() && targets.pattern.empty())
    json.fail("target_modules", "wanted names of modules or a pattern, found none");
  const ModuleChoice excluded = read_modules(json, "exclude_modules");
  config.exclude_pattern = excluded.pattern;
  config.exclude_names = excluded.names;
  if (const auto ranks = json.optional_object("rank_pattern"))
    for (const std::string& pattern : ranks->keys())
      config.rank_pattern.pairs.emplace_back(pattern, ranks->require_int(pattern, 1, kMostRank));
  if (const auto alphas = json.optional_object("alpha_pattern"))
    for (const std::string& pattern : alphas->keys())
      config.alpha_pattern.pairs.emplace_back(
          pattern, alphas->require_double(pattern, kLeastAlpha, kMostAlpha));
  config.modules_to_save = json.strings_or_empty("modules_to_save");
  config.ensure_weight_tying = json.bool_or("ensure_weight_tying", false);
  config.layers_to_transform = json.ints_or_empty("layers_to_transform", 0, kMostLayer);
  config.base_model = json.string_or("base_model_name_or_path", "");
  config.revision = json.string_or("revision", "");
  return config;
}

std::string LoraConfig::to_peft_json(const std::vector<std::string>& targets) const {
  const auto null_if_empty = [](const auto& list) {
    return list.empty() ? Json(nullptr) : Json(list);
  };
  const auto number = [](double value) {  // PEFT writes whole alphas as integers
    const bool whole = value == std::floor(value) && value <= kMostAlpha;
    return whole ? Json(static_cast<int64_t>(value)) : Json(value);
  };
  nlohmann::json json;  // sorted keys
  for (const char* key :
       {"alora_invocation_tokens", "arrow_config", "auto_mapping", "corda_config", "eva_config",
        "kasa_config", "layer_replication", "layers_pattern", "lora_ga_config", "megatron_config",
        "monteclora_config", "target_parameters", "trainable_token_indices", "use_bdlora",
        "velora_config", "rank_pattern", "alpha_pattern"})
    json[key] = nullptr;
  json["base_model_name_or_path"] = base_model;
  json["bias"] = "none";
  json["ensure_weight_tying"] = ensure_weight_tying;
  json["exclude_modules"] =
      exclude_pattern.empty() ? null_if_empty(exclude_names) : Json(exclude_pattern);
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
  json["revision"] = revision.empty() ? nlohmann::json(nullptr) : nlohmann::json(revision);
  json["target_modules"] =
      target_pattern.empty() ? nlohmann::json(targets) : nlohmann::json(target_pattern);
  json["task_type"] = "CAUSAL_LM";
  json["use_dora"] = use_dora;
  json["use_qalora"] = false;
  json["use_rslora"] = use_rslora;
  Json sorted(json);
  // PEFT sorts the patterns too. Convoy keeps their order, because a reader takes the first pattern
  // that matches a module.
  sorted["rank_pattern"] = Json::object();
  sorted["alpha_pattern"] = Json::object();
  for (const auto& [pattern, value] : rank_pattern) sorted["rank_pattern"][pattern] = value;
  for (const auto& [pattern, value] : alpha_pattern)
    sorted["alpha_pattern"][pattern] = number(value);
  return sorted.dump(2);
}

bool LoraConfig::saves(const std::string& ending, const std::string& module_name) {
  if (ending.empty()) return false;
  for (size_t end = module_name.size(); end != std::string::npos && end > 0;
       end = module_name.rfind('.', end - 1))
    if (std::string_view(module_name).substr(0, end).ends_with(ending)) return true;
  return false;
}

bool LoraConfig::saves_whole(const std::string& module_name) const {
  return std::any_of(modules_to_save.begin(), modules_to_save.end(),
                     [&](const std::string& name) { return saves(name, module_name); });
}

std::vector<LoraConfig::Unmatched> LoraConfig::unmatched(
    const std::vector<std::string>& modules, const std::vector<std::string>& adapted) const {
  std::vector<Unmatched> found;
  const auto look = [&](const char* key, const std::string& pattern,
                        const std::vector<std::string>& among, const auto& matches) {
    if (std::none_of(among.begin(), among.end(), matches)) found.push_back({key, pattern});
  };
  for (const std::string& name : exclude_names)
    look("exclude_modules", name, modules,
         [&](const std::string& module) { return ends_with_component(module, name); });
  if (!exclude_pattern.empty())
    look("exclude_modules", exclude_pattern, modules, [&](const std::string& module) {
      return matches_whole(exclude_pattern, module, "exclude_modules");
    });
  const auto look_at_patterns = [&](const char* key, const auto& patterns) {
    for (const auto& [pattern, value] : patterns)
      look(key, pattern, adapted, [&, &one = pattern](const std::string& module) {
        return matches_end(one, module, key);
      });
  };
  look_at_patterns("rank_pattern", rank_pattern);
  look_at_patterns("alpha_pattern", alpha_pattern);
  return found;
}

std::optional<int64_t> LoraConfig::layer_of(const std::string& module_name) {
  int64_t layer = -1;
  if (!RE2::PartialMatch(module_name, R"(\.[^.]*\.(\d+)\.)", &layer)) return std::nullopt;
  return layer;
}

bool LoraConfig::targets(const std::string& module_name) const {
  const auto ends_with_any = [&](const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return ends_with_component(module_name, name);
    });
  };
  if (ends_with_any(exclude_names) || saves_whole(module_name)) return false;
  if (!exclude_pattern.empty() && matches_whole(exclude_pattern, module_name, "exclude_modules"))
    return false;
  if (!layers_to_transform.empty()) {
    const auto layer = layer_of(module_name);
    if (!layer || std::find(layers_to_transform.begin(), layers_to_transform.end(), *layer) ==
                      layers_to_transform.end())
      return false;
  }
  if (all_linear) return true;
  return target_pattern.empty() ? ends_with_any(target_names)
                                : matches_whole(target_pattern, module_name, "target_modules");
}

int64_t LoraConfig::rank_of(const std::string& module_name) const {
  return pattern_value(rank_pattern, module_name, "rank_pattern").value_or(r);
}

double LoraConfig::alpha_of(const std::string& module_name) const {
  return pattern_value(alpha_pattern, module_name, "alpha_pattern").value_or(alpha);
}

double LoraConfig::scaling_of(const std::string& module_name) const {
  const double rank = static_cast<double>(rank_of(module_name));
  return alpha_of(module_name) / (use_rslora ? std::sqrt(rank) : rank);
}

}  // namespace convoy::adapters
