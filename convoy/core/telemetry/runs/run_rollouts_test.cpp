// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/run_rollouts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::telemetry {
namespace {

std::string row(const std::string& text, double reward, int tokens) {
  return nlohmann::json({{"row", 4},
                         {"sample", 1},
                         {"prompt", "What?"},
                         {"text", text},
                         {"reward", reward},
                         {"logprobs", std::vector<double>(static_cast<size_t>(tokens), -1)},
                         {"tokens", {1, 2, 3}},
                         {"weights", "0f"}})
             .dump() +
         "\n";
}

TEST(RunRollouts, NamesTheBestTheWorstAndTheLongestTextsOfAStep) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path run = folder.path();
  EXPECT_TRUE(rollout_steps(run).empty());
  write_file_atomic(run / "rollouts/step-12.jsonl", "{}\n");
  write_file_atomic(run / "rollouts/step-3-0123.texts.partial/rank-0-0", "key\n");
  write_file_atomic(run / "rollouts/step-3.jsonl",
                    row("a", 0.5, 2) + row("b", -1, 1) + row("c", 1.5, 4));
  EXPECT_EQ(rollout_steps(run), (std::vector<int64_t>{3, 12}));
  const std::vector<nlohmann::ordered_json> notable = notable_rollouts(run, 3, 1).rows;
  ASSERT_EQ(notable.size(), 3u);
  EXPECT_EQ(nlohmann::json(notable[0]),
            nlohmann::json::parse(R"({"shown_as": "best", "row": 4, "sample": 1, "prompt": "What?",
                                      "text": "c", "reward": 1.5, "text_tokens": 4})"));
  EXPECT_EQ(notable[0].begin().key(), "shown_as");
  EXPECT_EQ(notable[1]["shown_as"], "worst");
  EXPECT_EQ(notable[1]["text"], "b");
  EXPECT_EQ(notable[2]["text"], "c");
  EXPECT_EQ(notable_rollouts(run, 3, 2).rows[5]["text"], "a");
  EXPECT_FALSE(notable_rollouts(run, 3, 2).damage);
  EXPECT_TRUE(notable_rollouts(run, 4, 1).rows.empty());
}

TEST(RunRollouts, FilesThatAreGoneOrEmptyBetweenOthersAreNamed) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path run = folder.path();
  EXPECT_FALSE(missing_rollouts(run));
  for (const int64_t step : {3, 5, 7, 9, 11})
    write_file_atomic(rollout_file(run / "rollouts", step), row("a", 0.5, 2));
  EXPECT_FALSE(missing_rollouts(run)) << "a step of two learns from the texts of the one before";
  std::filesystem::remove(rollout_file(run / "rollouts", 7));
  write_file_atomic(rollout_file(run / "rollouts", 9), "");
  ASSERT_TRUE(missing_rollouts(run));
  EXPECT_NE(missing_rollouts(run)->sentence().find("the texts of step 7, 9 are gone"),
            std::string::npos)
      << missing_rollouts(run)->sentence();
  // With two files left, the run's record says how far they lie apart.
  for (const int64_t step : {5, 9}) std::filesystem::remove(rollout_file(run / "rollouts", step));
  EXPECT_FALSE(missing_rollouts(run));
  write_file_atomic(run / "run.json", R"({"stamp": {"policy.inner_steps": "4"}})");
  ASSERT_TRUE(missing_rollouts(run));
  EXPECT_NE(missing_rollouts(run)->sentence().find("step 7 "), std::string::npos);
}

