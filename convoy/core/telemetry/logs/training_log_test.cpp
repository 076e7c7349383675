// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/logs/training_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/folder_test.h"
#include "convoy/core/telemetry/runs/run_history.h"

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TrainingLogOptions options_for(const fs::path& folder) {
  TrainingLogOptions options;
  options.run_folder = folder;
  options.tensorboard_folder = folder / "tb";
  options.total_steps = 4;
  options.total_epochs = 2;
  options.world_size = 2;
  options.progress.style = ProgressStyle::None;
  return options;
}

StepMetrics step_of(int64_t step, double loss) {
  return {.step = step,
          .epoch = static_cast<double>(step) / 2,
          .loss = loss,
          .learning_rate = 1e-3,
          .grad_norm = 0.5,
          .rows = 8,
          .tokens = 100,
          .supervised_tokens = 40,
          .seconds = 0.5,
          .peak_memory_bytes = 1 << 30,
          .rank_losses = {loss - 0.1, loss + 0.1},
          .rank_memory_bytes = {1 << 30, 1 << 29},
          .rank_wait_seconds = {0.25, 0}};
}

json last_row(const fs::path& folder, const std::string& event) {
  json found;
  for (const auto& row : read_events(folder / "events.jsonl"))
    if (row["event"] == event) found = row;
  return found;
}

TEST(TrainingLog, TheShareOfThePeakIsToldWhereThePeakIsKnown) {
  const TestFolder folder;
  for (const double peak : {0.0, 8e9}) {
    TrainingLogOptions options = options_for(folder.path());
    options.peak_flops = peak;
    TrainingLog log(options, Log(LogLevel::Quiet));
    StepMetrics step = step_of(1, 2);
    step.flops = 2e9;  // the step took half a second
    log.step(step);
    log.end(RunEnd::Finished);
    const json figures = last_row(folder.path(), "end")["figures"];
    EXPECT_EQ(figures["train_flops_per_second"], 4e9);
    EXPECT_EQ(figures["train_tokens"], 100);
    EXPECT_EQ(figures["train_supervised_tokens"], 40);
    EXPECT_EQ(figures.contains("train_mfu"), peak > 0);
    EXPECT_EQ(last_row(folder.path(), "step").contains("mfu"), peak > 0);
  }
  EXPECT_EQ(last_row(folder.path(), "step")["mfu"], 0.5);
  EXPECT_EQ(last_row(folder.path(), "end")["figures"]["train_mfu"], 0.5);
}

// Keeps what it receives.
class KeptReport : public ReportSink {
 public:
  using Rows = std::vector<std::pair<int64_t, std::map<std::string, double>>>;

  KeptReport(Rows& rows, std::vector<int>& ends) : rows_(rows), ends_(ends) {}
  void add_row(int64_t step, const std::map<std::string, double>& figures) override {
    rows_.emplace_back(step, figures);
  }
  void end(int exit_code) override { ends_.push_back(exit_code); }

 private:
  Rows& rows_;
  std::vector<int>& ends_;
};

TEST(TrainingLog, ReportsGetTheTagsOfTensorBoardWithoutItsFiles) {
  const TestFolder folder;
  TrainingLogOptions options = options_for(folder.path());
  options.tensorboard_folder.clear();
  options.logging_steps = 2;
  KeptReport::Rows rows;
  std::vector<int> ends;
  std::vector<std::unique_ptr<ReportSink>> reports;
  reports.push_back(std::make_unique<KeptReport>(rows, ends));
  TrainingLog log(options, Log(LogLevel::Quiet), std::move(reports));
  log.step(step_of(1, 3));
  log.step(step_of(2, 1));
  log.evaluation({.step = 2, .loss = 0.5, .rows = 4, .seconds = 2, .others = {{"exact_match", 1}}});
  log.scalars(2, {{"kernel/time", 0.1}});
  log.end(RunEnd::Stopped);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].first, 2);
  EXPECT_EQ(rows[0].second.at("train/loss"), 2);  // the mean since the last point
  EXPECT_EQ(rows[0].second.at("train/learning_rate"), 1e-3);
  EXPECT_EQ(rows[0].second.at("rank/1/loss"), 1.1);
  EXPECT_EQ(rows[1].second.at("eval/loss"), 0.5);
  EXPECT_EQ(rows[1].second.at("eval/exact_match"), 1);
  EXPECT_EQ(rows[1].second.count("train/loss"), 0u);
  EXPECT_EQ(rows[2].second, (std::map<std::string, double>{{"kernel/time", 0.1}}));
  EXPECT_EQ(ends, std::vector<int>{0});
  EXPECT_FALSE(fs::exists(folder.path() / "tb"));
}

