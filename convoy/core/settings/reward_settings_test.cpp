// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/reward_settings.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::settings {
namespace {

std::vector<RewardSettings> read(const std::string& json) {
  config::JsonList list;
  list.json = json;
  return rewards_of(list);
}

// The key at fault and the text of the error.
void expect_refused(const std::string& json, const std::string& key, const std::string& part) {
  SCOPED_TRACE(json);
  try {
    read(json);
    ADD_FAILURE() << "was taken";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.location().key, key);
    EXPECT_FALSE(error.location().hint.empty());
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(RewardSettings, EachKindReadsItsKeys) {
  const auto rewards = read(R"([
    {"kind": "answer"},
    {"kind": "format", "schema": "a.json", "weight": 0.2},
    {"kind": "format", "pattern": "[0-9]+", "name": "digits"},
    {"kind": "length", "target_tokens": 100, "most_tokens": 200, "form": "punishment"},
    {"kind": "command", "command": "python grade.py", "timeout_s": 2.5},
    {"kind": "http", "url": "http://127.0.0.1:9/score", "weight": -1},
    {"kind": "judge", "url": "http://h/v1", "model": "m", "prompt": "p.txt", "max_new_tokens": 64}
  ])");
  ASSERT_EQ(rewards.size(), 7u);
  EXPECT_EQ(rewards[0].kind, "answer");
  EXPECT_EQ(rewards[0].weight, 1);
  EXPECT_EQ(rewards[0].timeout_s, 60);
  EXPECT_EQ(rewards[1].schema, "a.json");
  EXPECT_EQ(rewards[1].weight, 0.2);
  EXPECT_EQ(rewards[2].pattern, "[0-9]+");
  EXPECT_EQ(rewards[3].target_tokens, 100);
  EXPECT_EQ(rewards[3].most_tokens, 200);
  EXPECT_EQ(rewards[3].form, "punishment");
  EXPECT_EQ(rewards[4].command, "python grade.py");
  EXPECT_EQ(rewards[4].timeout_s, 2.5);
  EXPECT_EQ(rewards[5].url, "http://127.0.0.1:9/score");
  EXPECT_EQ(rewards[5].weight, -1);
  EXPECT_EQ(rewards[6].model, "m");
  EXPECT_EQ(rewards[6].prompt, "p.txt");
  EXPECT_EQ(rewards[6].max_new_tokens, 64);
}

TEST(RewardSettings, ANameLeftOutIsTheKindAndANumber) {
  const auto rewards = read(R"([{"kind": "answer"}, {"kind": "answer"}, {"kind": "answer"},
                               {"kind": "answer", "name": "answer-2"}])");
  EXPECT_EQ(rewards[0].name, "answer");
  EXPECT_EQ(rewards[1].name, "answer-3");
  EXPECT_EQ(rewards[2].name, "answer-4");
  EXPECT_EQ(rewards[3].name, "answer-2");
}

TEST(RewardSettings, AMistakeNamesItsKey) {
  expect_refused(R"([{"kind": "anser"}])", "reward[0].kind", "did you mean `answer`");
  expect_refused(R"([{"weight": 1}])", "reward[0].kind", "found nothing");
  expect_refused(R"([{"kind": "answer"}, {"kind": "command", "comand": "x"}])", "reward[1].comand",
                 "did you mean `command`");
  expect_refused(R"([{"kind": "answer", "schema": "a.json"}])", "reward[0].schema",
                 "kind answer has no such key");
  expect_refused(R"([{"kind": "command"}])", "reward[0].command", "missing");
  expect_refused(R"([{"kind": "command", "command": ["x"]}])", "reward[0].command",
                 "wanted a text");
  expect_refused(R"([{"kind": "http", "url": ""}])", "reward[0].url", "wanted a text");
  expect_refused(R"([{"kind": "judge", "url": "u", "model": "m"}])", "reward[0].prompt", "missing");
  expect_refused(R"([{"kind": "answer", "weight": "1"}])", "reward[0].weight", "wanted a number");
  expect_refused(R"([{"kind": "http", "url": "u", "timeout_s": 0}])", "reward[0].timeout_s",
                 "at least");
  expect_refused(R"([{"kind": "answer", "name": "a"}, {"kind": "answer", "name": "a"}])",
                 "reward[1].name", "another reward is called `a` too");
}

TEST(RewardSettings, KeysThatDependOnEachOther) {
  expect_refused(R"([{"kind": "format"}])", "reward[0].schema", "neither");
  expect_refused(R"([{"kind": "format", "schema": "a", "pattern": "b"}])", "reward[0].pattern",
                 "both");
  expect_refused(R"([{"kind": "length", "most_tokens": 5, "target_tokens": 5}])",
                 "reward[0].most_tokens", "more than target_tokens");
  expect_refused(R"([{"kind": "length", "most_tokens": 5, "form": "bonus"}])", "reward[0].form",
                 "reward or punishment");
  expect_refused(R"([{"kind": "length", "most_tokens": 5.5}])", "reward[0].most_tokens",
                 "whole number");
}

}  // namespace
}  // namespace convoy::settings
