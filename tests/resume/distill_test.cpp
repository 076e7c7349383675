// SPDX-License-Identifier: Apache-2.0
//
// Learning from a teacher: a run that was killed and started again ends with the same bits and
// draws no text twice; ranks change nothing; a teacher that does not fit is refused by name.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/telemetry/logs/event_log.h"
#include "files/run_script.h"
#include "resume/rollout_runs.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDistillSteps = 8;

fs::path tally() { return fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/tally-3m"; }

// An adapter that a few steps at a high rate have moved away from the model.
fs::path make_teacher(const TrainFixture& fixture) {
  const Ended ended =
      fixture.run("teacher", {"tuning.mode=lora", "train.steps=4", "train.learning_rate=5e-3"});
  EXPECT_EQ(ended.status, 0) << ended.errors;
  return fixture.run_folder("teacher") / "adapter";
}

Settings distill_settings(const TrainFixture& fixture, const fs::path& teacher,
                          const Settings& more) {
  const fs::path problems = fixture.rows().parent_path() / "problems.jsonl";
  write_problems(problems, 16);
  return Settings{"task=distill",
                  "distill.teacher=" + teacher.string(),
                  "rollout.samples=2",
                  "rollout.max_new_tokens=10",
                  "rollout.chat=off",
                  "train.batch_size=2",
                  "train.grad_accum=2",
                  "train.save_steps=1",
                  "train.learning_rate=3e-4",
                  "tuning.lora.dropout=0",
                  "train.lr_scheduler_type=constant",
                  "data.train_path=" + problems.string(),
                  "data.val_path=" + problems.string(),
                  "train.eval_strategy=steps",
                  "train.eval_steps=4",
                  fmt::format("train.steps={}", kDistillSteps)} +
         more;
}

class DistillRuns : public ::testing::TestWithParam<const char*> {};

TEST_P(DistillRuns, KilledAtRandomMomentsTheyEqualUnbrokenOnes) {
  const TrainFixture fixture;
  const Settings settings =
      distill_settings(fixture, make_teacher(fixture), {std::string("tuning.mode=") + GetParam()});
  const auto begin = std::chrono::steady_clock::now();
  const Ended unbroken = fixture.run("unbroken", settings);
  ASSERT_EQ(unbroken.status, 0) << unbroken.errors;
  run_with_kills(fixture, "killed", settings,
                 std::chrono::duration_cast<std::chrono::microseconds>(
                     std::chrono::steady_clock::now() - begin));
  expect_same_rollouts(fixture, "unbroken", "killed");
  int64_t steps = 0;
  for (const auto& event : telemetry::read_events(fixture.run_folder("unbroken") / "events.jsonl"))
    if (event["event"] == "step") {
      ++steps;
      EXPECT_GT(event.at("loss").get<double>(), 0) << event;
      EXPECT_GT(event.at("entropy").get<double>(), 0) << event;
      EXPECT_FALSE(event.contains("reward")) << event;
    }
  EXPECT_EQ(steps, kDistillSteps);
  const std::map<int64_t, double> losses = fixture.evaluation_losses("unbroken");
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_LT(losses.at(8), losses.at(4));
}
INSTANTIATE_TEST_SUITE_P(Modes, DistillRuns, ::testing::Values("lora", "full"),
                         [](const auto& one) { return std::string(one.param); });

TEST(DistillRunsGoOn, WithoutDrawingAgain) {
  const TrainFixture fixture;
  const Settings settings = distill_settings(fixture, make_teacher(fixture),
                                             {"train.save_steps=4", "train.async_save=false",
                                              "train.eval_strategy=no", "train.final_eval=false"});
  ASSERT_EQ(fixture.run("unbroken", settings).status, 0);
  TrainProcess process = fixture.start("killed", settings);
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("killed", "step", 7); }));
  process.kill_everything();
  const auto written = [&](int64_t step) {
    return fs::last_write_time(fixture.run_folder("killed") /
                               fmt::format("rollouts/step-{}.jsonl", step));
  };
  std::vector<fs::file_time_type> before;
  for (const int64_t step : {5, 6, 7}) before.push_back(written(step));
  const Ended resumed = fixture.run("killed", settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find("resuming at step 4"), std::string::npos) << resumed.errors;
  expect_same_rollouts(fixture, "unbroken", "killed");
  // Steps 5 to 7 are computed again from their texts, whose files stay.
  for (const int64_t step : {5, 6, 7})
    EXPECT_EQ(written(step), before[static_cast<size_t>(step - 5)]) << step;
}

