// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/peers/guide_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/train/train_config.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/core/config/flags.h"
#include "convoy/core/settings/har_flags.h"
#include "convoy/launch/submit/quoting.h"

namespace convoy::apps {
namespace {

// "--a_b=c" is the flag "--a-b".
std::string flag_of(const std::string& word) {
  return word.starts_with("--") ? config::dashed(word.substr(0, word.find('='))) : "";
}

bool has_flag(const Words& words, std::string_view flag) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return flag_of(word) == flag; });
}

// Convoy's command for a script or a make target: "convoy COMMAND WORDS FLAGS", where WORDS are the
// words that the user typed after the script, or `example` without such words. FLAGS are left out
// when the typed words contain the first flag.
struct Counterpart {
  std::string_view command;
  std::string_view example;
  std::string_view flags = {};

  std::string line(std::vector<std::string> arguments) const {
    for (std::string& word : arguments) word = without_config_name(std::move(word));
    const std::string words =
        arguments.empty() ? std::string(example) : launch::shell_words(arguments);
    const bool adds = !flags.empty() && !has_flag(arguments, flags.substr(0, flags.find(' ')));
    return fmt::format("convoy {}{}{}{}{}", command, words.empty() ? "" : " ", words,
                       adds ? " " : "", adds ? flags : "");
  }
};

// SFT-Play's make targets that are no commands here, and the scripts of the guides for torchrun,
// for data sets and for sweeps over seeds: name | command | example | flags.
constexpr std::string_view kCounterparts = R"(
train-bnb | train | configs/run_bnb.yaml |
train-unsloth | train | configs/run_unsloth.yaml |
dapt-train | train | configs/run_dapt.yaml |
train-distributed | train | CONFIG.yaml | --ranks auto
train-deepspeed | train | CONFIG.yaml | --ranks auto --deepspeed FILE.json
train-with-tb | train | CONFIG.yaml | --tensorboard
train-and-watch | train | CONFIG.yaml | --tensorboard-stays
train-bnb-tb | train | configs/run_bnb.yaml | --tensorboard-stays
train-unsloth-tb | train | configs/run_unsloth.yaml | --tensorboard-stays
train-distributed-tb | train | CONFIG.yaml | --ranks auto --tensorboard-stays
train-deepspeed-tb | train | CONFIG.yaml | --ranks auto --deepspeed FILE.json --tensorboard-stays
setup-accelerate | train | CONFIG.yaml | --ranks auto --placement
download-model | models fetch | ORG/NAME |
style | data style | ROWS.jsonl STYLED.jsonl --style TEXT |
render | data render | ROWS.jsonl RENDERED.jsonl --model MODEL |
eval-val | eval | CONFIG.yaml | --generate --split val
eval-test | eval | CONFIG.yaml | --generate --split test
eval-quick | eval | CONFIG.yaml | --generate --split val --limit 200
eval-full | eval | CONFIG.yaml | --generate --split val --limit 0
infer | generate | --model MODEL --adapter RUN/adapter | --interactive
infer-interactive | generate | --model MODEL --adapter RUN/adapter | --interactive
infer-batch | generate | --model MODEL --adapter RUN/adapter | --prompts ROWS.jsonl --output ANSWERS.jsonl
merge-bf16 | models merge | --model MODEL --adapter RUN/adapter | --output FOLDER --dtype bf16
run-nvidia-all.sh | launch --ranks gpu | train.py |
run-amd-all.sh | launch --ranks gpu | train.py |
run-distributed-low-memory.sh | process |  | --preset process-low-memory
run-distributed-low-memory.bat | process |  | --preset process-low-memory
width-experiments.py | sweep mf | --config FILE.json |
depth-experiments.py | sweep mf | --config FILE.json |
test-multi-gpu.py | sweep check |  |
monitor-gpu.py | gpus watch --schema seed | --interval 5 --output gpu_usage.csv |
)";

constexpr Counterpart kProcessLowMemory = {"process", "", "--preset process-low-memory"};

// Splits a row at its bars (|). Missing cells are empty.
std::array<std::string_view, 4> cells_of(std::string_view row) {
  std::array<std::string_view, 4> cells;
  for (std::string_view& cell : cells) {
    const size_t bar = std::min(row.find('|'), row.size());
    cell = trimmed(row.substr(0, bar), " ");
    row.remove_prefix(std::min(bar + 1, row.size()));
  }
  return cells;
}

