// SPDX-License-Identifier: Apache-2.0
//
// A preference run that was killed and started again ends with the same bits, whichever scores of
// the reference are left.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "ports/free_port.h"
#include "resume/preference_runs.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;

// Returns settings with 13 pairs of right and wrong sums, which are 4 steps an epoch.
Settings preference_settings(const TrainFixture& fixture, const Settings& more) {
  std::string rows;
  for (int row = 0; row < 13; ++row)
    rows += fmt::format(
        "{{\"prompt\": \"What is {} + {}? \", \"chosen\": \"{}\", \"rejected\": \"about {}\"}}\n",
        row, 2 * row, 3 * row, 3 * row + 7);
  return compared_settings(fixture, "dpo", rows,
                           Settings{"train.metric_for_best_model=eval_accuracy"} + more);
}

std::vector<fs::path> score_files(const TrainFixture& fixture) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fixture.rows().parent_path() / "cache"))
    if (entry.path().string().ends_with(".scores.safetensors")) files.push_back(entry.path());
  return files;
}

struct PreferenceCase {
  const char* name;
  Settings settings;
};

void PrintTo(const PreferenceCase& one, std::ostream* stream) { *stream << one.name; }

class PreferenceRuns : public ::testing::TestWithParam<PreferenceCase> {};

TEST_P(PreferenceRuns, KilledAndResumedEqualsUnbroken) {
  const TrainFixture fixture;
  const Settings settings = preference_settings(fixture, GetParam().settings);
  BrokenRun ends;
  expect_resumed_equals_unbroken(fixture, settings, ends);
  EXPECT_NE(ends.unbroken.errors.find("13 computed now"), std::string::npos)
      << ends.unbroken.errors;
  EXPECT_EQ(score_files(fixture).size(), 1U) << "both splits are the same rows";
  EXPECT_NE(ends.resumed.errors.find("all known"), std::string::npos) << ends.resumed.errors;
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, PreferenceRuns,
    ::testing::Values(PreferenceCase{"lora", {}},
                      PreferenceCase{
                          "full_zero3",
                          {"tuning.mode=full", "--nproc", "2", "parallel.strategy=zero3",
                           "parallel.keep_whole_below=0", "train.packing=true",
                           "model.max_seq_len=24", "train.batch_size=1", "train.grad_accum=1"}}),
    [](const auto& one) { return std::string(one.param.name); });

// The reference is always the model as it was loaded, whatever the checkpoint holds.
TEST(PreferenceScores, LostOrDamagedOnesAreComputedAnewWithTheSameBits) {
  const TrainFixture fixture;
  const Settings settings = preference_settings(fixture, {"tuning.mode=full", "train.epochs=2"});
  ASSERT_EQ(fixture.run("unbroken", settings).status, 0);
  for (const bool damaged : {false, true}) {
    const std::string name = damaged ? "damaged" : "lost";
    TrainProcess process = fixture.start(name, settings);
    ASSERT_TRUE(process.wait_until([&] { return fixture.has_event(name, "step", 3); }));
    process.kill_everything();
    const std::vector<fs::path> files = score_files(fixture);
    ASSERT_EQ(files.size(), 1U);
    if (damaged) {
      std::string bytes = read_file(files[0]);
      bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
      write_file_atomic(files[0], bytes);
    } else {
      fs::remove(files[0]);
    }
    const Ended resumed = fixture.run(name, settings);
    ASSERT_EQ(resumed.status, 0) << resumed.errors;
    EXPECT_NE(resumed.errors.find("13 computed now"), std::string::npos) << resumed.errors;
    EXPECT_EQ(resumed.errors.find("are damaged") != std::string::npos, damaged) << resumed.errors;
    expect_same_result(fixture, "unbroken", name);
  }
}

TEST(PreferenceScores, OnlyPairsThatTheStepsReadAreScored) {
  const TrainFixture fixture;
  const Settings settings = preference_settings(
      fixture, {"data.val_path=", "data.split.val_ratio=0", "train.eval_strategy=no",
                "train.metric_for_best_model=eval_loss"});
  const Ended two = fixture.run("two", settings + Settings{"train.steps=2"});
  ASSERT_EQ(two.status, 0) << two.errors;
  EXPECT_NE(two.errors.find("of 8 pairs of train, 8 computed now"), std::string::npos)
      << two.errors;
  const Ended all = fixture.run("all", settings + Settings{"train.epochs=1"});
  ASSERT_EQ(all.status, 0) << all.errors;
  EXPECT_NE(all.errors.find("of 13 pairs of train, 5 computed now"), std::string::npos)
      << all.errors;
}

// `convoy eval` with the configuration of a run gives the figures of the run's best evaluation.
class EvaluatedPairs : public ::testing::TestWithParam<const char*> {};