// Two ranks share the problems of a step, and learn what one rank learns.
TEST(DistillRanks, ShareProblems) {
  const TrainFixture fixture;
  const Settings settings =
      distill_settings(fixture, make_teacher(fixture), {"train.steps=2", "distill.divergence=js"});
  ASSERT_EQ(fixture.run("one", settings).status, 0);
  for (const char* const strategy : {"ddp", "zero3"}) {
    const Ended ended =
        fixture.run(strategy, settings + Settings{"train.grad_accum=1", "--nproc", "2",
                                                  fmt::format("parallel.strategy={}", strategy)});
    ASSERT_EQ(ended.status, 0) << ended.errors;
    const std::map<int64_t, double> wanted = fixture.losses("one");
    const std::map<int64_t, double> found = fixture.losses(strategy);
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [step, loss] : wanted) EXPECT_NEAR(found.at(step), loss, 1e-5) << strategy;
    for (const auto& [step, loss] : fixture.evaluation_losses("one"))
      EXPECT_NEAR(fixture.evaluation_losses(strategy).at(step), loss, 1e-5) << strategy;
  }
}

// `convoy serve` with the teacher as the model `big`. `own`: the flags that name it.
class TeacherServer {
 public:
  TeacherServer(const TrainFixture& fixture, const Settings& own)
      : log_(fixture.run_folder("served") += ".log"),
        process_(
            Settings{"serve", "--model", tally().string(), "--dtype", "fp32", "--port", "0"} + own,
            log_) {
    const std::string sign = "listening on ";
    EXPECT_TRUE(process_.wait_until([&] {
      const std::string said = read_file(log_);
      const size_t begin = said.find(sign);
      return begin != std::string::npos && said.find("/v1", begin) != std::string::npos;
    })) << read_file(log_);
    const std::string said = read_file(log_);
    const size_t begin = said.find(sign) + sign.size();
    address_ = said.substr(begin, said.find("/v1", begin) + 3 - begin);
  }
  TeacherServer(const TrainFixture& fixture, const fs::path& adapter)
      : TeacherServer(fixture, Settings{"--adapter", "big=" + adapter.string()}) {}
  ~TeacherServer() { process_.kill_everything(); }
  TeacherServer(const TeacherServer&) = delete;
  TeacherServer& operator=(const TeacherServer&) = delete;

  Settings settings() const { return {"distill.engine=" + address_, "distill.top_k=8"}; }

 private:
  const fs::path log_;
  TrainProcess process_;
  std::string address_;
};

// A teacher that is the model before its first step: where the drawn token is among the likeliest,
// the server's number is the engine's, which is the trainer's.
TEST(DistillServed, GivesTheBitsOfTheTraining) {
  constexpr size_t kTopK = 8;
  const TrainFixture fixture;
  const TeacherServer server(fixture, Settings{"--served-name", "big"});
  const Ended ended = fixture.run(
      "run", distill_settings(fixture, "big", Settings{"train.steps=1"} + server.settings()));
  ASSERT_EQ(ended.status, 0) << ended.errors;
  std::ifstream file(fixture.run_folder("run") / "rollouts/step-1.jsonl");
  int64_t compared = 0;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    const auto drawn = row["logprobs"].get<std::vector<float>>();
    const auto tokens = row["tokens"].get<std::vector<int32_t>>();
    const auto likeliest = row["teacher"]["tokens"].get<std::vector<int32_t>>();
    const auto logprobs = row["teacher"]["logprobs"].get<std::vector<float>>();
    ASSERT_EQ(likeliest.size(), drawn.size() * kTopK);
    ASSERT_EQ(logprobs.size(), drawn.size() * (kTopK + 1));
    for (size_t at = 0; at < drawn.size(); ++at)
      for (size_t rank = 0; rank < kTopK; ++rank)
        if (likeliest[at * kTopK + rank] == tokens[tokens.size() - drawn.size() + at]) {
          EXPECT_EQ(logprobs[at * (kTopK + 1) + rank], drawn[at]) << at;
          ++compared;
        }
  }
  EXPECT_GT(compared, 30);
}

