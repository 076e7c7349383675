// SPDX-License-Identifier: Apache-2.0
//
// Tests evaluations that generate answers: their figures do not depend on the ranks that answer,
// training continues as without them, and no rank waits for them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "files/run_script.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

const Settings kAnswers = {"train.predict_with_generate=true", "train.eval_strategy=steps",
                           "train.generation_max_new_tokens=6",
                           "train.eval_metrics=[rougeL, exact_match, sari, rougeL_stem]"};
const Settings kFullTuning = {"tuning.mode=full", "train.learning_rate=1e-4"};
const Settings kZero3 = {"--nproc", "2", "parallel.strategy=zero3", "parallel.keep_whole_below=0"};

json evaluation_at(const TrainFixture& fixture, const std::string& name, int64_t step) {
  for (const auto& event : telemetry::read_events(fixture.run_folder(name) / "events.jsonl"))
    if (event["event"] == "eval" && event["step"] == step) return event;
  return {};
}

json metrics_of(const TrainFixture& fixture, const std::string& name) {
  return json::parse(read_file(fixture.run_folder(name) / "metrics.json"));
}

std::string samples_of(const TrainFixture& fixture, const std::string& name, int64_t step) {
  return read_file(fixture.run_folder(name) / fmt::format("samples/step-{}.jsonl", step));
}

struct Way {
  std::string name;
  Settings settings;
};

void PrintTo(const Way& way, std::ostream* stream) { *stream << way.name; }

class GeneratingEvaluation : public ::testing::TestWithParam<Way> {};

TEST_P(GeneratingEvaluation, LeavesTrainingAsItIsWithoutIt) {
  const Settings settings =
      GetParam().settings + Settings{"train.eval_strategy=steps", "train.eval_steps=2",
                                     "train.gradient_checkpointing=true"};
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("plain", settings).status, 0);
  const Ended ended = fixture.run("answering", settings + kAnswers);
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_EQ(fixture.evaluation_losses("plain"), fixture.evaluation_losses("answering"));
  expect_same_result(fixture, "plain", "answering");
  EXPECT_TRUE(evaluation_at(fixture, "answering", 2).contains("rougeL"));
}

INSTANTIATE_TEST_SUITE_P(
    Ways, GeneratingEvaluation,
    ::testing::Values(Way{"Lora", {}}, Way{"Full", kFullTuning}, Way{"LoraDdp", {"--nproc", "2"}},
                      Way{"FullZero1",
                          kFullTuning + Settings{"--nproc", "2", "parallel.strategy=zero1"}},
                      Way{"LoraZero3", kZero3}, Way{"FullZero3", kFullTuning + kZero3},
                      Way{"LoraDp", {"parallel.strategy=dp", "parallel.replicas=2"}}),
    [](const auto& one) { return one.param.name; });

// With a learning rate of zero the weights are the same under every strategy, so the answers can be
// compared.
TEST(GeneratingEvaluationFigures, AreTheSameForAllWhoAnswer) {
  const TrainFixture fixture;
  fixture.set_validation_rows(7);
  const Settings still =
      kAnswers + Settings{"train.learning_rate=0", "train.steps=1", "train.eval_steps=1",
                          "train.save_strategy=no", "train.generation_temperature=0.9"};
  ASSERT_EQ(fixture.run("one", still).status, 0);
  const std::string samples = samples_of(fixture, "one", 1);
  const json wanted = evaluation_at(fixture, "one", 1);
  EXPECT_EQ(wanted["generated_rows"], 7);
  EXPECT_EQ(std::count(samples.begin(), samples.end(), '\n'), 7);
  const json first = json::parse(samples.substr(0, samples.find('\n')));
  EXPECT_EQ(first["pred"].get<std::string>().find(first["input"].get<std::string>()),
            std::string::npos)
      << "the prompt is no part of the answer";
  const std::vector<Way> ways = {
      {"ddp", {"--nproc", "2"}},
      {"three", {"--nproc", "3"}},
      {"zero2", {"--nproc", "2", "parallel.strategy=zero2"}},
      {"zero3", kZero3},
      {"zero3of3",
       {"--nproc", "3", "parallel.strategy=zero3", "parallel.keep_whole_below=0",
        "generation.batch_size=1"}},
      {"full zero3", kFullTuning + kZero3 + Settings{"train.learning_rate=0"}},
      {"dp", {"parallel.strategy=dp", "parallel.replicas=2"}}};
  for (const Way& way : ways) {
    const Ended ended = fixture.run(way.name, still + way.settings);
    ASSERT_EQ(ended.status, 0) << way.name << ended.errors;
    EXPECT_EQ(samples_of(fixture, way.name, 1), samples) << way.name;
    const json found = evaluation_at(fixture, way.name, 1);
    for (const char* figure : {"rougeL", "rougeL_stem", "sari", "exact_match", "generated_rows"})
      EXPECT_EQ(found[figure], wanted[figure]) << way.name << " " << figure;
  }
}

