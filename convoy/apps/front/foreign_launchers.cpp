// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/foreign_launchers.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string_view>

#include "convoy/apps/front/train_config.h"
#include "convoy/core/base/error.h"
#include "convoy/launch/submit/quoting.h"

namespace convoy::apps {
namespace {

constexpr const char* kExample = "convoy launch --ranks 2 train.py";

// Hints by the flag's name with dashes.
const std::map<std::string, std::string>& flag_hints() {
  static const std::map<std::string, std::string> kHints = {
      {"num-processes", "accelerate's --num_processes is --ranks here, the ranks of one host"},
      {"num-machines", "accelerate's --num_machines is --nnodes here"},
      {"machine-rank", "accelerate's --machine_rank is --node-rank here"},
      {"main-process-ip", "accelerate's --main_process_ip is --master-addr here"},
      {"main-process-port", "accelerate's --main_process_port is --master-port here"},
      {"multi-gpu", "a rank on each GPU: --ranks gpu"},
      {"config-file",
       "`convoy train` reads accelerate's file: --accelerate-config FILE. `convoy launch` takes "
       "flags: "
       "num_processes is --ranks, num_machines --nnodes, machine_rank --node-rank, main_process_ip "
       "--master-addr, "
       "main_process_port --master-port, and the other settings belong to the program"},
      {"mixed-precision", "this is a setting of the program: give it after the program's name"},
      {"num-gpus", "DeepSpeed's --num_gpus is --ranks here"},
      {"num-nodes", "DeepSpeed's --num_nodes is --nnodes here"},
      {"hostfile",
       "Convoy does not log in to hosts: start the command on every host, with --nnodes, "
       "--node-rank and "
       "--rdzv-endpoint, or let `convoy submit` write the job"},
      {"include", "GPUs of this host are chosen by --gpu-ids 0,2"},
      {"n", "mpirun's -n is --ranks here"},
      {"np", "mpirun's -np is --ranks here"},
  };
  return kHints;
}

// Convoy's command for a script or a make target: "convoy COMMAND WORDS FLAGS", where WORDS are the
// words typed behind it, or an example.
struct Counterpart {
  const char* command;
  const char* example;
  const char* flags = "";