// The share of all others is what fp32 probabilities leave of 1, so the losses differ a little.
TEST(DistillServed, TeachesWhatTheFolderTeaches) {
  const TrainFixture fixture;
  const fs::path teacher = make_teacher(fixture);
  const TeacherServer server(fixture, teacher);
  for (const char* const divergence : {"reverse_kl", "forward_kl"}) {
    const std::string folder = fmt::format("{}-folder", divergence);
    const std::string served = fmt::format("{}-served", divergence);
    const Settings settings =
        Settings{"train.steps=4", fmt::format("distill.divergence={}", divergence)};
    const Ended beside = fixture.run(
        folder, distill_settings(fixture, teacher, settings + Settings{"distill.top_k=8"}));
    ASSERT_EQ(beside.status, 0) << beside.errors;
    const Ended asked =
        fixture.run(served, distill_settings(fixture, "big", settings + server.settings()));
    ASSERT_EQ(asked.status, 0) << asked.errors;
    EXPECT_NE(asked.errors.find("its 8 likeliest tokens"), std::string::npos) << asked.errors;
    const std::map<int64_t, double> wanted = fixture.losses(folder);
    const std::map<int64_t, double> found = fixture.losses(served);
    ASSERT_EQ(found.size(), 4u);
    for (const auto& [step, loss] : wanted) EXPECT_NEAR(found.at(step), loss, 1e-5) << step;
    for (const auto& [step, loss] : fixture.evaluation_losses(folder))
      EXPECT_NEAR(fixture.evaluation_losses(served).at(step), loss, 1e-5) << step;
  }
}

TEST(DistillServed, KilledAtRandomMomentsTheyEqualUnbrokenOnes) {
  const TrainFixture fixture;
  const TeacherServer server(fixture, make_teacher(fixture));
  const Settings settings =
      distill_settings(fixture, "big", Settings{"tuning.mode=lora"} + server.settings());
  const auto begin = std::chrono::steady_clock::now();
  const Ended unbroken = fixture.run("unbroken", settings);
  ASSERT_EQ(unbroken.status, 0) << unbroken.errors;
  run_with_kills(fixture, "killed", settings,
                 std::chrono::duration_cast<std::chrono::microseconds>(
                     std::chrono::steady_clock::now() - begin));
  expect_same_rollouts(fixture, "unbroken", "killed");
  const Ended shared = fixture.run(
      "shared", settings + Settings{"train.grad_accum=1", "--nproc", "2", "train.steps=2"});
  ASSERT_EQ(shared.status, 0) << shared.errors;
  for (const auto& [step, loss] : fixture.losses("shared"))
    EXPECT_NEAR(fixture.losses("unbroken").at(step), loss, 1e-5) << step;
}

