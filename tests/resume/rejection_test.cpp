// SPDX-License-Identifier: Apache-2.0
//
// Runs `task: rejection` as a user does: rounds with and without a gain, and kills in every phase,
// after which the same command ends with the same bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void copy_rows(const fs::path& from, const fs::path& to, int count) {
  std::ifstream rows(from);
  std::string text;
  std::string line;
  for (int row = 0; row < count && std::getline(rows, line); ++row) text += line + "\n";
  write_file_atomic(to, text);
}

// Returns the settings of a run on the example sums, with a prompt that the model can partly
// answer.
Settings rejection_settings(const TrainFixture& fixture, const Settings& more, int problems = 24) {
  const fs::path folder = fixture.rows().parent_path();
  const fs::path sums = fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/sums";
  copy_rows(sums / "train.jsonl", folder / "problems.jsonl", problems);
  copy_rows(sums / "test.jsonl", folder / "held_out.jsonl", problems);
  write_file_atomic(folder / "prompt.txt", "Q: {{ problem }}\nA:\n");
  return Settings{"task=rejection",
                  "data.train_path=" + (folder / "problems.jsonl").string(),
                  "data.val_path=" + (folder / "held_out.jsonl").string(),
                  "rejection.prompt=" + (folder / "prompt.txt").string(),
                  "rejection.chat=off",
                  "rejection.samples=4",
                  "rejection.keep=2",
                  "rejection.max_tokens=64",
                  "rejection.rounds=2",
                  "rejection.min_gain=-1",
                  "model.max_seq_len=160",
                  "data.eos_token=<|endoftext|>",
                  "train.batch_size=4",
                  "train.grad_accum=1",
                  "train.learning_rate=5e-4",
                  "train.epochs=2"} +
         more;
}

std::vector<Json> rounds_of(const TrainFixture& fixture, const std::string& name) {
  std::vector<Json> rounds;
  std::ifstream file(fixture.run_folder(name) / "rounds.jsonl");
  for (std::string line; std::getline(file, line);) {
    rounds.push_back(Json::parse(line));
    rounds.back().erase("seconds");
  }
  return rounds;
}

// Compares all files that the rounds wrote.
void expect_same_rounds(const TrainFixture& fixture, const std::string& expected,
                        const std::string& found) {
  EXPECT_EQ(rounds_of(fixture, expected), rounds_of(fixture, found));
  EXPECT_TRUE(fixture.weights(expected) == fixture.weights(found)) << "the weights differ";
  for (const char* const file :
       {"rounds/0/answers.jsonl", "rounds/1/samples.jsonl", "rounds/1/rows.jsonl",
        "rounds/1/answers.jsonl", "rounds/2/samples.jsonl", "rounds/2/rows.jsonl",
        "rounds/2/answers.jsonl"})
    EXPECT_TRUE(read_file(fixture.run_folder(expected) / file) ==
                read_file(fixture.run_folder(found) / file))
        << file;
}

bool has_lines(const fs::path& file, int count) {
  std::ifstream lines(file);
  int found = 0;
  for (std::string line; std::getline(lines, line);) ++found;
  return found >= count;
}

