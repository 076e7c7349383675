// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/foreign_launchers.h"

#include <fmt/format.h>

#include <map>

#include "convoy/base/error.h"
#include "convoy/launch/submit/quoting.h"

namespace convoy::apps {
namespace {

constexpr const char* kExample = "convoy launch --nproc-per-node 2 train.py";

// By the flag's name with dashes.
const std::map<std::string, std::string>& flag_hints() {
  static const std::map<std::string, std::string> kHints = {
      {"num-processes",
       "accelerate's --num_processes is --nproc-per-node here, the ranks of one host"},
      {"num-machines", "accelerate's --num_machines is --nnodes here"},
      {"machine-rank", "accelerate's --machine_rank is --node-rank here"},
      {"main-process-ip", "accelerate's --main_process_ip is --master-addr here"},
      {"main-process-port", "accelerate's --main_process_port is --master-port here"},
      {"multi-gpu", "a rank on each GPU: --nproc-per-node gpu"},
      {"config-file",
       "accelerate's file is not read; type what it says: num_processes is --nproc-per-node, "
       "num_machines --nnodes, machine_rank --node-rank, main_process_ip --master-addr, "
       "main_process_port --master-port, and the rest is the program's own matter"},
      {"mixed-precision",
       "the program decides that, not its launcher: give it to the program, behind its name"},
      {"num-gpus", "DeepSpeed's --num_gpus is --nproc-per-node here"},
      {"num-nodes", "DeepSpeed's --num_nodes is --nnodes here"},
      {"hostfile",
       "no host is logged in to: start the command on every host, with --nnodes, --node-rank and "
       "--rdzv-endpoint, or let `convoy submit` write the job"},
      {"include", "GPUs of this host are chosen by --gpu-ids 0,2"},
      {"n", "mpirun's -n is --nproc-per-node here"},
      {"np", "mpirun's -np is --nproc-per-node here"},
  };
  return kHints;
}

}  // namespace

std::string hint_for_command(const std::string& name, const std::vector<std::string>& arguments) {
  if (name == "torchrun")
    return fmt::format(
        "torchrun's command line goes to `convoy launch`: {}",
        arguments.empty() ? kExample : "convoy launch " + launch::shell_words(arguments));
  if (name == "python" || name == "python3")
    return fmt::format("convoy launch {}{}", name,
                       arguments.empty() ? "" : " " + launch::shell_words(arguments));
  if (name == "accelerate" || name == "deepspeed")
    return fmt::format("`convoy launch` starts ranks, with torchrun's flags: {}", kExample);
  if (name == "mpirun" || name == "mpiexec" || name == "srun")
    return fmt::format("on one host: {}; or {} ... convoy launch train.py on many", kExample, name);
  return "";
}

std::string hint_for_flag(const std::string& flag) {
  const size_t name = flag.find_first_not_of('-');
  if (name == std::string::npos || name == 0) return "";
  const auto found = flag_hints().find(config::dashed(flag.substr(name)));
  return found == flag_hints().end() ? "" : found->second;
}

std::vector<std::string> parse_launcher_flags(const std::vector<config::Section>& lists,
                                              const std::vector<std::string>& arguments,
                                              config::Positionals positionals) {
  try {
    return config::parse_flags(lists, arguments, positionals);
  } catch (const ConfigError& error) {
    const std::string& flag = error.place().key;
    const std::string hint = hint_for_flag(flag);
    if (hint.empty()) throw;
    throw ConfigError(fmt::format("unknown flag {}", flag), {.key = flag, .hint = hint});
  }
}

}  // namespace convoy::apps