// What the teacher said of a step's texts is kept with them: the server may be gone.
TEST(DistillServed, GoOnWithoutAskingAgain) {
  const TrainFixture fixture;
  const fs::path teacher = make_teacher(fixture);
  const Settings more = {"train.save_steps=4", "train.async_save=false", "train.eval_strategy=no",
                         "train.final_eval=false"};
  std::map<std::string, std::string> before;
  {
    const TeacherServer server(fixture, teacher);
    TrainProcess process =
        fixture.start("killed", distill_settings(fixture, "big", more + server.settings()));
    ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("killed", "step", 7); }));
    process.kill_everything();
    before = rollouts_of(fixture, "killed");
  }
  const TeacherServer other(fixture, teacher);
  const Ended resumed =
      fixture.run("killed", distill_settings(fixture, "big", more + other.settings()));
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find("resuming at step 4"), std::string::npos) << resumed.errors;
  const std::map<std::string, std::string> after = rollouts_of(fixture, "killed");
  for (const int64_t step : {5, 6, 7}) {
    const std::string name = fmt::format("step-{}.jsonl", step);
    EXPECT_TRUE(before.at(name) == after.at(name)) << name;
    EXPECT_NE(after.at(name).find("\"teacher\":{\"tokens\":["), std::string::npos) << name;
  }
}

// Neither needs the server: a plan reads what lies here.
TEST(DistillServed, PlansAskNoServer) {
  const TrainFixture fixture;
  const auto planned = [&](const std::string& address) {
    return fixture.run(
        "run", distill_settings(fixture, "big",
                                {"distill.engine=" + address, "distill.top_k=20", "--dry-run"}));
  };
  const Ended good = planned("http://127.0.0.1:1/v1");
  EXPECT_EQ(good.status, 0) << good.errors;
  EXPECT_EQ(good.errors.find("teacher"), std::string::npos) << "none is in memory: " << good.errors;
  const Ended bad = planned("http://127.0.0.1:99999/v1");
  EXPECT_EQ(bad.status, 2) << bad.errors;
  EXPECT_NE(bad.errors.find("distill.engine"), std::string::npos) << bad.errors;
  EXPECT_NE(bad.errors.find("99999"), std::string::npos) << bad.errors;
}

TEST(DistillPlans, HoldTheTeacher) {
  const TrainFixture fixture;
  const Ended planned = fixture.run("run", distill_settings(fixture, tally(), {"--dry-run"}));
  ASSERT_EQ(planned.status, 0) << planned.errors;
  EXPECT_NE(planned.errors.find("teacher"), std::string::npos) << planned.errors;
}

TEST(DistillTeachers, OfOtherTokensAreRefusedByTheToken) {
  const TrainFixture fixture;
  const fs::path other = fixture.rows().parent_path() / "other";
  fs::copy(tally(), other);
  nlohmann::json tokenizer = nlohmann::json::parse(read_file(other / "tokenizer.json"));
  for (auto& [piece, id] : tokenizer["model"]["vocab"].items())
    if (id == 9 || id == 10) id = 19 - id.get<int>();
  write_file_atomic(other / "tokenizer.json", tokenizer.dump());
  const Ended ended = fixture.run("run", distill_settings(fixture, other, {"--dry-run"}));
  EXPECT_EQ(ended.status, 2) << ended.errors;
  EXPECT_NE(ended.errors.find("has other tokens than"), std::string::npos) << ended.errors;
  EXPECT_NE(ended.errors.find("token 9 is"), std::string::npos) << ended.errors;
}

TEST(DistillTeachers, ThatAreNotThereAreNamed) {
  const TrainFixture fixture;
  const Ended ended =
      fixture.run("run", distill_settings(fixture, fixture.run_folder("nowhere"), {"--dry-run"}));
  EXPECT_NE(ended.status, 0);
  EXPECT_NE(ended.errors.find("distill.teacher"), std::string::npos) << ended.errors;
}

TEST(DistillEvaluations, AreOfTheTrainingAlone) {
  const fs::path source = std::getenv("CONVOY_SOURCE_DIR");
  const ScriptEnd ended = run_command(
      fmt::format("{}/convoy eval {} --model {} --limit 2 2>&1", std::getenv("CONVOY_BIN_DIR"),
                  (source / "examples/sums/distill.yaml").string(), tally().string()));
  EXPECT_EQ(ended.code, 2) << ended.out;
  EXPECT_NE(ended.out.find("eval does not ask the teacher of task distill"), std::string::npos)
      << ended.out;
}

}  // namespace
}  // namespace convoy::testing
