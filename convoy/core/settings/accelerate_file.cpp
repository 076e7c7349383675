// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/accelerate_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/lower_case.h"
#include "convoy/core/config/hjson.h"
#include "convoy/core/settings/fsdp_section.h"

namespace convoy::settings {
namespace {

using config::Node;
using config::NodeKind;

const std::string kDeepSpeed = "deepspeed_config.";
const std::string kFsdp = "fsdp_config.fsdp_";

// The keys of accelerate 1.15: commands/config/config_args.py and cluster.py.
std::vector<PeerKey> make_keys() {
  using enum PeerAction;
  std::vector<PeerKey> keys = fsdp_keys(kFsdp);
  const auto add = [&keys](const std::vector<std::string>& paths, PeerAction action,
                           const std::string& why = {},
                           const std::vector<std::string>& harmless = {}) {
    for (const std::string& path : paths)
      keys.push_back({.path = path, .action = action, .why = why, .harmless = harmless});
  };
  add({"distributed_type", "mixed_precision", "num_processes", "num_machines", "machine_rank",
       "main_process_ip", "main_process_port", "use_cpu", "gradient_accumulation_steps",
       "gradient_clipping"},
      Read);
  add({"compute_environment"}, Refuse, "the command runs on the host where it is started",
      {"local_machine"});
  add({"gpu_ids"}, Refuse, "set CUDA_VISIBLE_DEVICES to them", {"all"});
  add({"rdzv_backend", "same_network", "main_training_function", "debug", "enable_cpu_affinity"},
      NoEffect, "the launcher has its own rendezvous, checks and CPU binding",
      {"static", "main", "false", "true"});
  add({"downcast_bf16", "tpu_env", "tpu_name", "tpu_zone", "tpu_use_cluster", "tpu_use_sudo",
       "tpu_vm", "command_file", "commands"},
      Refuse, "there are no TPUs here", {"no", "false"});
  add({"dynamo_config.*", "dynamo_backend"}, NoEffect, "nothing is compiled at run time", {"no"});
  add({"fp8_config.*", "megatron_lm_config.*", "parallelism_config.*", "tp_config.*",
       "ipex_config.*", "mpirun_config.*"},
      Refuse, "there is no such feature; remove it");
  for (const char* name :
       {"deepspeed_config_file", "zero_stage", "offload_optimizer_device", "offload_param_device",
        "gradient_accumulation_steps", "gradient_clipping"})
    add({kDeepSpeed + name}, Read);
  for (const char* name : {"zero3_init_flag", "zero3_save_16bit_model"})
    add({kDeepSpeed + name}, NoEffect,
        "each rank reads only its share of the weights; the model is exported whole", {"false"});
  for (const char* name : {"offload_optimizer_nvme_path", "offload_param_nvme_path"})
    add({kDeepSpeed + name}, NoEffect, "offload to disk is not supported", {"none"});
  for (const char* name : {"deepspeed_multinode_launcher", "deepspeed_hostfile",
                           "deepspeed_exclusion_filter", "deepspeed_inclusion_filter"})
    add({kDeepSpeed + name}, NoEffect, "start the same command on each node", {"standard"});
  add({kDeepSpeed + "deepspeed_moe_layer_cls_names"}, Refuse,
      "mixtures of experts are not supported");
  return keys;
}

const std::vector<PeerKey>& accelerate_keys() {
  static const std::vector<PeerKey> keys = make_keys();
  return keys;
}

// accelerate reads a section only when distributed_type names it.
Node without_inactive_sections(Node root, config::Imported& imported) {
  const auto found = std::find_if(root.entries.begin(), root.entries.end(), [](const auto& entry) {
    return entry.first == "distributed_type";
  });
  const std::string type = found == root.entries.end() ? "" : found->second.text;
  const auto is_inactive = [&](const auto& entry) {
    const auto& [key, node] = entry;
    const std::string owner = key == "deepspeed_config" ? "DEEPSPEED"
                              : key == "fsdp_config"    ? "FSDP"
                                                        : "";
    const bool is_empty =
        node.kind == NodeKind::Null || (node.kind == NodeKind::Map && node.entries.empty());
    if (owner.empty() || is_empty || lower_case(type) == lower_case(owner)) return false;
    imported.notices.push_back(fmt::format("{}: {} is inactive: distributed_type is {}, not {}",
                                           node.where(), key, type.empty() ? "not given" : type,
                                           owner));
    return true;
  };
  std::erase_if(root.entries, is_inactive);
  return root;
}

class AccelerateReader {
 public:
  AccelerateReader(const Node& root, LaunchRequest& launch_request, config::Imported& imported,
                   config::ErrorList& errors)
      : file_(root, "accelerate", accelerate_keys(), imported, errors),
        launch_request_(launch_request),
        imported_(imported),
        errors_(errors) {}

  DeepSpeedFacts read() {
    file_.check_keys();
    read_ranks();
    read_precision();
    for (const std::string& section : {std::string(), kDeepSpeed}) {
      if (file_.number(section + "gradient_accumulation_steps"))
        file_.give_as_written(section + "gradient_accumulation_steps", "train.grad_accum");
      if (file_.number(section + "gradient_clipping"))
        file_.give_as_written(section + "gradient_clipping", "train.max_grad_norm");
    }
    read_distributed_type();
    if (precision_) facts_.precision = precision_;
    return facts_;
  }

