// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/peers/foreign_launchers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/peers/foreign_programs.h"
#include "convoy/apps/front/peers/guide_words.h"
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

// The flags of accelerate and DeepSpeed that have another name here.
const std::map<std::string, std::string>& renamed_flags() {
  static const std::map<std::string, std::string> kNames = {
      {"--num-processes", "--ranks"},    {"--num-machines", "--nnodes"},
      {"--machine-rank", "--node-rank"}, {"--main-process-ip", "--master-addr"},
      {"--num-gpus", "--ranks"},         {"--main-process-port", "--master-port"},
      {"--num-nodes", "--nnodes"}};
  return kNames;
}

// The words of `accelerate launch` or `deepspeed` for `convoy launch`. Flags after the script
// belong to the script.
Words with_own_flags(const Words& arguments) {
  Words words;
  bool is_script = false;
  for (const std::string& word : arguments) {
    const size_t equals = std::min(word.find('='), word.size());
    const auto found = renamed_flags().find(config::dashed(word.substr(0, equals)));
    is_script = is_script || word.ends_with(".py") || word.ends_with(".sh");
    words.push_back(
        is_script || found == renamed_flags().end() ? word : found->second + word.substr(equals));
  }
  return words;
}

std::string launch_line(const Words& words) {
  return words.empty() ? kExample : "convoy launch " + launch::shell_words(words);
}

std::string of_torchrun(const Words& arguments) {
  std::string hint =
      fmt::format("torchrun's command line goes to `convoy launch`: {}", launch_line(arguments));
  // Guides start main_multi_gpu.py: the hint also names the Convoy command that does its work.
  const auto script = std::find_if(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word.ends_with("main_multi_gpu.py");
  });
  if (script == arguments.end()) return hint;
  Words words(arguments.begin(), script);
  words.insert(words.end(), script + 1, arguments.end());
  return fmt::format("{}; without Python {}", hint, hint_for_script(*script, words));
}

std::string of_accelerate(const Words& arguments) {
  const std::string action = arguments.empty() ? "" : arguments.front();
  if (action == "config")
    return "nothing is configured in advance: `convoy train CONFIG.yaml --ranks auto --placement` "
           "shows what starts, and --accelerate-config FILE reads what `accelerate config` wrote";
  if (action == "env" || action == "test") return "this is here: convoy doctor";
  if (action == "estimate-memory") return "this is here: convoy config check CONFIG.yaml";
  const Words rest(arguments.begin() + (action == "launch" ? 1 : 0), arguments.end());
  return fmt::format("`convoy launch` starts ranks, with torchrun's flags: {}",
                     launch_line(with_own_flags(rest)));
}

std::string of_deepspeed(const Words& arguments) {
  return fmt::format("`convoy launch` starts ranks, with torchrun's flags: {}",
                     launch_line(with_own_flags(arguments)));
}

// Returns "main.py" for "src.main".
std::string script_of_module(const std::string& module) {
  const size_t dot = module.rfind('.');
  return module.substr(dot == module.npos ? 0 : dot + 1) + ".py";
}

std::string of_python(const std::string& name, const Words& arguments) {
  const auto first = std::find_if(arguments.begin(), arguments.end(),
                                  [](const std::string& word) { return !word.starts_with('-'); });
  const bool is_module =
      first != arguments.begin() && first != arguments.end() && *(first - 1) == "-m";
  if (is_module && (*first == "torch.distributed.run" || *first == "torch.distributed.launch"))
    return of_torchrun({first + 1, arguments.end()});
  if (is_module && first->starts_with("accelerate."))
    return of_accelerate({first + 1, arguments.end()});
  if (first != arguments.end()) {
    const std::string script = is_module ? script_of_module(*first) : *first;
    if (std::string hint = hint_for_script(script, {first + 1, arguments.end()}); !hint.empty())
      return hint;
  }
  return fmt::format("convoy launch {}{}", name,
                     arguments.empty() ? "" : " " + launch::shell_words(arguments));
}

// True for NAME=VALUE.
bool is_assignment(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == word.npos || (word[0] >= '0' && word[0] <= '9')) return false;
  return std::all_of(
      word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
      [](unsigned char letter) { return std::isalnum(letter) != 0 || letter == '_'; });
}

// `CUDA_VISIBLE_DEVICES=0,1 python main.py`: the variables belong before `convoy`.
std::string of_variables(const std::string& first, const Words& arguments) {
  const auto command =
      std::find_if_not(arguments.begin(), arguments.end(),
                       [](const std::string& word) { return is_assignment(word); });
  Words variables = {first};
  variables.insert(variables.end(), arguments.begin(), command);
  const std::string before = launch::shell_words(variables);
  if (command == arguments.end())
    return fmt::format("a variable stands before the command: {} convoy COMMAND ...", before);
  const Words rest(command + 1, arguments.end());
  const std::string own = config::dashed(*command);
  const bool is_own = std::any_of(commands().begin(), commands().end(),
                                  [&own](const Command& one) { return one.name == own; });
  const std::string hint = is_own ? "convoy " + launch::shell_words(Words(command, arguments.end()))
                                  : hint_for_command(*command, rest);
  if (hint.starts_with("convoy ")) return fmt::format("{} {}", before, hint);
  return fmt::format("a variable stands before the command: {} convoy ...{}{}", before,
                     hint.empty() ? "" : "; ", hint);
}

// Returns the hint for a known script. `convoy launch` starts any other script.
std::string of_script(const std::string& name, const Words& arguments) {
  if (std::string hint = hint_for_script(name, arguments); !hint.empty()) return hint;
  if (!name.ends_with(".py") && !name.ends_with(".sh")) return "";
  Words words = {"--ranks", "gpu", name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return launch_line(words);
}

// `bash run_all.sh`: the hint is about the script, not about the shell.
std::string of_shell(const std::string& name, const Words& arguments) {
  const auto script = std::find_if(arguments.begin(), arguments.end(),
                                   [](const std::string& word) { return !word.starts_with('-'); });
  if (script != arguments.end())
    if (std::string hint = hint_for_script(*script, {script + 1, arguments.end()}); !hint.empty())
      return hint;
  Words words = {name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return launch_line(words);
}

}  // namespace

std::string hint_for_command(const std::string& name, const Words& arguments) {
  if (is_assignment(name)) return of_variables(name, arguments);
  const std::string program = std::filesystem::path(name).filename().string();
  if (program == "torchrun") return of_torchrun(arguments);
  if (program == "accelerate") return of_accelerate(arguments);
  if (program == "deepspeed") return of_deepspeed(arguments);
  if (program == "python" || program.starts_with("python3")) return of_python(name, arguments);
  if (program == "bash" || program == "sh") return of_shell(program, arguments);
  if (program == "make") return hint_for_make(arguments);
  if (name == "mpirun" || name == "mpiexec" || name == "srun")
    return fmt::format("on one host: {}; or {} ... convoy launch train.py on many", kExample, name);
  if (std::string hint = hint_for_program(program, arguments); !hint.empty()) return hint;
  return of_script(name, arguments);
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
