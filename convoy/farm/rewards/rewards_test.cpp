// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>

#include "convoy/core/base/error.h"
#include "convoy/farm/rewards/reward.h"

namespace convoy::rewards {
namespace {

bool never() { return false; }

settings::RewardSettings reward_of(const std::string& kind) {
  settings::RewardSettings settings;
  settings.kind = kind;
  settings.name = kind;
  return settings;
}

JudgedText answer_text(const std::string& text, std::vector<std::string> answers) {
  JudgedText judged;
  judged.prompt = "What is it?";
  judged.text = text;
  judged.answers = std::move(answers);
  judged.row_number = 12;
  judged.sample = 3;
  return judged;
}

std::vector<double> values_of(const settings::RewardSettings& settings,
                              const std::vector<JudgedText>& texts) {
  return make_reward(settings)->values(texts, never);
}

std::string error_of(const settings::RewardSettings& settings,
                     const std::vector<JudgedText>& texts) {
  try {
    values_of(settings, texts);
  } catch (const Error& error) {
    EXPECT_FALSE(error.location().hint.empty());
    return error.what();
  }
  return "no error";
}

using Numbers = std::vector<double>;

TEST(AnswerReward, RightIsOneWrongAndUnreadAreZero) {
  EXPECT_EQ(values_of(reward_of("answer"), {answer_text("So 6 * 7 = 42. The answer is 42.", {"42"}),
                                            answer_text("The answer is 41.", {"42"}),
                                            answer_text("I cannot say.", {"42"}),
                                            answer_text("\\boxed{\\frac{1}{2}}", {"3", "0.5"})}),
            (Numbers{1, 0, 0, 1}));
}

TEST(AnswerReward, ThoughtsAndTheEndOfACutTextAreNoAnswer) {
  JudgedText cut = answer_text("So the answer is 42", {"42"});
  JudgedText whole = cut;
  cut.is_truncated = true;
  JudgedText marked = answer_text("#### 42\nThis is because", {"42"});
  marked.is_truncated = true;
  JudgedText thought = answer_text("is it 42?", {"42"});
  thought.begins_in_think = true;
  EXPECT_EQ(values_of(reward_of("answer"),
                      {cut, whole, marked, thought,
                       answer_text("<think>perhaps 42</think>The answer is 7.", {"42"})}),
            (Numbers{0, 1, 1, 0, 0}));
}

TEST(AnswerReward, ARowWithoutAReferenceIsAnError) {
  EXPECT_EQ(error_of(reward_of("answer"), {answer_text("42", {"42"}), answer_text("42", {})}),
            "reward `answer`: row 12, sample 3: the row has no reference answer");
}

TEST(FormatReward, APatternMatchesTheWholeText) {
  settings::RewardSettings settings = reward_of("format");
  settings.pattern = "<answer>[0-9]+</answer>";
  EXPECT_EQ(values_of(settings, {answer_text("<answer>42</answer>", {}),
                                 answer_text("<answer>42</answer> ", {}),
                                 answer_text("<answer>x</answer>", {}), answer_text("", {})}),
            (Numbers{1, 0, 0, 0}));
  settings.pattern = "<think>.*?</think>\\s*\\d+";
  EXPECT_EQ(values_of(settings, {answer_text("<think>so</think>\n42", {}),
                                 answer_text("<think>so\nit is</think>42", {})}),
            (Numbers{1, 0}));
  settings.pattern = "(?s)" + settings.pattern;
  EXPECT_EQ(values_of(settings, {answer_text("<think>so\nit is</think>42", {})}), (Numbers{1}));
}

TEST(FormatReward, ABadPatternIsAnErrorBeforeTheFirstText) {
  settings::RewardSettings settings = reward_of("format");
  settings.pattern = "(a";
  EXPECT_EQ(error_of(settings, {}),
            "reward.pattern of reward `format`: `(a` is no regular expression: missing ): (a");
  settings.pattern = "(?=a)";
  EXPECT_NE(error_of(settings, {}).find("is no regular expression"), std::string::npos);
}

TEST(FormatReward, ASchemaAcceptsOneJsonValue) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / "reward_schema.json";
  std::ofstream(file) << R"({"type": "object", "properties": {"answer": {"type": "integer"}},
                             "required": ["answer"]})";
  settings::RewardSettings settings = reward_of("format");
  settings.schema = file;
  EXPECT_EQ(values_of(settings, {answer_text(" {\"answer\": 42}\n", {}),
                                 answer_text("{\"answer\": \"42\"}", {}),
                                 answer_text("{\"answer\": 42} so", {}), answer_text("42", {})}),
            (Numbers{1, 0, 0, 0}));
  std::ofstream(file) << R"({"pattern": "x"})";
  EXPECT_THROW(make_reward(settings), ConfigError);
}

JudgedText text_of_tokens(int64_t tokens) {
  JudgedText text = answer_text("", {});
  text.tokens = tokens;
  return text;
}

TEST(LengthReward, FallsBetweenTargetAndMost) {
  settings::RewardSettings settings = reward_of("length");
  settings.target_tokens = 100;
  settings.most_tokens = 300;
  const std::vector<JudgedText> texts = {text_of_tokens(1),   text_of_tokens(100),
                                         text_of_tokens(150), text_of_tokens(250),
                                         text_of_tokens(300), text_of_tokens(900)};
  EXPECT_EQ(values_of(settings, texts), (Numbers{1, 1, 0.75, 0.25, 0, 0}));
  // DAPO's: L_max is most_tokens, L_cache is most_tokens - target_tokens.
  settings.form = "punishment";
  EXPECT_EQ(values_of(settings, texts), (Numbers{0, 0, -0.25, -0.75, -1, -1}));
}