TEST(RunRollouts, TheFirstAndTheLastFileOfTheStepsThatTheEventsTellOfAreNamed) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path run = folder.path();
  write_file_atomic(run / "run.json", R"({"stamp": {"policy.inner_steps": "2"}})");
  const auto write_events = [&](int64_t resume_step, int64_t last) {
    constexpr const char* kStart = "{{\"event\": \"start\", \"resume_step\": {}}}\n";
    // The run has gone on once: at its last step, whose row is gone with the torn end of a file.
    write_file_atomic(run / "events.jsonl",
                      fmt::format(fmt::runtime(kStart), resume_step) +
                          fmt::format("{{\"event\": \"step\", \"step\": {}}}\n", last - 1) +
                          fmt::format(fmt::runtime(kStart), last));
  };
  const auto gone = [&] {
    const std::optional<DataError> missing = missing_rollouts(run);
    return missing ? missing->sentence() : "";
  };
  for (const int64_t step : {5, 7})
    write_file_atomic(rollout_file(run / "rollouts", step), row("a", 0.5, 2));
  write_events(-1, 12);
  EXPECT_NE(gone().find("the texts of step 1, 3, 9, 11 are gone"), std::string::npos) << gone();
  write_events(-1, 8);
  EXPECT_NE(gone().find("the texts of step 1, 3 are gone"), std::string::npos) << gone();
  // The earlier run had drawn the texts of step 3.
  write_events(3, 8);
  EXPECT_EQ(gone(), "");
  write_events(2, 6);
  EXPECT_NE(gone().find("the texts of step 3 are gone"), std::string::npos) << gone();
  // A file of a step that has not ended.
  write_events(4, 6);
  EXPECT_EQ(gone(), "");
  write_file_atomic(rollout_file(run / "rollouts", int64_t{1} << 62), row("a", 0.5, 2));
  EXPECT_NE(gone().find("47, ... are gone"), std::string::npos) << gone();
}

TEST(RunRollouts, APipeInPlaceOfAFileIsNamed) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = rollout_file(folder.path() / "rollouts", 3);
  std::filesystem::create_directories(file.parent_path());
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  const NotableRollouts notable = notable_rollouts(folder.path(), 3, 1);
  EXPECT_TRUE(notable.rows.empty());
  ASSERT_TRUE(notable.damage);
  EXPECT_EQ(notable.damage->location().file, file.string());
}

TEST(RunRollouts, ADamagedLineIsNamedAndTheOthersAreRead) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path run = folder.path();
  const std::filesystem::path file = run / "rollouts/step-3.jsonl";
  const std::string good = row("a", 0.5, 2);
  for (const auto& [bad, said] : std::vector<std::pair<std::string, std::string>>{
           {"no row\n", "found a line that is no JSON"},
           {"[1]\n", "found a value of type array"},
           {R"({"row": 1, "sample": 1, "reward": "high", "text": "a", "prompt": "b"})"
            "\n",
            "found no number `reward`"},
           {good.substr(0, 20), "found a line that is no JSON"}}) {
    write_file_atomic(file, good + good + bad);
    int rows = 0;
    const auto damage = for_each_rollout(run, 3, [&](const auto&) { ++rows; });
    ASSERT_TRUE(damage) << bad;
    EXPECT_EQ(rows, 2);
    EXPECT_EQ(damage->location().file, file.string());
    EXPECT_EQ(damage->location().line, 3);
    EXPECT_NE(std::string(damage->what()).find(said), std::string::npos) << damage->what();
    EXPECT_TRUE(notable_rollouts(run, 3, 1).damage);
    EXPECT_EQ(notable_rollouts(run, 3, 1).rows.size(), 3u);
  }
}

TEST(RunRollouts, WithoutRewardsThereIsNoBest) {
  const testing::TemporaryFolder folder;
  const std::string begin = R"({"row": 1, "sample": 0, "prompt": "p", )";
  write_file_atomic(folder.path() / "rollouts/step-5.jsonl",
                    begin + R"("text": "a", "logprobs": [-1]})" + "\n" + begin +
                        R"("text": "b", "logprobs": [-1, -2]})" + "\n");
  const NotableRollouts plain = notable_rollouts(folder.path(), 5, 1);
  EXPECT_FALSE(plain.damage) << plain.damage->sentence();
  ASSERT_EQ(plain.rows.size(), 1u);
  EXPECT_EQ(plain.rows[0]["shown_as"], "longest");
  EXPECT_EQ(plain.rows[0]["text"], "b");
}

}  // namespace
}  // namespace convoy::telemetry