TEST_P(EvaluatedPairs, EqualTheEvaluationOfTheRun) {
  const std::string mode = GetParam();
  const TrainFixture fixture;
  const Settings settings = preference_settings(
      fixture, {"tuning.mode=" + mode, "train.metric_for_best_model=eval_loss"});
  ASSERT_EQ(fixture.run("run", settings).status, 0);
  const nlohmann::json found = evaluated(fixture, "run");
  double wanted =
      std::numeric_limits<double>::infinity();  // the best loss, whose model is exported
  for (const auto& [step, loss] : fixture.evaluation_losses("run")) wanted = std::min(wanted, loss);
  EXPECT_NEAR(found.at("loss").get<double>(), wanted, 1e-6 * std::max(1.0, wanted));
  EXPECT_EQ(found.at("pairs"), 13);
  for (const char* const figure : {"accuracy", "rewards/margins", "logps/chosen"})
    EXPECT_TRUE(found.contains(figure)) << found;
}
INSTANTIATE_TEST_SUITE_P(Modes, EvaluatedPairs, ::testing::Values("lora", "full"),
                         [](const auto& one) { return std::string(one.param); });

// Expects steps over the same pairs, whose losses differ only by the rounding of sums.
void expect_same_losses(const std::map<int64_t, double>& wanted,
                        const std::map<int64_t, double>& found) {
  ASSERT_EQ(wanted.size(), found.size());
  for (const auto& [step, loss] : wanted) EXPECT_NEAR(found.at(step), loss, 1e-5) << step;
}

TEST(PreferenceRunsOfOtherRanks, AQuantizedBaseIsItsReferenceOnEachOfThem) {
  const TrainFixture fixture;
  const Settings settings = preference_settings(
      fixture,
      {"tuning.mode=qlora", "train.epochs=2", "train.grad_accum=1", "tuning.lora.dropout=0"});
  const Ended one = fixture.run("one", settings + Settings{"train.batch_size=4"});
  ASSERT_EQ(one.status, 0) << one.errors;
  const Ended two = fixture.run(
      "two", settings + Settings{"train.batch_size=2", "--nproc", "2", "parallel.strategy=zero3"});
  ASSERT_EQ(two.status, 0) << two.errors;
  EXPECT_NEAR(fixture.losses("one").begin()->second, std::log(2.0), 1e-6)
      << "the first step's model is the reference";
  expect_same_losses(fixture.losses("one"), fixture.losses("two"));
}

// Hybrid sharding: each node holds all parameters, and its ranks share them.
TEST(PreferenceRunsOfOtherRanks, NodesThatShareNoFolderScoreAndLearnAsOneRank) {
  const TrainFixture a, b;
  const int port = free_port();
  const Settings changes{"tuning.mode=full", "train.epochs=2", "train.grad_accum=1"};
  const Ended one = a.run("one", preference_settings(a, changes + Settings{"train.batch_size=4"}));
  ASSERT_EQ(one.status, 0) << one.errors;
  const auto of_node = [&](const TrainFixture& fixture, int node) {
    return preference_settings(
        fixture,
        changes + Settings{"train.batch_size=1", "parallel.strategy=fsdp",
                           "parallel.shard_over=node", "parallel.keep_whole_below=0", "--nproc",
                           "2", "--nnodes", "2", "--node-rank", std::to_string(node),
                           "--rdzv-endpoint", fmt::format("127.0.0.1:{}", port), "--rdzv-conf",
                           "join_timeout=60"});
  };
  TrainProcess first = a.start("four", of_node(a, 0));
  TrainProcess second = b.start("four", of_node(b, 1));
  for (TrainProcess* const node : {&first, &second}) {
    const Ended ended = node->wait();
    EXPECT_EQ(ended.status, 0) << ended.errors;
  }
  expect_same_losses(a.losses("one"), a.losses("four"));
}

TEST(PreferenceRunsOfOtherRanks, AStoppedRunGoesOnOnMore) {
  const TrainFixture fixture;
  const Settings settings = preference_settings(fixture, {"train.grad_accum=4"});
  ASSERT_EQ(fixture.run("unbroken", settings).status, 0);
  TrainProcess process = fixture.start("run", settings);
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("run", "step", 2); }));
  process.kill_everything();
  const Ended resumed = fixture.run("run", settings + Settings{"--nproc", "2"});
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  const auto wanted = fixture.losses("unbroken");
  const auto found = fixture.losses("run");
  ASSERT_EQ(wanted.size(), found.size());
  for (const auto& [step, loss] : wanted)
    EXPECT_NEAR(found.at(step), loss, 2e-5 * std::max(1.0, loss)) << "step " << step;
}

TEST(PreferenceRunsOfOtherLosses, AnotherLossIsRefused) {
  const TrainFixture fixture;
  const Settings settings = preference_settings(fixture, {"train.epochs=1"});
  ASSERT_EQ(fixture.run("run", settings).status, 0);
  const Ended ended =
      fixture.run("run", settings + Settings{"train.epochs=2", "preference.loss=hinge"});
  EXPECT_EQ(ended.status, 2) << ended.errors;
  EXPECT_NE(ended.errors.find("objective"), std::string::npos) << ended.errors;
}

}  // namespace
}  // namespace convoy::testing