TEST(RejectionRuns, KilledInEachPhaseAndStartedAgainEndWithTheSameBytes) {
  const TrainFixture fixture;
  const Settings settings = rejection_settings(fixture, {"rejection.from=last"});
  const Ended unbroken = fixture.run("unbroken", settings);
  ASSERT_EQ(unbroken.status, 0) << unbroken.errors;
  ASSERT_EQ(rounds_of(fixture, "unbroken").size(), 3U) << unbroken.errors;
  const fs::path run = fixture.run_folder("killed");
  const fs::path rounds = run / "rounds";
  const std::vector<std::pair<const char*, std::function<bool()>>> moments = {
      {"the first evaluation", [&] { return fs::exists(rounds / "0/evaluate/ledger.db"); }},
      {"generation", [&] { return fs::exists(rounds / "1/generate/rows"); }},
      {"published samples", [&] { return fs::exists(rounds / "1/samples.jsonl"); }},
      {"kept rows", [&] { return fs::exists(rounds / "1/rows.jsonl"); }},
      {"a step", [&] { return fixture.has_event("killed/rounds/1/train", "step", 3); }},
      {"the result", [&] { return fs::exists(rounds / "1/train/adapter"); }},
      {"an evaluation", [&] { return fs::exists(rounds / "1/evaluate/ledger.db"); }},
      {"a recorded round", [&] { return has_lines(run / "rounds.jsonl", 2); }},
      {"a step of round 2", [&] { return fixture.has_event("killed/rounds/2/train", "step", 2); }},
      {"the last answers", [&] { return fs::exists(rounds / "2/answers.jsonl"); }}};
  for (const auto& [name, moment] : moments) {
    SCOPED_TRACE(name);
    TrainProcess process = fixture.start("killed", settings);
    ASSERT_TRUE(process.wait_until(moment)) << process.wait().errors;
    process.kill_everything();
  }
  const Ended resumed = fixture.run("killed", settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find("going on after round 1"), std::string::npos) << resumed.errors;
  expect_same_rounds(fixture, "unbroken", "killed");
  // A finished run computes nothing when it is started again. With more rounds it continues.
  const Ended again = fixture.run("killed", settings);
  EXPECT_EQ(again.status, 0) << again.errors;
  EXPECT_EQ(again.errors.find("generate 4 samples"), std::string::npos) << again.errors;
  const Ended more = fixture.run("killed", settings + Settings{"rejection.rounds=3"});
  EXPECT_EQ(more.status, 0) << more.errors;
  EXPECT_EQ(rounds_of(fixture, "killed").size(), 4U);
  const Ended other = fixture.run("killed", settings + Settings{"rejection.keep=1"});
  EXPECT_EQ(other.status, static_cast<int>(ExitCode::Usage));
  EXPECT_NE(other.errors.find("rejection.keep: 1 now, 2 then"), std::string::npos) << other.errors;
  write_file_atomic(fixture.rows().parent_path() / "prompt.txt", "Question: {{ problem }}\nA:\n");
  const Ended asked = fixture.run("killed", settings);
  EXPECT_EQ(asked.status, static_cast<int>(ExitCode::Usage));
  EXPECT_NE(asked.errors.find("rejection.prompt: the file has changed"), std::string::npos)
      << asked.errors;
}

TEST(RejectionRuns, AStopEndsThePhaseAndNamesTheCommandThatGoesOn) {
  const TrainFixture fixture;
  const Settings settings = rejection_settings(fixture, {"rejection.rounds=1", "train.epochs=20"});
  const fs::path rounds = fixture.run_folder("stopped") / "rounds";
  const std::vector<std::function<bool()>> moments = {
      [&] { return fs::exists(rounds / "1/generate/rows"); },
      [&] { return fixture.has_event("stopped/rounds/1/train", "step", 2); }};
  for (const auto& moment : moments) {
    TrainProcess process = fixture.start("stopped", settings);
    ASSERT_TRUE(process.wait_until(moment)) << process.wait().errors;
    process.signal(SIGTERM);
    const Ended ended = process.wait();
    EXPECT_EQ(ended.status, kStopped) << ended.errors;
    EXPECT_NE(
        ended.errors.find(fmt::format("--run-dir {}", fixture.run_folder("stopped").string())),
        std::string::npos)
        << ended.errors;
    EXPECT_EQ(fixture.num_events("stopped", "failure"), 0);
  }
  const Ended resumed = fixture.run("stopped", settings);
  EXPECT_EQ(resumed.status, 0) << resumed.errors;
}

TEST(RejectionRuns, GainUntilARoundGainsNothing) {
  const TrainFixture fixture;
  const Ended gains = fixture.run(
      "gains", rejection_settings(fixture,
                                  {"rejection.rounds=1", "tuning.lora.r=16", "tuning.lora.alpha=32",
                                   "tuning.lora.dropout=0", "train.epochs=4"},
                                  100));
  ASSERT_EQ(gains.status, 0) << gains.errors;
  const std::vector<Json> rounds = rounds_of(fixture, "gains");
  ASSERT_GE(rounds.size(), 2U);
  EXPECT_GT(rounds[1]["eval_right"], rounds[0]["eval_right"]) << gains.errors;
  EXPECT_TRUE(fs::exists(fixture.run_folder("gains") / "adapter/adapter_model.safetensors"));
  const Ended still = fixture.run(
      "still", rejection_settings(fixture, {"rejection.min_gain=0", "train.learning_rate=0"}));
  ASSERT_EQ(still.status, 0) << still.errors;
  EXPECT_EQ(rounds_of(fixture, "still").size(), 2U);
  EXPECT_NE(still.errors.find("the run ends: round 1 gained nothing"), std::string::npos)
      << still.errors;
}