const std::map<std::string_view, Counterpart>& counterparts() {
  static const std::map<std::string_view, Counterpart> kByName = [] {
    std::map<std::string_view, Counterpart> by_name;
    for (std::string_view rest = kCounterparts; !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      if (const auto [name, command, example, flags] = cells_of(rest.substr(0, end)); !name.empty())
        by_name[name] = {command, example, flags};
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return by_name;
  }();
  return kByName;
}

constexpr Counterpart kProcess = {"process", "", "--preset process-standard"};
constexpr Counterpart kSweep = {"sweep ssm", "--num_seeds 100 --max_gpus 4"};
constexpr Counterpart kRecognition = {"train examples/har/har.yaml", "--multi-gpu ddp"};

// True when a word is a flag of the programs that recognise activities.
bool is_recognition(const Words& arguments) {
  settings::HarFlags har;
  const config::Section list = config::list_fields(har);
  return has_flag(arguments, "--gpu-ids") ||
         std::any_of(list.fields.begin(), list.fields.end(), [&](const config::Field& field) {
           const std::string name = config::dashed(field.name);
           return has_flag(arguments, "--" + name) || has_flag(arguments, "--no-" + name);
         });
}

// Hints for scripts, files and make targets that need no command here, by name.
const std::map<std::string, std::string>& needless_scripts() {
  static const std::map<std::string, std::string> kTexts = {
      {"make-scripts-executable.sh",
       "nothing has to be made executable: convoy is one program, and `convoy --help` lists its "
       "commands"},
      {"QUICK-REFERENCE.md",
       "`convoy --help` lists the commands, docs/reference/cheat-sheet.md has them on one page"},
      {"tb-open",
       "curves without TensorBoard: convoy runs serve; TensorBoard beside a run: convoy train "
       "CONFIG.yaml --tensorboard-stays, at http://localhost:6006"},
  };
  return kTexts;
}

// Two guides have a main_multi_gpu.py; its flags tell which one is meant.
std::string hint_for_main(const std::string& name, const Words& arguments) {
  if (is_recognition(arguments))
    return fmt::format("{} is this here: {}", name, kRecognition.line(arguments));
  const std::string sweep = fmt::format("{} is this here: {}", name, kSweep.line(arguments));
  return arguments.empty()
             ? fmt::format("{}; of the activity recognition: {}", sweep, kRecognition.line({}))
             : sweep;
}

const Counterpart* find_counterpart(const std::string& file, const Words& arguments) {
  const bool processes = file == "run-distributed.py" || file == "run-distributed-pipeline.py" ||
                         file == "run-distributed.sh" || file == "run-distributed.bat";
  if (processes) return has_flag(arguments, "--low-memory") ? &kProcessLowMemory : &kProcess;
  const auto found = counterparts().find(file);
  return found == counterparts().end() ? nullptr : &found->second;
}

}  // namespace

std::string hint_for_script(const std::string& name, const Words& arguments) {
  const std::string file = config::dashed(std::filesystem::path(name).filename().string());
  if (file == "main-multi-gpu.py") return hint_for_main(name, arguments);
  if (const auto text = needless_scripts().find(file); text != needless_scripts().end())
    return text->second;
  const Counterpart* const found = find_counterpart(file, arguments);
  return found == nullptr ? "" : fmt::format("{} is this here: {}", name, found->line(arguments));
}

std::string hint_for_make(const Words& arguments) {
  const auto target = std::find_if(arguments.begin(), arguments.end(), [](const std::string& word) {
    return !word.starts_with('-') && word.find('=') == std::string::npos;
  });
  if (target != arguments.end()) {
    Words variables(arguments.begin(), target);
    variables.insert(variables.end(), target + 1, arguments.end());
    if (std::string hint = hint_for_script(*target, variables); !hint.empty()) return hint;
  }
  return fmt::format("SFT-Play's targets are in examples/sft-play: make -C examples/sft-play {}",
                     arguments.empty() ? "help" : launch::shell_words(arguments));
}

}  // namespace convoy::apps