 private:
  void request(const std::string& path, RequestedValue& request) {
    if (const Node* const node = file_.find(path); node != nullptr && file_.word(path))
      request = {node->text, node->where()};
  }

  void read_ranks() {
    if (file_.flag("use_cpu").value_or(false))
      launch_request_.devices = {"cpu", file_.find("use_cpu")->where()};
    const int64_t nodes = file_.integer("num_machines").value_or(1);
    const std::optional<int64_t> ranks = file_.integer("num_processes");
    if (ranks && *ranks > 0) {
      if (nodes < 1 || *ranks % nodes != 0)
        return file_.refuse(
            "num_processes",
            fmt::format("num_processes {} is no multiple of num_machines {}", *ranks, nodes));
      launch_request_.ranks_of_node = {fmt::format("{}", *ranks / nodes),
                                       file_.find("num_processes")->where()};
    }
    if (nodes < 2) return;
    request("num_machines", launch_request_.nodes);
    request("machine_rank", launch_request_.node_rank);
    request("main_process_ip", launch_request_.master_addr);
    request("main_process_port", launch_request_.master_port);
  }

  void read_precision() {
    const std::optional<std::string> precision = file_.word("mixed_precision");
    if (!precision) return;
    if (*precision != "fp16" && *precision != "bf16" && *precision != "no")
      return file_.refuse("mixed_precision",
                          fmt::format("mixed_precision: {} is not supported", *precision),
                          "bf16, fp16 or no");
    file_.give_weakly("mixed_precision", *precision == "fp16" ? "train.fp16" : "train.bf16",
                      *precision == "no" ? "false" : "true");
    precision_ = imported_.values.back();
    if (*precision == "fp16")
      file_.notice("mixed_precision", fmt::format("mixed_precision: fp16: {}", kFp16IsBf16));
  }

  void read_distributed_type() {
    const std::optional<std::string> type = file_.word("distributed_type");
    if (!type || *type == "no") return;
    // These values only say that there are several processes, not which state they share.
    if (*type == "multi_gpu" || *type == "multi_cpu")
      file_.give_weakly("distributed_type", "parallel.strategy", "ddp");
    else if (*type == "deepspeed")
      read_deepspeed_section();
    else if (*type == "fsdp")
      read_fsdp_section();
    else
      file_.refuse("distributed_type",
                   fmt::format("distributed_type: {} is not supported",
                               file_.find("distributed_type")->text),
                   "NO, MULTI_GPU, MULTI_CPU, DEEPSPEED or FSDP");
  }

  void read_fsdp_section() {
    if (file_.find(kFsdp + "sharding_strategy") == nullptr &&
        file_.find(kFsdp + "reshard_after_forward") == nullptr)
      file_.give("distributed_type", "parallel.strategy", "zero3");
    read_fsdp_keys(file_, kFsdp);
  }

  void read_deepspeed_section() {
    const std::string file_key = kDeepSpeed + "deepspeed_config_file";
    if (const Node* const named = file_.find(file_key))
      facts_ = settings::read_deepspeed(*named, file_key, imported_, errors_);
    const std::string stage_key = kDeepSpeed + "zero_stage";
    const std::optional<int64_t> stage = file_.integer(stage_key);
    if (stage && (*stage < 0 || *stage > 3))
      return file_.refuse(stage_key, fmt::format("{}: wanted 0 to 3, found {}", stage_key, *stage));
    if (stage)
      file_.give(stage_key, "parallel.strategy",
                 *stage == 0 ? "ddp" : fmt::format("zero{}", *stage));
    read_offload();
  }

  void read_offload() {
    std::string offload;
    std::string by;
    for (const char* what : {"optimizer", "param"}) {
      const std::string key = fmt::format("{}offload_{}_device", kDeepSpeed, what);
      const std::string device = file_.word(key).value_or("none");
      if (device == "cpu") {
        offload = *what == 'o' ? "optimizer" : "parameters";
        by = key;
      } else if (device != "none") {
        file_.refuse(key, fmt::format("{}: {} is not supported", key, device),
                     "use cpu for host memory; offload to disk is not supported");
      }
    }
    if (!offload.empty()) file_.give(by, "parallel.offload", offload);
  }

  PeerFile file_;
  LaunchRequest& launch_request_;
  config::Imported& imported_;
  config::ErrorList& errors_;
  DeepSpeedFacts facts_;
  std::optional<config::ImportedValue> precision_;
};

}  // namespace

DeepSpeedFacts read_accelerate(const Node& value, const std::string& key,
                               LaunchRequest& launch_request, config::Imported& imported,
                               config::ErrorList& errors) {
  if (value.kind == NodeKind::Map)
    return AccelerateReader(without_inactive_sections(value, imported), launch_request, imported,
                            errors)
        .read();
  const std::filesystem::path path = config::find_named_file(value, key);
  const Node root = path.extension() == ".json" ? config::load_hjson(path, &errors)
                                                : config::load_yaml(path, &errors);
  imported.notices.push_back(
      fmt::format("{}: {}: settings are read from {}", value.where(), key, path.string()));
  return AccelerateReader(without_inactive_sections(root, imported), launch_request, imported,
                          errors)
      .read();
}

}  // namespace convoy::settings
