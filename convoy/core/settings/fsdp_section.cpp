// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/fsdp_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "convoy/core/base/suggest.h"
#include "convoy/core/config/hjson.h"

namespace convoy::settings {
namespace {

using config::Node;
using config::NodeKind;

const std::vector<std::string> kOptions = {"full_shard",   "shard_grad_op",      "no_shard",
                                           "hybrid_shard", "hybrid_shard_zero2", "offload",
                                           "auto_wrap"};

// FSDP keeps parameters sharded outside of forward and backward in all of its strategies but
// NO_SHARD. Strategies that are described as sharding only gradients do not free the parameters in
// between.
bool give_strategy(PeerFile& file, const std::string& path, const std::string& name) {
  const bool hybrid =
      name == "hybrid_shard" || name == "4" || name == "hybrid_shard_zero2" || name == "5";
  const bool keeps = name == "shard_grad_op" || name == "2" || name == "hybrid_shard_zero2" ||
                     name == "5" || name == "false";
  const bool releases = name == "full_shard" || name == "1" || name == "hybrid_shard" ||
                        name == "4" || name == "true";
  if (name == "no_shard" || name == "3") {
    file.give(path, "parallel.strategy", "ddp");
    return true;
  }
  if (!keeps && !releases) return false;
  file.give(path, "parallel.strategy", "zero3");
  file.give(path, "parallel.reshard_after_forward", keeps ? "false" : "true");
  if (hybrid) file.give(path, "parallel.shard_over", "node");
  return true;
}

// A config's keys may begin with fsdp_. `names`: the user's spelling of the resulting keys.
Node without_prefix(Node config, const std::string& above,
                    std::map<std::string, std::string>& names) {
  constexpr std::string_view kPrefix = "fsdp_";
  for (auto& [key, value] : config.entries) {
    const std::string name = above + key;
    if (key.starts_with(kPrefix)) key.erase(0, kPrefix.size());
    names[key] = name;
  }
  return config;
}

// The words of `fsdp: "full_shard auto_wrap"`, or of a list.
std::vector<std::string> option_words(const Node& node) {
  std::vector<std::string> words;
  const std::vector<Node> one = {node};
  for (const Node& item : node.kind == NodeKind::List ? node.items : one) {
    std::istringstream text(item.text);
    for (std::string word; text >> word;) words.push_back(word);
  }
  return words;
}

// Returns false when FSDP is not requested.
bool read_options(PeerFile& file, const Node& node, config::ErrorList& errors) {
  const std::vector<std::string> words = option_words(node);
  bool has_strategy = false;
  for (const std::string& word : words) {
    if (word == "false") return false;
    if (word == "offload")
      file.give("fsdp", "parallel.offload", "parameters");
    else if (word != "auto_wrap" && word != "true" && give_strategy(file, "fsdp", word))
      has_strategy = true;
    else if (word != "auto_wrap" && word != "true")
      errors.add(node.error(
          fmt::format("train.fsdp: unknown option `{}`{}", word, did_you_mean(word, kOptions)),
          "train.fsdp", fmt::format("{}", fmt::join(kOptions, ", "))));
  }
  const bool config_has_strategy =
      file.find("reshard_after_forward") != nullptr || file.find("sharding_strategy") != nullptr;
  if (!has_strategy && !config_has_strategy && !words.empty())
    file.give("fsdp", "parallel.strategy", "zero3");
  return !words.empty();
}

Node config_of(const Node& node, config::ErrorList& errors) {
  if (node.kind == NodeKind::Map) return node;
  return config::load_hjson(config::find_named_file(node, "train.fsdp_config"), &errors);
}

}  // namespace

std::vector<PeerKey> fsdp_keys(const std::string& section) {
  using enum PeerAction;
  std::vector<PeerKey> keys;
  const auto add = [&](const std::vector<std::string>& names, PeerAction action,
                       const std::string& why = {}, const std::vector<std::string>& harmless = {}) {
    for (const std::string& name : names)
      keys.push_back({.path = section + name, .action = action, .why = why, .harmless = harmless});
  };
  add({"sharding_strategy", "reshard_after_forward", "offload_params", "cpu_offload",
       "activation_checkpointing"},
      Read);
  add({"version", "use_orig_params", "backward_prefetch", "backward_prefetch_policy",
       "forward_prefetch", "limit_all_gathers", "sync_module_states", "cpu_ram_efficient_loading"},
      NoEffect,
      "blocks are gathered ahead (parallel.prefetch_blocks), and each rank reads only its share of "
      "the weights");
  add({"auto_wrap_policy", "transformer_layer_cls_to_wrap", "transformer_cls_names_to_wrap",
       "min_num_params"},
      NoEffect, "each block of the model is a unit");
  add({"state_dict_type"}, NoEffect,
      "checkpoints are sharded and open to any number of ranks; the model is exported whole");
  add({"activation_checkpointing_offload", "ignored_modules", "float8_all_gather"}, Refuse,
      "there is no such feature; remove it", {"false"});
  add({"xla", "xla_fsdp_v2", "xla_fsdp_grad_ckpt"}, Refuse, "there is no XLA here", {"false"});
  add({"xla_fsdp_settings.*"}, Refuse, "there is no XLA here");
  return keys;
}

void read_fsdp_keys(PeerFile& file, const std::string& section) {
  for (const char* key : {"sharding_strategy", "reshard_after_forward"}) {
    const std::string path = section + key;
    const std::optional<std::string> name = file.word(path);
    if (name && !give_strategy(file, path, *name))
      file.refuse(path, fmt::format("{}: {} is not supported", file.name_of(path), *name),
                  "full_shard, shard_grad_op, hybrid_shard, hybrid_shard_zero2 or no_shard");
  }
  for (const char* key : {"offload_params", "cpu_offload"})
    if (file.flag(section + key).value_or(false))
      file.give(section + key, "parallel.offload", "parameters");
  if (file.flag(section + "activation_checkpointing").value_or(false))
    file.give_as_written(section + "activation_checkpointing", "train.gradient_checkpointing");
}

void read_fsdp_arguments(const std::map<std::string, Node>& found, config::Imported& imported,
                         config::ErrorList& errors) {
  const auto options = found.find("train.fsdp");
  const auto config = found.find("train.fsdp_config");
  Node root;
  root.kind = NodeKind::Map;
  std::map<std::string, std::string> names = {{"fsdp", "train.fsdp"}};
  if (config != found.end())
    root = without_prefix(config_of(config->second, errors),
                          config->second.kind == NodeKind::Map ? "train.fsdp_config." : "", names);
  if (options == found.end()) {
    if (!root.entries.empty())
      imported.notices.push_back(fmt::format(
          "{}: train.fsdp_config has no effect: train.fsdp is not given", config->second.where()));
    return;
  }
  root.entries.emplace_back("fsdp", options->second);
  std::vector<PeerKey> keys = fsdp_keys("");
  keys.push_back({.path = "fsdp"});
  PeerFile file(root, "FSDP", keys, imported, errors);
  for (const auto& [path, name] : names) file.spell(path, name);
  file.check_keys();
  if (read_options(file, options->second, errors)) read_fsdp_keys(file, "");
}

}  // namespace convoy::settings