// The error of check_reward(), with its key.
std::string fault_of(settings::RewardSettings settings) {
  settings.key = "reward[1]";
  try {
    check_reward(settings);
  } catch (const Error& error) {
    EXPECT_FALSE(error.location().hint.empty()) << error.what();
    EXPECT_TRUE(error.location().key.starts_with("reward[1].")) << error.location().key;
    return fmt::format("{}: {}", error.location().file, error.what());
  }
  return "";
}

TEST(Rewards, WhatASettingNamesIsLookedForBeforeAnythingIsAsked) {
  const std::string folder = ::testing::TempDir();
  settings::RewardSettings format = reward_of("format");
  format.schema = folder + "reward_none.json";
  EXPECT_NE(fault_of(format).find("reward_none.json: reward[1].schema of reward `format`: "),
            std::string::npos)
      << fault_of(format);
  format.schema = folder + "reward_damaged.json";
  std::ofstream(format.schema) << "{\"type\": ";
  EXPECT_NE(fault_of(format).find("wanted a JSON schema"), std::string::npos) << fault_of(format);
  format.schema = "";
  format.pattern = "(a";
  EXPECT_EQ(fault_of(format),
            ": reward[1].pattern of reward `format`: `(a` is no regular expression: missing ): (a");
  settings::RewardSettings http = reward_of("http");
  http.url = "localhost:80/score";
  EXPECT_EQ(fault_of(http),
            ": reward[1].url of reward `http`: `localhost:80/score` is no http:// or https:// "
            "address");
  http.url = "http://127.0.0.1:1/nobody-is-asked";
  EXPECT_EQ(fault_of(http), "");
  http.url = "http://127.0.0.1:99999/score";
  EXPECT_NE(fault_of(http).find("no port of 1 to 65535"), std::string::npos) << fault_of(http);
  http.url = "http://127.0.0.1:1/nobody-is-asked";
  settings::RewardSettings judge = reward_of("judge");
  judge.url = http.url;
  judge.model = "m";
  judge.prompt = folder + "reward_none.txt";
  EXPECT_EQ(fault_of(judge),
            judge.prompt + ": reward[1].prompt of reward `judge`: there is no such file");
  judge.prompt = folder + "reward_prompt.txt";
  std::ofstream(judge.prompt) << "{{ texts }}";
  EXPECT_NE(fault_of(judge).find("reward[1].prompt of reward `judge`: "), std::string::npos);
  std::ofstream(judge.prompt) << "{{ problem }}";
  EXPECT_NE(fault_of(judge).find("the prompt does not show the text that is judged"),
            std::string::npos)
      << fault_of(judge);
  std::ofstream(judge.prompt) << "{{ text }}: {{ row.level }}, {{ row.topic }}";
  EXPECT_EQ(fault_of(judge), "");
  EXPECT_EQ(columns_of_reward(judge), (std::vector<std::string>{"level", "topic"}));
  EXPECT_TRUE(columns_of_reward(http).empty());
}

TEST(Rewards, AProgramThatIsNotThereIsFoundBeforeItIsStarted) {
  settings::RewardSettings command = reward_of("command");
  const auto fault_of_command = [&](const std::string& line) {
    command.command = line;
    return fault_of(command);
  };
  EXPECT_EQ(fault_of_command("no-such-program --fast"),
            ": reward[1].command of reward `command`: `no-such-program` could not be started: no "
            "folder of PATH has it");
  EXPECT_NE(fault_of_command("./no-such-program").find("No such file"), std::string::npos);
  EXPECT_EQ(fault_of_command("python3 reward_none.py --fast"),
            "reward_none.py: reward[1].command of reward `command`: there is no such file");
  for (const char* line : {"python3 -c 'print(1)", "python3 \"grade.py", "while read line; do"})
    EXPECT_NE(fault_of_command(line).find("the shell cannot read"), std::string::npos) << line;
  for (const char* line :
       {"while read line; do echo 1; done", "cd /tmp && no-such-program", "FAST=1 no-such-program",
        "'no such program'", "python3 -c 'print(1)'", "python3 $HOME/grade.py", "sh -c true"})
    EXPECT_EQ(fault_of_command(line), "") << line;
}

TEST(Rewards, EveryKindSaysHowItIsAsked) {
  std::set<std::string> elsewhere, lists;
  for (const std::string& kind : settings::reward_kinds()) {
    const Asking asking = asking_of(reward_of(kind));
    if (asking.is_elsewhere) elsewhere.insert(kind);
    if (asking.takes_lists) lists.insert(kind);
    EXPECT_EQ(checks_answers(reward_of(kind)), kind == "answer");
  }
  EXPECT_EQ(elsewhere, (std::set<std::string>{"command", "http", "judge"}));
  EXPECT_EQ(lists, (std::set<std::string>{"http"}));
}

TEST(Rewards, EveryKindOfTheSettingsHasAMaker) {
  for (const std::string& kind : settings::reward_kinds()) {
    settings::RewardSettings settings = reward_of(kind);
    settings.pattern = "x";
    settings.command = "true";
    try {
      EXPECT_NE(make_reward(settings), nullptr);
    } catch (const Error& error) {
      // Kinds with a server, whose address and prompt are missing here.
      EXPECT_TRUE(kind == "http" || kind == "judge") << error.what();
    }
  }
}

}  // namespace
}  // namespace convoy::rewards