  std::string line(std::vector<std::string> arguments) const {
    for (std::string& word : arguments) word = without_config_name(std::move(word));
    const std::string words = arguments.empty() ? example : launch::shell_words(arguments);
    return fmt::format("convoy {}{}{}{}{}", command, words.empty() ? "" : " ", words,
                       *flags == 0 ? "" : " ", flags);
  }
};

// SFT-Play's make targets that are no commands here, and the scripts of the guides for torchrun,
// for data sets and for sweeps over seeds.
const std::map<std::string, Counterpart>& counterparts() {
  constexpr auto kConfig = "CONFIG.yaml";
  constexpr auto kRun = "--model MODEL --adapter RUN/adapter";
  static const std::map<std::string, Counterpart> kCounterparts = {
      {"train-bnb", {"train", "configs/run_bnb.yaml"}},
      {"train-unsloth", {"train", "configs/run_unsloth.yaml"}},
      {"dapt-train", {"train", "configs/run_dapt.yaml"}},
      {"train-distributed", {"train", kConfig, "--ranks auto"}},
      {"train-deepspeed", {"train", kConfig, "--ranks auto --deepspeed FILE.json"}},
      {"train-with-tb", {"train", kConfig, "--tensorboard"}},
      {"train-and-watch", {"train", kConfig, "--tensorboard-stays"}},
      {"train-bnb-tb", {"train", "configs/run_bnb.yaml", "--tensorboard-stays"}},
      {"train-unsloth-tb", {"train", "configs/run_unsloth.yaml", "--tensorboard-stays"}},
      {"train-distributed-tb", {"train", kConfig, "--ranks auto --tensorboard-stays"}},
      {"train-deepspeed-tb",
       {"train", kConfig, "--ranks auto --deepspeed FILE.json --tensorboard-stays"}},
      {"setup-accelerate", {"train", kConfig, "--ranks auto --placement"}},
      {"download-model", {"models fetch", "ORG/NAME"}},
      {"style", {"data style", "ROWS.jsonl STYLED.jsonl --style TEXT"}},
      {"render", {"data render", "ROWS.jsonl RENDERED.jsonl --model MODEL"}},
      {"eval-val", {"eval", kConfig, "--generate --split val"}},
      {"eval-test", {"eval", kConfig, "--generate --split test"}},
      {"eval-quick", {"eval", kConfig, "--generate --split val --limit 200"}},
      {"eval-full", {"eval", kConfig, "--generate --split val --limit 0"}},
      {"infer", {"generate", kRun, "--interactive"}},
      {"infer-interactive", {"generate", kRun, "--interactive"}},
      {"infer-batch", {"generate", kRun, "--prompts ROWS.jsonl --output ANSWERS.jsonl"}},
      {"merge-bf16", {"models merge", kRun, "--output FOLDER --dtype bf16"}},
      {"run-nvidia-all.sh", {"launch --ranks gpu", "train.py"}},
      {"run-amd-all.sh", {"launch --ranks gpu", "train.py"}},
      {"run-distributed.py", {"process", "--preset process-standard"}},
      {"run-distributed-pipeline.py", {"process", "--preset process-standard"}},
      {"run-distributed.sh", {"process", "--preset process-standard"}},
      {"run-distributed.bat", {"process", "--preset process-standard"}},
      {"run-distributed-low-memory.sh", {"process", "--preset process-low-memory"}},
      {"run-distributed-low-memory.bat", {"process", "--preset process-low-memory"}},
      {"main-multi-gpu.py", {"sweep ssm", "--num_seeds 100 --max_gpus 4"}},
      {"width-experiments.py", {"sweep mf", "--config FILE.json"}},
      {"depth-experiments.py", {"sweep mf", "--config FILE.json"}},
      {"test-multi-gpu.py", {"sweep check", ""}},
      {"monitor-gpu.py", {"gpus watch --schema seed", "--interval 5 --output gpu_usage.csv"}},
  };
  return kCounterparts;
}

std::string counterpart_hint(const std::string& name, const std::vector<std::string>& arguments) {
  if (std::string hint = hint_for_script(name, arguments); !hint.empty()) return hint;
  // Any other script is a program to launch.
  if (!name.ends_with(".py") && !name.ends_with(".sh")) return "";
  std::vector<std::string> words = {name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return Counterpart{"launch --ranks gpu", ""}.line(words);
}

}  // namespace

std::string hint_for_script(const std::string& name, const std::vector<std::string>& arguments) {
  const std::string file = std::filesystem::path(name).filename().string();
  const auto found = counterparts().find(config::dashed(file));
  if (found == counterparts().end()) return "";
  return fmt::format("{} is this here: {}", name, found->second.line(arguments));
}

std::string hint_for_command(const std::string& name, const std::vector<std::string>& arguments) {
  if (name == "torchrun")
    return fmt::format(
        "torchrun's command line goes to `convoy launch`: {}",
        arguments.empty() ? kExample : "convoy launch " + launch::shell_words(arguments));
  const bool is_python = name == "python" || name == "python3";
  if (is_python && !arguments.empty()) {
    const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    if (std::string hint = hint_for_script(arguments.front(), rest); !hint.empty()) return hint;
  }
  if (is_python)
    return fmt::format("convoy launch {}{}", name,
                       arguments.empty() ? "" : " " + launch::shell_words(arguments));
  if (name == "accelerate" || name == "deepspeed")
    return fmt::format("`convoy launch` starts ranks, with torchrun's flags: {}", kExample);
  if (name == "mpirun" || name == "mpiexec" || name == "srun")
    return fmt::format("on one host: {}; or {} ... convoy launch train.py on many", kExample, name);
  return counterpart_hint(name, arguments);
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
    const std::string& flag = error.location().key;
    const std::string hint = hint_for_flag(flag);
    // A known flag had a wrong value: keep that error.
    if (hint.empty() || !error.sentence().starts_with("unknown flag")) throw;
    throw ConfigError(fmt::format("unknown flag {}", flag), {.key = flag, .hint = hint});
  }
}

}  // namespace convoy::apps
