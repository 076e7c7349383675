// SPDX-License-Identifier: Apache-2.0
//
// Tests which turns a supervision chooses. encoding/encode_sample_test.cpp tests whole rows.
#include "convoy/data/datasets/masks/turn_choice.h"

#include <gtest/gtest.h>

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

const ordered_json kChat = {{{"role", "user"}},
                            {{"role", "assistant"}},
                            {{"role", "user"}},
                            {{"role", "assistant"}},
                            {{"role", "user"}}};

TEST(TurnChoices, AreTheTurnsOfTheRoles) {
  const TurnChoice choice = turns_by_role({}, kChat, kChat, 0);
  EXPECT_EQ(choice.first, 0U);
  EXPECT_EQ(choice.roles, std::vector<std::string>{"assistant"});
  EXPECT_EQ(choice.is_located, (std::vector<bool>{false, true, false, true, false}));
  EXPECT_EQ(turns_by_role({}, kChat, kChat, 2).first, 2U) << "the prompt is not searched";
}

TEST(TurnChoices, BeginAtTheLastTurnWhereItAloneIsLearnt) {
  const Supervision last{.supervise = Supervise::Last};
  EXPECT_EQ(turns_by_role(last, kChat, kChat, 0).first, 3U);
  EXPECT_EQ(turns_by_role(last, kChat, kChat, 4).first, 4U) << "no turn behind the prompt";
}

TEST(TurnChoices, KnowARoleUnderTheNameOfTheTemplate) {
  ordered_json readable = kChat;
  readable[1]["role"] = "model";
  const TurnChoice choice = turns_by_role({}, kChat, readable, 0);
  EXPECT_EQ(choice.roles, (std::vector<std::string>{"assistant", "model"}));
  EXPECT_TRUE(choice.is_located[1]);
}

TEST(TurnChoices, FollowWeightsOfTheRowBeforeRoles) {
  ordered_json weighted = kChat;
  weighted[0]["weight"] = 0.5;
  weighted[3]["weight"] = 0.0;
  const WeightedTurnChoice choice = turns_by_weight({}, weighted, weighted, 0);
  EXPECT_EQ(choice.weights, (std::vector<double>{0.5, 1, 0, 0, 0}));
  EXPECT_EQ(choice.turns.first, 0U);
  EXPECT_EQ(choice.turns.roles, (std::vector<std::string>{"assistant", "user"}));
  EXPECT_EQ(choice.turns.is_located, (std::vector<bool>{true, true, false, false, false}));
}

TEST(TurnChoices, LocateOnlyUnusualWeightsWhereEveryTokenIsLearnt) {
  ordered_json weighted = kChat;
  weighted[3]["weight"] = 0.25;
  const WeightedTurnChoice choice =
      turns_by_weight({.supervise = Supervise::All}, weighted, weighted, 0);
  EXPECT_EQ(choice.weights, (std::vector<double>{1, 1, 1, 0.25, 1}));
  EXPECT_EQ(choice.turns.first, 3U);
  EXPECT_EQ(choice.turns.is_located, (std::vector<bool>{false, false, false, true, false}));
}

TEST(TurnChoices, KeepTheLastWeightWhereOneTurnIsLearnt) {
  ordered_json weighted = kChat;
  weighted[0]["weight"] = 0.5;
  const WeightedTurnChoice choice =
      turns_by_weight({.supervise = Supervise::Last}, weighted, weighted, 0);
  EXPECT_EQ(choice.weights, (std::vector<double>{0, 0, 0, 1, 0}));
  EXPECT_EQ(choice.turns.first, 3U);
}

}  // namespace
}  // namespace convoy::data
