// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "convoy/core/base/nearby_files.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/farm/rewards/judged_text.h"
#include "convoy/farm/rewards/reward_kinds.h"
#include "convoy/farm/rewards/reward_program.h"
#include "convoy/machine/processes/program_check.h"
#include "convoy/machine/processes/run_child.h"

namespace convoy::rewards {
namespace {

constexpr const char* kHint =
    "the program reads one JSON line per text and writes one number per line, each flushed, in the "
    "same order";

// The shell gives these a meaning: a word with one of them is not looked into.
constexpr std::string_view kShellMarks = "|&;<>()$`\\\"'*?[]#~=%!{}\n";

// The words of a command up to the first that means more to the shell than its letters.
std::vector<std::string> plain_words(const std::string& command) {
  std::vector<std::string> words;
  std::istringstream stream(command);
  for (std::string word; stream >> word;) {
    if (word.find_first_of(kShellMarks) != std::string::npos) break;
    words.push_back(word);
  }
  return words;
}

// True for words of the shell itself, such as `while` and `cd`.
bool is_of_the_shell(const std::string& word) {
  return processes::run_child({.program = {"sh", "-c", "command -v -- \"$1\"", "sh", word}})
      .end.success();
}

// True for programs whose first argument is the file of a program.
bool runs_a_file(const std::string& program) {
  const std::string name = std::filesystem::path(program).filename();
  constexpr std::array<std::string_view, 5> kNames = {"bash", "node", "perl", "ruby", "sh"};
  return name.starts_with("python") ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

ProgramLimits limits_of(const settings::RewardSettings& settings) {
  ProgramLimits limits{.number_seconds = settings.timeout_s};
  limits.start_seconds = std::max(limits.start_seconds, settings.timeout_s);
  return limits;
}

class CommandReward final : public Reward {
 public:
  explicit CommandReward(settings::RewardSettings settings)
      : settings_(std::move(settings)), program_(settings_.command, limits_of(settings_)) {}

  void ask(std::span<const JudgedText> texts, const std::function<bool()>& stop_requested,
           const TakeValue& take) override {
    std::vector<std::string> lines;
    for (const JudgedText& text : texts) lines.push_back(line_of(json_of(text)));
    const auto fault = program_.ask(lines, take, [&] { check_stop(stop_requested); });
    if (!fault) return;
    const DataError error = error_of_text(settings_, texts[fault->text], fault->what, kHint);
    if (fault->moves_numbers) throw MisplacedNumbers(error);
    throw error;
  }

 private:
  settings::RewardSettings settings_;
  RewardProgram program_;
};

}  // namespace

std::unique_ptr<Reward> make_command_reward(const settings::RewardSettings& settings) {
  return std::make_unique<CommandReward>(settings);
}

// Lets the shell read the command without running it, and looks at the program and at the file that
// an interpreter is given. Only a run shows more of a longer command.
void check_command_reward(const settings::RewardSettings& settings) {
  const std::vector<std::string> words = plain_words(settings.command);
  with_place_of(settings, "command", [&] {
    const processes::ChildResult read =
        processes::run_child({.program = {"sh", "-n", "-c", settings.command}});
    if (!read.end.success())
      throw DataError(fmt::format("the shell cannot read `{}`: {}", settings.command,
                                  trimmed(read.errors, " \n")),
                      {.hint = "close its quotes and brackets"});
    if (words.empty()) return;
    const processes::ProgramProblem problem = processes::program_problem(words[0]);
    if (problem.any() && (words[0].find('/') != std::string::npos || !is_of_the_shell(words[0])))
      throw DataError(problem.found, {.hint = problem.to_do});
    if (words.size() < 2 || !runs_a_file(words[0]) || words[1].starts_with('-')) return;
    std::error_code ignored;
    if (!std::filesystem::exists(words[1], ignored))
      throw DataError("there is no such file",
                      {.file = words[1], .hint = unreadable_file_hint(words[1], ENOENT)});
  });
}

}  // namespace convoy::rewards
