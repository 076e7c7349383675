// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/peers/foreign_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "convoy/apps/front/command.h"
#include "convoy/launch/submit/quoting.h"

namespace convoy::apps {
namespace {

bool has_word(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The word after a flag, or in `--flag=WORD`.
std::string word_behind(const Words& words, const std::string& flag) {
  for (size_t place = 0; place < words.size(); ++place) {
    if (words[place] == flag && place + 1 < words.size()) return words[place + 1];
    if (words[place].starts_with(flag + "=")) return words[place].substr(flag.size() + 1);
  }
  return "";
}

std::string this_is_here(const std::string& name, const std::string& command) {
  return fmt::format("{} is this here: {}", name, command);
}

std::string of_gpu_tool(const std::string& name, const Words& words) {
  const auto is_loop = [](const std::string& word) {
    return word == "-l" || word.starts_with("--loop") || word == "-lms";
  };
  if (has_word(words, "topo") || has_word(words, "--showtopo"))
    return this_is_here(name, "convoy gpus topology");
  if (has_word(words, "dmon") || has_word(words, "pmon"))
    return this_is_here(name, "convoy gpus watch --dmon");
  if (std::any_of(words.begin(), words.end(), is_loop))
    return this_is_here(name, "convoy gpus watch");
  return this_is_here(name, "convoy gpus show");
}

std::string of_gpu_monitor(const std::string& name, const Words&) {
  return this_is_here(name, "convoy gpus watch");
}

// Advice for `watch -n 1 nvidia-smi`.
std::string of_watch(const std::string& name, const Words& words) {
  const std::string seconds = word_behind(words, "-n");
  return this_is_here(name, seconds.empty()
                                ? "convoy gpus watch"
                                : "convoy gpus watch --interval " + launch::shell_word(seconds));
}

std::string of_tensorboard(const std::string&, const Words& words) {
  Words line = {"tensorboard"};
  line.insert(line.end(), words.begin(), words.end());
  if (words.empty()) line.insert(line.end(), {"--logdir", "runs"});
  return fmt::format(
      "TensorBoard is a program of its own, typed without convoy: {}; curves without "
      "it: convoy runs serve; beside a run: convoy train CONFIG.yaml --tensorboard",
      launch::shell_words(line));
}

std::string of_packages(const std::string&, const Words&) {
  return "Convoy needs no Python package to run; `convoy doctor` says what is missing, "
         "docs/how-to/install.md how to install";
}

std::string of_chmod(const std::string&, const Words&) {
  return "nothing has to be made executable: convoy is one program, and `convoy --help` lists its "
         "commands";
}

std::string of_export(const std::string&, const Words& words) {
  return fmt::format("a variable stands before the command: {} convoy COMMAND ...",
                     words.empty() ? "NAME=VALUE" : launch::shell_words(words));
}

std::string of_kill(const std::string&, const Words&) {
  return "nothing of a job stays behind: Ctrl-C, or a signal to its `convoy`, ends its ranks too; "
         "`convoy runs list` shows what runs";
}

std::string of_hub(const std::string& name, const Words& words) {
  const auto action = std::find(words.begin(), words.end(), "download");
  const std::string repository =
      action == words.end() || action + 1 == words.end() ? "ORG/NAME" : *(action + 1);
  const bool is_data = word_behind(words, "--repo-type") == "dataset";
  return this_is_here(name, fmt::format("convoy {} fetch {}", is_data ? "data" : "models",
                                        launch::shell_word(repository)));
}

std::string of_queue(const std::string& name, const Words&) {
  const char* const engine = name == "kubectl" ? "kubernetes" : "slurm";
  return fmt::format(
      "`convoy submit --engine {} --go -- COMMAND ...` writes the job and submits it", engine);
}

using Hint = std::string (*)(const std::string& name, const Words& words);

const std::map<std::string, Hint>& programs() {
  static const std::map<std::string, Hint> kPrograms = {
      {"nvidia-smi", of_gpu_tool}, {"rocm-smi", of_gpu_tool},   {"amd-smi", of_gpu_tool},
      {"rocminfo", of_gpu_tool},   {"nvtop", of_gpu_monitor},   {"nvitop", of_gpu_monitor},
      {"gpustat", of_gpu_monitor}, {"watch", of_watch},         {"tensorboard", of_tensorboard},
      {"pip", of_packages},        {"pip3", of_packages},       {"conda", of_packages},
      {"uv", of_packages},         {"source", of_packages},     {"chmod", of_chmod},
      {"export", of_export},       {"pkill", of_kill},          {"kill", of_kill},
      {"killall", of_kill},        {"huggingface-cli", of_hub}, {"hf", of_hub},
      {"sbatch", of_queue},        {"kubectl", of_queue},
  };
  return kPrograms;
}

}  // namespace

std::string hint_for_program(const std::string& name, const Words& arguments) {
  const auto found = programs().find(name);
  return found == programs().end() ? "" : found->second(name, arguments);
}

}  // namespace convoy::apps