// Training gives the same answers and figures as `convoy eval`, for a validation file and for a
// share of the training file.
TEST(GeneratingEvaluationFigures, AreThoseOfTheEvalCommand) {
  const TrainFixture fixture;
  for (const std::string val_path : {"", "data.val_path="}) {
    const std::string name = val_path.empty() ? "file" : "share";
    Settings settings =
        kAnswers + Settings{"train.learning_rate=0", "train.steps=1", "train.save_strategy=no"};
    if (!val_path.empty()) settings.push_back(val_path);
    const Ended trained = fixture.run(name, settings);
    ASSERT_EQ(trained.status, 0) << trained.errors;
    const ScriptEnd ended =
        run_script(fixture.run_folder(name).parent_path(),
                   fmt::format("'{}/convoy' eval run.yaml train.eval_strategy=steps {} --split val "
                               "--generate --greedy "
                               "--dtype fp32 --max-new-tokens 6 --output-dir {}-results --json",
                               std::getenv("CONVOY_BIN_DIR"), val_path, name));
    ASSERT_EQ(ended.code, 0) << ended.out;
    EXPECT_EQ(read_file(fixture.run_folder(name + "-results") / "samples.jsonl"),
              samples_of(fixture, name, 1));
    const json figures = metrics_of(fixture, name + "-results");
    const json evaluation = evaluation_at(fixture, name, 1);
    for (const char* figure : {"rougeL", "rougeL_stem", "sari", "exact_match"})
      EXPECT_EQ(figures[figure], evaluation[figure]) << figure;
    EXPECT_TRUE(figures["schema_compliance"].is_null());
  }
}

