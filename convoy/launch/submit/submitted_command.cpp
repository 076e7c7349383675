// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/submit/submitted_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace {

std::string file_name(const std::string& word) {
  return std::filesystem::path(word).filename().string();
}

bool is_one_of(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The module of `python -u -m MODULE ...`; empty when Python is given a script.
std::string python_module(const std::vector<std::string>& command) {
  for (size_t at = 1; at < command.size() && command[at].starts_with('-'); ++at)
    if (command[at] == "-m" && at + 1 < command.size()) return command[at + 1];
  return "";
}

// A shell or its script may start launchers itself.
bool may_start_launchers(const std::string& program) {
  return program == "convoy" || program.ends_with(".sh") ||
         is_one_of(program, {"bash", "sh", "dash", "zsh", "ksh", "env"});
}

std::string advice(const std::string& launcher) {
  if (launcher == "torchrun")
    return "use `convoy launch` instead of torchrun: it takes the same flags and asks ranks to "
           "save";
  return fmt::format(
      "use `convoy launch` instead of {}: `convoy launch train.py` starts --ranks ranks on each "
      "node and asks them to save",
      launcher);
}

}  // namespace

std::string foreign_launcher(const std::vector<std::string>& command) {
  if (command.empty()) return "";
  const std::string program = file_name(command[0]);
  if (is_one_of(program, {"torchrun", "accelerate", "deepspeed"})) return program;
  if (!program.starts_with("python")) return "";
  const std::string module = python_module(command);
  if (is_one_of(module, {"torch.distributed.run", "torch.distributed.launch",
                         "torch.distributed.launcher"}))
    return "torchrun";
  for (const char* const name : {"accelerate", "deepspeed"})
    if (module == name || module.starts_with(std::string(name) + ".")) return name;
  return "";
}

void refuse_foreign_launcher(const SubmitSettings& settings,
                             const std::vector<std::string>& command) {
  const std::string launcher = foreign_launcher(command);
  // These launchers pass on the SIGTERM that a pod gets, and Kubernetes restarts a pod whatever its
  // exit code is.
  if (launcher.empty() || settings.engine == "kubernetes") return;
  const bool wants_none = max_requeues(settings) == 0 && signal_before_seconds(settings) == 0;
  if (settings.engine == "slurm" && wants_none) return;
  std::string hint = advice(launcher);
  if (settings.engine == "slurm")
    hint += "; for a job that must not save or start again: --no-requeue --signal-before 0";
  throw ConfigError(fmt::format("{} dies of the signal that asks ranks to save, and always ends "
                                "with 1: the job would lose its work and not start again",
                                launcher),
                    {.key = "command", .hint = hint});
}

std::vector<std::string> submit_warnings(const SubmitSettings& settings,
                                         const std::vector<std::string>& command) {
  std::vector<std::string> warnings;
  const std::string launcher = foreign_launcher(command);
  const std::string program = file_name(command.at(0));
  if (launcher == "torchrun" && settings.engine == "kubernetes")
    warnings.push_back(
        "torchrun always ends with 1, so Kubernetes also restarts jobs that can only fail again; "
        "use `convoy launch` instead, which takes the same flags");
  const bool one_process = settings.nproc_per_node != "1" && !settings.task_per_rank &&
                           launcher != "torchrun" && !may_start_launchers(program);
  if (one_process)
    warnings.push_back(
        fmt::format("`{}` is started once on each node: --ranks {} is for launchers; put `convoy "
                    "launch` before it, or give --task-per-rank",
                    program, settings.nproc_per_node));
  std::error_code unreadable;
  if (!settings.hostfile.empty() && !std::filesystem::exists(settings.hostfile, unreadable))
    warnings.push_back(
        fmt::format("--hostfile {}: the file does not exist here", settings.hostfile));
  return warnings;
}

}  // namespace convoy::launch
