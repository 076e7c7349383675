// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/rollout_ledger.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

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

std::string no_fault(const train::Rollout&) { return ""; }

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
  EXPECT_FALSE(later.finished(7, "abc", {{4, 0}}, no_fault));
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

// A reward that compares the texts of a problem is asked about all of them or none.
TEST_F(Ledger, ForgetsTheValuesOfAProblemWhoseOthersAKillTook) {
  for (int life = 0; life < 2; ++life) {
    RolloutLedger own = ledger();
    own.open(7, "abc");
    if (life == 0) {
      for (const int64_t sample : {0, 1}) own.add_reward({4, sample}, 1, 0.25);
      own.add_reward({4, 0}, 0, 1);
      own.add_reward({5, 0}, 0, 1);
      own.add_reward({5, 0}, 1, 0.5);
      continue;
    }
    own.forget_torn_rewards(1, 2);
    EXPECT_FALSE(own.reward({5, 0}, 1)) << "the number of {5, 1} is missing";
    own.add_reward({5, 0}, 1, 0.75);
    own.add_reward({5, 1}, 1, 0.5);
  }
  RolloutLedger later = ledger();
  later.open(7, "abc");
  later.forget_torn_rewards(1, 2);
  EXPECT_EQ(later.reward({4, 0}, 0), 1);
  EXPECT_EQ(later.reward({5, 0}, 0), 1) << "of another reward";
  EXPECT_EQ(later.reward({4, 1}, 1), 0.25) << "of a whole problem";
  EXPECT_EQ(later.reward({5, 0}, 1), 0.75) << "asked again";
  EXPECT_EQ(later.reward({5, 1}, 1), 0.5);
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
  EXPECT_FALSE(later.finished(2, "def", {{9, 0}}, no_fault)) << "texts of other weights";
  EXPECT_TRUE(later.finished(2, "", {}, no_fault)) << "a step that goes on with them takes any";
  const auto found = later.finished(2, "abc", {{1, 0}, {9, 0}}, no_fault);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 3u);
  const train::Rollout& rollout = found->at({9, 0}).rollout;
  EXPECT_EQ(rollout.reward, 1.125);
  EXPECT_EQ(rollout.rewards, (std::vector<double>{1, 0.25}));
  EXPECT_EQ(rollout.reference, (std::vector<float>{-0.2F, -0.3F}));
  EXPECT_EQ(rollout.drawn, drawn_rollout(9, 0).rollout.drawn);
  EXPECT_FALSE(later.finished(3, "abc", {{1, 0}}, no_fault));
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
  const auto found = later.finished(7, "abc", {{4, 0}}, no_fault);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at({4, 0}).rollout.teacher.ids, said.ids);
  EXPECT_EQ(found->at({4, 0}).rollout.teacher.logprobs, said.logprobs);
}

TEST_F(Ledger, NamesADamagedFileWithItsLine) {
  RolloutLedger own = ledger();
  own.open(5, "abc");
  std::vector<RecordedRollout> rollouts = {drawn_rollout(1, 0), drawn_rollout(1, 1)};
  for (RecordedRollout& recorded : rollouts) {
    recorded.rollout.rewards = {1, 0.25};
    recorded.rollout.reference = {-0.2F, -0.3F};
    recorded.rollout.teacher = {.ids = {7, 1}, .logprobs = {-0.1F, -2, -0.1F, -2}};
  }
  own.finish(5, "abc", rollouts, {{1, {2, "How many?"}}});
  const std::string good = read_file(own.file_of(5));
  const size_t begin = good.find('\n') + 1;
  const auto refused = [&](const std::string& second, const std::string& key = "abc") {
    write_file_atomic(own.file_of(5), good.substr(0, begin) + second);
    try {
      own.finished(5, key, {{1, 0}, {1, 1}}, no_fault);
    } catch (const DataError& error) {
      EXPECT_EQ(error.location().file, own.file_of(5).string());
      EXPECT_EQ(error.location().hint.find("remove the file: its texts are drawn again") !=
                    std::string::npos,
                !key.empty())
          << error.location().hint;
      return fmt::format("{}: {}", error.location().line, error.what());
    }
    return std::string("it was taken");
  };
  const auto refused_with = [&](const std::function<void(nlohmann::json&)>& change) {
    auto row = nlohmann::json::parse(good.substr(begin));
    change(row);
    return refused(row.dump() + "\n");
  };
  const std::string begins = "2: wanted the texts of a step, found ";
  EXPECT_EQ(refused(good.substr(begin)), "it was taken");
  EXPECT_EQ(refused(""), "0: wanted the texts of a step, found none of problem 1, sample 1");
  EXPECT_EQ(refused("", ""), "0: wanted the texts of a step, found none of problem 1, sample 1");
  EXPECT_EQ(refused(good.substr(begin, 40) + "\n").substr(0, begins.size() + 10),
            begins + "a row that");
  EXPECT_EQ(refused(good.substr(0, begin)), begins + "a text twice");
  EXPECT_EQ(refused("[1]\n").substr(0, begins.size()), begins);
  EXPECT_EQ(refused_with([](auto& row) { row["logprobs"].erase(0); }),
            begins + "1 log-probabilities of a text of 2 tokens");
  EXPECT_EQ(refused_with([](auto& row) { row["tokens"].erase(3); }),
            begins + "2 log-probabilities of a text of 1 tokens");
  EXPECT_EQ(refused_with([](auto& row) { row["prompt_tokens"] = 1000000; }),
            begins + "4 tokens with a prompt of 1000000");
  EXPECT_EQ(refused_with([](auto& row) { row["reference_logprobs"].erase(0); }),
            begins + "1 log-probabilities under the reference of a text of 2 tokens");
  EXPECT_EQ(refused_with([](auto& row) { row["teacher"]["logprobs"].erase(0); }),
            begins + "2 tokens of the teacher with 3 log-probabilities for a text of 2 tokens");
  EXPECT_EQ(refused_with([](auto& row) { row["logprobs"][0] = 1e300; }),
            begins + "a log-probability that is not finite");
  EXPECT_EQ(refused_with([](auto& row) { row["logprobs"][0] = nullptr; }).substr(0, begins.size()),
            begins);
  EXPECT_EQ(refused_with([](auto& row) { row.erase("text"); }).substr(0, begins.size()), begins);
  write_file_atomic(own.file_of(5), good);
  try {
    own.finished(5, "abc", {}, [](const train::Rollout&) { return "another prompt"; });
    FAIL() << "a row that the run refuses";
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().line, 1);
    EXPECT_NE(std::string(error.what()).find("another prompt"), std::string::npos);
  }
}

}  // namespace
}  // namespace convoy::recipes