TEST(GeneratingEvaluationFigures, DecideBestAndAreWrittenEverywhere) {
  const TrainFixture fixture;
  const Ended ended = fixture.run(
      "run", kAnswers + Settings{"train.eval_steps=1", "train.save_steps=1", "train.epochs=2",
                                 "train.learning_rate=0.05", "train.metric_for_best_model=rougeL",
                                 "train.greater_is_better=true"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  double best = -1;
  int64_t best_step = 0;
  for (const auto& event : telemetry::read_events(fixture.run_folder("run") / "events.jsonl")) {
    if (event["event"] != "eval" || event["rougeL"].get<double>() <= best) continue;
    best = event["rougeL"];
    best_step = event["step"];
  }
  const json metrics = metrics_of(fixture, "run");
  EXPECT_EQ(metrics["best_eval_rougeL"], best);
  EXPECT_EQ(metrics["best_step"], best_step);
  EXPECT_EQ(metrics["status"], "finished");
  EXPECT_EQ(metrics["eval_gen_new_tokens"], 6);
  EXPECT_EQ(metrics["eval_num_beams"], 1);
  EXPECT_TRUE(fixture.weights("run") ==
              read_file(fixture.checkpoint("run", best_step) / "adapter_model.safetensors"));
  const json state = json::parse(read_file(
      fixture.checkpoint("run", fixture.checkpoint_steps("run").back()) / "trainer_state.json"));
  EXPECT_EQ(state["best_metric"], best);
  EXPECT_EQ(state["best_global_step"], best_step);
  EXPECT_TRUE(std::any_of(state["log_history"].begin(), state["log_history"].end(),
                          [](const json& entry) { return entry.contains("eval_rougeL"); }));
  EXPECT_NE(ended.errors.find(", rougeL "), std::string::npos) << ended.errors;
}

// At a learning rate of zero the answers never get better. A larger ROUGE-L counts here, not a
// smaller loss.
TEST(GeneratingEvaluationFigures, EndTheRunWhenTheyGetNoBetter) {
  const TrainFixture fixture;
  const Settings settings =
      kAnswers + Settings{"train.eval_steps=1", "train.steps=6", "train.early_stopping_patience=2",
                          "train.metric_for_best_model=rougeL"};
  const Ended still = fixture.run("still", settings + Settings{"train.learning_rate=0"});
  ASSERT_EQ(still.status, 0) << still.errors;
  EXPECT_EQ(fixture.num_events("still", "step"), 3) << still.errors;
  EXPECT_EQ(metrics_of(fixture, "still")["best_step"], 1);
  EXPECT_NE(still.errors.find("rougeL"), std::string::npos) << still.errors;
  // An answer would count as better only with a ROUGE-L that is 2 larger, which no step reaches.
  const Ended high = fixture.run(
      "high", settings + Settings{"train.learning_rate=0.01", "train.early_stopping_threshold=2"});
  ASSERT_EQ(high.status, 0) << high.errors;
  EXPECT_EQ(fixture.num_events("high", "step"), 3) << high.errors;
}

// An evaluation loss of 0.5 must not be compared with a ROUGE-L.
TEST(GeneratingEvaluationFigures, BestIsSoughtAnewWhenAnotherFigureDecides) {
  const TrainFixture fixture;
  const Settings settings = kAnswers + Settings{"train.eval_steps=1", "train.save_steps=1"};
  ASSERT_EQ(fixture.run("run", settings + Settings{"train.steps=2"}).status, 0);
  const Ended resumed =
      fixture.run("run", settings + Settings{"train.steps=4", "train.metric_for_best_model=sari"});
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find("the earlier best does not count"), std::string::npos)
      << resumed.errors;
  const json metrics = metrics_of(fixture, "run");
  EXPECT_GE(metrics["best_step"], 3);
  EXPECT_EQ(metrics["best_eval_sari"], evaluation_at(fixture, "run", metrics["best_step"])["sari"]);
}

TEST(GeneratingEvaluationLimits, TheTimeBudgetEndsItAndTheShareIsSaid) {
  const TrainFixture fixture;
  fixture.set_validation_rows(300);
  const Settings settings =
      kAnswers + Settings{"train.steps=1", "train.eval_generate_rows=0", "generation.batch_size=1",
                          "train.eval_generate_seconds=0.001", "train.save_strategy=no"};
  for (const std::string name : {"none", "zero3"}) {
    const Ended ended = fixture.run(name, settings + (name == "none" ? Settings{} : kZero3));
    ASSERT_EQ(ended.status, 0) << ended.errors;
    const double rows = evaluation_at(fixture, name, 1)["generated_rows"];
    EXPECT_GE(rows, 1);
    EXPECT_LT(rows, 300);
    EXPECT_NE(ended.errors.find(fmt::format("{:.0f} of 300 validation rows were answered", rows)),
              std::string::npos)
        << ended.errors;
  }
}

TEST(GeneratingEvaluationLimits, AStopDoesNotWaitForTheAnswers) {
  const TrainFixture fixture;
  fixture.set_validation_rows(4000);
  const Settings settings = kAnswers + Settings{"--nproc",
                                                "2",
                                                "train.eval_steps=2",
                                                "train.eval_generate_rows=0",
                                                "train.generation_max_new_tokens=500",
                                                "train.save_steps=1000"};
  TrainProcess process = fixture.start("run", settings);
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("run", "step", 2); }));
  process.signal(SIGTERM);
  const Ended stopped = process.wait();
  EXPECT_EQ(stopped.status, 75) << stopped.errors;
  EXPECT_EQ(fixture.checkpoint_steps("run"), std::vector<int64_t>{2});
  EXPECT_EQ(fixture.num_events("run", "eval"), 0);
}

TEST(GeneratingEvaluationLimits, RefusesAtTheStartWhatItWillNotProduce) {
  const TrainFixture fixture;
  const Ended unmarked =
      fixture.run("run", kAnswers + Settings{"train.metric_for_best_model=numeric_match"});
  EXPECT_EQ(unmarked.status, 2) << unmarked.errors;
  EXPECT_NE(unmarked.errors.find("none of the 6 validation rows marks its answer"),
            std::string::npos)
      << unmarked.errors;
}

TEST(GeneratingEvaluationLimits, WithoutAnswersTheLossDecidesWhichCheckpointIsBest) {
  const TrainFixture fixture;
  const Ended loss_only = fixture.run("run", {"train.metric_for_best_model=rougeL"});
  EXPECT_EQ(loss_only.status, 0) << loss_only.errors;
  EXPECT_NE(loss_only.errors.find("eval_loss decides which checkpoint is best"), std::string::npos)
      << loss_only.errors;
}

}  // namespace
}  // namespace convoy::testing