TEST(TrainerState, IsByteForByteWhatTransformersWrites) {
  const fs::path golden =
      fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "tests/golden/telemetry/trainer_state.json";
  const std::string text = read_file(golden);
  // JSON has no NaN and no Infinity, which Python writes, so the parser gets null in their places.
  std::string plain = text;
  plain.replace(plain.find("NaN"), 3, "null");
  plain.replace(plain.find("Infinity"), 8, "null");
  TrainerState state = parse_trainer_state(plain);
  state.log_history[1]["grad_norm"] = std::nan("");
  state.log_history[2]["loss"] = INFINITY;
  EXPECT_EQ(trainer_state_json(state), text);
}

TEST(TrainerState, DamageIsACheckpointError) {
  EXPECT_THROW(parse_trainer_state("{"), CheckpointError);
  EXPECT_THROW(parse_trainer_state(R"({"log_history": 3})"), CheckpointError);
  EXPECT_THROW(parse_trainer_state(R"({"epoch": "x"})"), CheckpointError);
}

TEST(TrainingLog, EvaluationsAreShownWhereProgressIs) {
  for (const auto& [style, shown] :
       {std::pair(ProgressStyle::Lines, "step 4: eval loss 1.0000, perplexity 2.7183\n"),
        {ProgressStyle::None, ""}}) {
    const TestFolder folder;
    const fs::path out = folder.path() / "out";
    const int descriptor = ::open(out.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    TrainingLogOptions options = options_for(folder.path());
    options.progress.style = style;
    options.progress.descriptor = descriptor;
    TrainingLog log(options, Log(LogLevel::Quiet));
    log.evaluation({.step = 4, .epoch = 2, .loss = 1.0, .rows = 10, .batches = 5});
    ::close(descriptor);
    EXPECT_EQ(read_file(out), shown);
  }
}

TEST(TrainingLog, FansOutToRowsHistoryAndFigures) {
  const TestFolder folder;
  TrainingLogOptions options = options_for(folder.path());
  options.logging_steps = 2;
  TrainingLog log(options, Log(LogLevel::Quiet));
  for (int64_t step = 1; step <= 4; ++step)
    log.step(step_of(step, 5.0 - static_cast<double>(step)));
  log.evaluation({.step = 4,
                  .epoch = 2,
                  .loss = 1.0,
                  .rows = 10,
                  .batches = 5,
                  .supervised_tokens = 50,
                  .seconds = 2});
  log.checkpoint({.step = 4, .path = "checkpoints/step-00000004", .seconds = 0.1, .best = true});
  log.set_best_checkpoint("checkpoints/step-00000004");
  EXPECT_NE(
      log.trainer_state_text().find("\"best_model_checkpoint\": \"checkpoints/step-00000004\""),
      std::string::npos);
  log.end(RunEnd::Finished);
  log.end(RunEnd::Failed);

  const RunHistory run = read_run(folder.path());
  EXPECT_EQ(run.state, RunState::Finished);
  EXPECT_EQ(run.steps, 4);
  EXPECT_EQ(run.train_loss.size(), 4u);
  EXPECT_EQ(run.tokens_per_second.front().value, 200);
  ASSERT_EQ(run.eval_loss.size(), 1u);

  EXPECT_EQ(read_file(folder.path() / "trainer_state.json"), log.trainer_state_text());
  const TrainerState& state = log.trainer_state();
  ASSERT_EQ(state.log_history.size(), 4u);  // two training points, one evaluation, the summary
  EXPECT_EQ(state.log_history[0]["loss"], 3.5);
  EXPECT_EQ(state.log_history[0]["step"], 2);
  EXPECT_EQ(state.log_history[2]["eval_samples_per_second"], 5.0);
  EXPECT_EQ(state.log_history[3]["train_loss"], 2.5);
  EXPECT_EQ(state.best_metric, 1.0);
  EXPECT_EQ(state.num_input_tokens_seen, 400);
  const json figures = log.final_figures();
  EXPECT_DOUBLE_EQ(figures["eval_perplexity"], std::exp(1.0));
  EXPECT_EQ(figures["train_loss"], 2.5);
}

TEST(TrainingLog, FurtherFiguresOfStepsAreInRowsAndAsMeansInTheHistory) {
  const TestFolder folder;
  TrainingLogOptions options = options_for(folder.path());
  options.logging_steps = 2;
  options.has_perplexity = false;
  TrainingLog log(options, Log(LogLevel::Quiet));
  for (const int64_t step : {1, 2, 3, 4}) {
    StepMetrics metrics = step_of(step, 2);
    metrics.others = {{"rewards/margins", 0.5 * static_cast<double>(step)}};
    if (step == 3) metrics.others["rewards/rejected"] = 3;
    log.step(metrics);
  }
  log.evaluation({.step = 4, .loss = 0.5, .rows = 3, .others = {{"accuracy", 0.75}}});
  EXPECT_EQ(last_row(folder.path(), "step")["rewards/margins"], 2);
  const json& history = log.trainer_state().log_history;
  EXPECT_EQ(history[0]["rewards/margins"], 0.75);
  EXPECT_EQ(history[1]["rewards/margins"], 1.75);
  EXPECT_FALSE(history[0].contains("rewards/rejected"));
  EXPECT_EQ(history[1]["rewards/rejected"], 3) << "a mean over the steps that have it";
  EXPECT_EQ(history[2]["eval_accuracy"], 0.75);
  const json evaluation = last_row(folder.path(), "eval");
  EXPECT_EQ(evaluation["accuracy"], 0.75);
  EXPECT_FALSE(evaluation.contains("perplexity"));
}

TEST(TrainingLog, AResumedRunContinuesItsHistoryAndReplacesRerunSteps) {
  const TestFolder folder;
  std::string saved;
  {
    TrainingLog log(options_for(folder.path()), Log(LogLevel::Quiet));
    log.step(step_of(1, 4));
    log.step(step_of(2, 3));
    saved = log.trainer_state_text();
    log.step(step_of(3, 2));
  }
  EXPECT_EQ(read_run(folder.path()).state, RunState::Failed);
  TrainingLogOptions options = options_for(folder.path());
  options.resume_step = 2;
  options.resume_state = saved;
  TrainingLog log(options, Log(LogLevel::Quiet));
  log.step(step_of(3, 2.5));
  log.step(step_of(4, 1.5));
  log.end(RunEnd::Finished);
  const RunHistory run = read_run(folder.path());
  ASSERT_EQ(run.train_loss.size(), 4u);
  EXPECT_EQ(run.train_loss[2].value, 2.5);
  EXPECT_EQ(log.trainer_state().log_history.size(), 5u);
  EXPECT_EQ(log.trainer_state().num_input_tokens_seen, 400);
}

TEST(TrainingLog, AFullDiskNeverStopsTheRun) {
  const TestFolder folder;
  fs::create_symlink("/dev/full", folder.path() / "events.jsonl");
  ::testing::internal::CaptureStderr();
  {
    TrainingLogOptions options = options_for(folder.path());
    options.tensorboard_folder = "";
    TrainingLog log(options, Log());
    for (int64_t step = 1; step <= 4; ++step) log.step(step_of(step, 1));
    log.end(RunEnd::Finished);
    EXPECT_EQ(log.trainer_state().global_step, 4);
  }
  const std::string messages = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(messages.begin(), messages.end(), '\n'), 1) << messages;
}

TEST(TrainingLog, FailureAndStopAreStates) {
  const TestFolder failed;
  {
    TrainingLog log(options_for(failed.path()), Log(LogLevel::Quiet));
    log.step(step_of(1, 1));
    log.failure(NumericError("loss is NaN", {.rank = 1, .step = 2}));
  }
  EXPECT_EQ(read_run(failed.path()).state, RunState::Failed);
  EXPECT_EQ(read_run(failed.path()).failure, "loss is NaN");
  const TestFolder stopped;
  {
    TrainingLog log(options_for(stopped.path()), Log(LogLevel::Quiet));
    log.step(step_of(1, 1));
    log.end(RunEnd::Stopped);
  }
  EXPECT_EQ(read_run(stopped.path()).state, RunState::Stopped);
}

}  // namespace
}  // namespace convoy::telemetry