TEST(RejectionRuns, AllWeightsAreTrainedToo) {
  const TrainFixture fixture;
  const Ended ended = fixture.run(
      "full", rejection_settings(fixture, {"tuning.mode=full", "train.learning_rate=1e-4"}));
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_TRUE(fs::exists(fixture.run_folder("full") / "model/model.safetensors"));
}

TEST(RejectionRuns, ProblemsWithoutAnswersAreRefusedBeforeAnythingIsWritten) {
  const TrainFixture fixture;
  const Settings settings = rejection_settings(fixture, {});
  write_file_atomic(fixture.rows().parent_path() / "held_out.jsonl",
                    "{\"question\": \"What is 1 + 1?\", \"note\": \"2\"}\n");
  const Ended ended = fixture.run("refused", settings);
  EXPECT_EQ(ended.status, static_cast<int>(ExitCode::BadInput)) << ended.errors;
  EXPECT_NE(ended.errors.find("data.val_path: no row has"), std::string::npos) << ended.errors;
  EXPECT_FALSE(fs::exists(fixture.run_folder("refused")));
}

TEST(RejectionRuns, APlanLeavesOutRowsWithoutAProblem) {
  const TrainFixture fixture;
  const Settings settings = rejection_settings(fixture, {"data.bad_rows=skip", "--dry-run"});
  const fs::path problems = fixture.rows().parent_path() / "problems.jsonl";
  write_file_atomic(problems, read_file(problems) + "{\"note\": \"no problem\"}\n");
  const Ended ended = fixture.run("plan", settings);
  EXPECT_EQ(ended.status, 0) << ended.errors;
}

// Standard output and error in one pipe, as `convoy train ... --dry-run 2>&1 | less` shows them.
TEST(RejectionRuns, APlanNamesItsPhasesInOrderInAPipe) {
  const TrainFixture fixture;
  const Settings settings = rejection_settings(fixture, {"--dry-run"});
  std::string line = fmt::format("'{}/convoy' ", std::getenv("CONVOY_BIN_DIR"));
  for (const std::string& word : fixture.command("plan", settings))
    line += fmt::format("'{}' ", word);
  FILE* const pipe = ::popen((line + "2>&1").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  for (int letter = std::fgetc(pipe); letter != EOF; letter = std::fgetc(pipe))
    text += static_cast<char>(letter);
  ASSERT_EQ(::pclose(pipe), 0) << text;
  size_t at = 0;
  for (const char* const part :
       {"generate:\n", "stages", "train: at most", "evaluate:\n", "stages"}) {
    const size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << " is not behind the part before it:\n" << text;
    at = found + 1;
  }
}

TEST(RejectionRuns, NothingRightIsAnErrorWithTheSamples) {
  const TrainFixture fixture;
  const Settings settings = rejection_settings(fixture, {});
  write_file_atomic(fixture.rows().parent_path() / "problems.jsonl",
                    "{\"question\": \"What is 1 + 1?\", \"answer\": \"#### 987654\"}\n");
  // Each round is evaluated on the problems that it is trained on.
  const Ended ended = fixture.run(
      "none", settings + Settings{"data.val_path=" +
                                  (fixture.rows().parent_path() / "problems.jsonl").string()});
  EXPECT_EQ(ended.status, static_cast<int>(ExitCode::BadInput)) << ended.errors;
  EXPECT_NE(ended.errors.find("the same rows as data.train_path"), std::string::npos)
      << ended.errors;
  EXPECT_NE(ended.errors.find("none of 4 samples is right"), std::string::npos) << ended.errors;
  EXPECT_NE(ended.errors.find("rounds/1/samples.jsonl"), std::string::npos) << ended.errors;
}

}  // namespace
}  // namespace convoy::testing
