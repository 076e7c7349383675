// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/conversation/dialogue.h"

#include <gtest/gtest.h>

namespace convoy::recipes {
namespace {

std::string roles_of(const Dialogue& dialogue) {
  std::string roles;
  for (const auto& message : dialogue.messages())
    roles += message["role"].get<std::string>()[0] + message["content"].get<std::string>() + " ";
  return roles;
}

TEST(Dialogue, QuestionsAreTakenBackWithTheirAnswers) {
  Dialogue dialogue("");
  EXPECT_FALSE(dialogue.has_turns());
  dialogue.ask("1");
  dialogue.answer("2");
  dialogue.ask("3");
  EXPECT_EQ(dialogue.take_last_question(), "3");
  EXPECT_EQ(roles_of(dialogue), "u1 a2 ");
  EXPECT_EQ(dialogue.take_last_question(), "1");
  EXPECT_FALSE(dialogue.has_turns());
}

TEST(Dialogue, TheSystemPromptIsReplacedAndSurvivesAReset) {
  Dialogue dialogue("be brief");
  EXPECT_FALSE(dialogue.has_turns());
  dialogue.ask("1");
  dialogue.set_system_prompt("be kind");
  EXPECT_EQ(roles_of(dialogue), "sbe kind u1 ");
  dialogue.reset();
  EXPECT_EQ(roles_of(dialogue), "sbe kind ");
  dialogue.set_system_prompt("");
  EXPECT_EQ(roles_of(dialogue), "");
  dialogue.ask("2");
  dialogue.set_system_prompt("again");
  EXPECT_EQ(roles_of(dialogue), "sagain u2 ");
}

}  // namespace
}  // namespace convoy::recipes
