// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/rollout_ledger.h"

#include <gtest/gtest.h>

#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/train/comm/group.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;

RecordedRollout drawn_rollout(int64_t problem, int64_t sample) {
  RecordedRollout recorded{.text = "twelve \xF0\x9F"};  // cut inside a character
  recorded.rollout = {.problem = problem,
                      .sample = sample,
                      .ids = {3, 5, 9, 11},
                      .prompt_tokens = 2,
                      .drawn = {-0.1F, -3.4028233e-5F},
                      .is_truncated = sample == 1};
  return recorded;
}

class Ledger : public ::testing::Test {
 protected:
  RolloutLedger ledger() { return {folder_ / "rollouts", {"answer", "length"}, *group_}; }

  testing::TemporaryFolder folder_;
  std::unique_ptr<comm::Group> group_ =
      comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300));
};

TEST_F(Ledger, KeepsTextsAndRewardsOfAStepThatWasKilled) {
  std::string text;
  {
    RolloutLedger killed = ledger();
    killed.open(7, "abc");
    killed.add_text(drawn_rollout(4, 0));
    killed.add_text(drawn_rollout(4, 1));
    text = killed.texts().at({4, 1}).text;
    killed.add_reward({4, 0}, 0, 1);
    killed.add_reward({4, 0}, 1, -0.1);
    killed.add_reward({4, 1}, 0, 0.5);
  }
  RolloutLedger later = ledger();
  EXPECT_FALSE(later.finished(7, "abc"));
  later.open(7, "abc");
  ASSERT_EQ(later.texts().size(), 2u);
  const train::Rollout& rollout = later.texts().at({4, 1}).rollout;
  const train::Rollout wanted = drawn_rollout(4, 1).rollout;
  EXPECT_EQ(rollout.drawn, wanted.drawn) << "to the bit";
  EXPECT_EQ(later.texts().at({4, 1}).text, text) << "also before the kill";
  EXPECT_EQ(rollout.ids, wanted.ids);
  EXPECT_EQ(rollout.prompt_tokens, 2);
  EXPECT_TRUE(rollout.is_truncated);
  EXPECT_EQ(later.reward({4, 0}, 0), 1);
  EXPECT_EQ(later.reward({4, 0}, 1), -0.1);
  EXPECT_EQ(later.reward({4, 1}, 0), 0.5) << "its other reward was still asked";
  EXPECT_FALSE(later.reward({4, 1}, 1));
  RolloutLedger of_other_weights = ledger();
  of_other_weights.open(7, "def");
  EXPECT_TRUE(of_other_weights.texts().empty());
}

TEST_F(Ledger, ForgetsTheValuesOfAReward) {
  for (int life = 0; life < 2; ++life) {
    RolloutLedger own = ledger();
    own.open(7, "abc");
    own.add_reward({4, life}, 0, 1);
    own.add_reward({4, life}, 1, 0.25);
    if (life == 0) continue;
    own.forget_rewards(1);
    EXPECT_FALSE(own.reward({4, 0}, 1)) << "of the life before";
    own.add_reward({4, 1}, 1, 0.5);
  }
  RolloutLedger later = ledger();
  later.open(7, "abc");
  EXPECT_EQ(later.reward({4, 0}, 0), 1);
  EXPECT_EQ(later.reward({4, 1}, 0), 1);
  EXPECT_FALSE(later.reward({4, 0}, 1));
  EXPECT_EQ(later.reward({4, 1}, 1), 0.5) << "asked again";
}

TEST_F(Ledger, WritesAFinishedStepInTheOrderOfItsPlaces) {
  RolloutLedger own = ledger();
  own.open(2, "abc");
  std::vector<RecordedRollout> rollouts = {drawn_rollout(9, 0), drawn_rollout(1, 1),
                                           drawn_rollout(1, 0)};
  for (RecordedRollout& recorded : rollouts) {
    own.add_text(recorded);
    recorded.rollout.rewards = {1, 0.25};
    recorded.rollout.reward = 1.125;
    recorded.rollout.advantage = 1.0 / 3;
    recorded.rollout.reference = {-0.2F, -0.3F};
  }
  own.finish(2, "abc", rollouts, {{1, {2, "How many?"}}, {9, {10, "How far?"}}});
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "rollouts"))
    names.push_back(entry.path().filename().string());
  EXPECT_EQ(names, std::vector<std::string>{"step-2.jsonl"}) << "unfinished files are gone";
  std::ifstream file(own.file_of(2));
  std::string line;
  std::getline(file, line);
  const auto row = nlohmann::json::parse(line);
  EXPECT_EQ(row["row"], 2);
  EXPECT_EQ(row["sample"], 0);
  EXPECT_EQ(row["prompt"], "How many?");
  EXPECT_EQ(row["rewards"], nlohmann::json({{"answer", 1.0}, {"length", 0.25}}));

  RolloutLedger later = ledger();
  EXPECT_FALSE(later.finished(2, "def")) << "texts of other weights";
  EXPECT_TRUE(later.finished(2, "")) << "a step that goes on with them takes any";
  const auto found = later.finished(2, "abc");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 3u);
  const train::Rollout& rollout = found->at({9, 0}).rollout;
  EXPECT_EQ(rollout.reward, 1.125);
  EXPECT_EQ(rollout.rewards, (std::vector<double>{1, 0.25}));
  EXPECT_EQ(rollout.reference, (std::vector<float>{-0.2F, -0.3F}));
  EXPECT_EQ(rollout.drawn, drawn_rollout(9, 0).rollout.drawn);
  EXPECT_FALSE(later.finished(3, "abc"));
}

TEST_F(Ledger, KeepsWhatATeacherSaidToTheBit) {
  const train::TeacherTokens said{
      .ids = {7, 1, 7, 2},
      .logprobs = {-0.1F, -3.4028233e-5F, -1.1920929e-7F, -15.942385F, -1e-30F, -88.0F}};
  {
    RolloutLedger killed = ledger();
    killed.open(7, "abc");
    EXPECT_EQ(killed.teacher({4, 0}), nullptr);
    killed.add_teacher({4, 0}, said);
  }
  RolloutLedger later = ledger();
  later.open(7, "abc");
  ASSERT_NE(later.teacher({4, 0}), nullptr);
  EXPECT_EQ(later.teacher({4, 0})->ids, said.ids);
  EXPECT_EQ(later.teacher({4, 0})->logprobs, said.logprobs);
  EXPECT_EQ(later.teacher({4, 1}), nullptr);
  RecordedRollout recorded = drawn_rollout(4, 0);
  recorded.rollout.rewards = {1, 0.25};
  recorded.rollout.teacher = said;
  later.finish(7, "abc", {recorded}, {{4, {2, "How many?"}}});
  const auto found = later.finished(7, "abc");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at({4, 0}).rollout.teacher.ids, said.ids);
  EXPECT_EQ(found->at({4, 0}).rollout.teacher.logprobs, said.logprobs);
}

TEST_F(Ledger, NamesADamagedFile) {
  RolloutLedger own = ledger();
  write_file_atomic(own.file_of(5), "{\"problem\": 1}\n");
  try {
    own.finished(5, "");
    FAIL() << "a row without a text";
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().file, own.file_of(5).string());
  }
}

}  // namespace
}  // namespace convoy::recipes
