// SPDX-License-Identifier: Apache-2.0
//
// Tests data parallel runs of the real program: replicas as threads, global batch sizes, traces,
// and a slow rank.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

Settings in_threads(const std::string& replicas, Settings more = {}) {
  Settings settings = {"parallel.strategy=dp", "parallel.replicas=" + replicas};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST(DataParallel, ThreadsTrainTheSameBitsAsProcesses) {
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("processes", {"--nproc", "2"}).status, 0);
  const Ended threads = fixture.run("threads", in_threads("2"));
  ASSERT_EQ(threads.status, 0) << threads.errors;
  EXPECT_NE(threads.errors.find("2 rows per rank x 2 ranks x 2 accumulation = 8 a step"),
            std::string::npos)
      << threads.errors;
  expect_same_result(fixture, "processes", "threads");
}

// Trains a network with buffers, with the flags of its guide. Returns its results.
json classify(const TrainFixture& fixture, const std::string& name, const Settings& more) {
  const std::filesystem::path example =
      std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/har";
  Settings words = {"train",
                    (example / "har.yaml").string(),
                    "--data-dir",
                    (example / "sample").string(),
                    "--save-dir",
                    fixture.run_folder(name).string(),
                    "classify.widths=[8, 8]",
                    "classify.kernel_sizes=[3, 3]",
                    "--hidden-dims",
                    "16"};
  words.insert(words.end(), more.begin(), more.end());
  const Ended ended = TrainProcess(words, fixture.run_folder(name).string() + ".stderr").wait();
  EXPECT_EQ(ended.status, 0) << ended.errors;
  return json::parse(read_file(fixture.run_folder(name) / "training_results.json"));
}

TEST(DataParallel, ThreadsTrainAClassifierToTheSameBitsAsProcesses) {
  const TrainFixture fixture;
  const json processes = classify(fixture, "processes", {"--multi-gpu", "ddp", "--nproc", "2"});
  const json threads = classify(fixture, "threads", {"--multi-gpu", "dp", "parallel.replicas=2"});
  EXPECT_EQ(threads.at("history").at("train_loss"), processes.at("history").at("train_loss"));
  EXPECT_EQ(threads.at("test_loss"), processes.at("test_loss"));
  EXPECT_EQ(fixture.weights("threads"), fixture.weights("processes"));
}

TEST(DataParallel, AStoppedRunOfThreadsGoesOnInProcesses) {
  const TrainFixture fixture;
  const Settings long_run = {"train.epochs=6"};
  ASSERT_EQ(fixture.run("unbroken", {"--nproc", "2", "train.epochs=6"}).status, 0);
  TrainProcess process = fixture.start("run", in_threads("2", long_run));
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("run", "step", 4); }));
  EXPECT_EQ(process.ranks().size(), 1U);
  process.signal(SIGTERM);
  const Ended stopped = process.wait();
  ASSERT_EQ(stopped.status, 75) << stopped.errors;
  const Ended ended = fixture.run("run", {"--nproc", "2", "train.epochs=6"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  expect_same_result(fixture, "unbroken", "run");
}

TEST(DataParallel, ThreadsInSeveralProcessesAreRefused) {
  const TrainFixture fixture;
  Settings settings = in_threads("2");
  settings.insert(settings.end(), {"--nproc", "2"});
  const Ended ended = fixture.run("run", settings);
  EXPECT_EQ(ended.status, 2) << ended.errors;
  EXPECT_NE(ended.errors.find("dp, which is one process, but 2 ranks were started"),
            std::string::npos)
      << ended.errors;
}

TEST(DataParallel, TheGlobalBatchDecidesTheAccumulationOnAnyRanks) {
  const TrainFixture fixture;
  const auto settings = [](const char* ranks) {
    return Settings{"--nproc", ranks, "train.grad_accum=auto", "train.global_batch_size=8",
                    "train.epochs=6"};
  };
  TrainProcess process = fixture.start("run", settings("2"));
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("run", "step", 4); }));
  process.signal(SIGTERM);
  const Ended stopped = process.wait();
  ASSERT_EQ(stopped.status, 75) << stopped.errors;
  EXPECT_NE(stopped.errors.find("2 rows per rank x 2 ranks x 2 accumulation = 8 a step"),
            std::string::npos)
      << stopped.errors;
  const Ended ended = fixture.run("run", settings("1"));
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_NE(ended.errors.find("2 rows per rank x 1 rank x 4 accumulation = 8 a step"),
            std::string::npos)
      << ended.errors;
  Settings other = settings("1");
  other[3] = "train.global_batch_size=6";
  const Ended refused = fixture.run("run", other);
  EXPECT_EQ(refused.status, 2) << refused.errors;
  EXPECT_NE(refused.errors.find("--force-stamp global_batch"), std::string::npos) << refused.errors;
}

TEST(DataParallel, AnAccumulationThatContradictsTheGlobalBatchIsRefused) {
  const TrainFixture fixture;
  const Ended ended = fixture.run("run", {"--nproc", "2", "train.global_batch_size=64"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.errors.find("train.global_batch_size is 64, but batch_size 2 x 2 ranks x "
                              "grad_accum 2 is 8"),
            std::string::npos)
      << ended.errors;
}

TEST(DataParallel, TheLearningRateFollowsTheGlobalBatch) {
  const TrainFixture fixture;
  const Ended ended = fixture.run(
      "run", {"train.grad_accum=auto", "train.global_batch_size=12", "train.lr_scaling=linear",
              "train.lr_reference_batch=4", "train.warmup_ratio=0", "train.epochs=1"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_NE(ended.errors.find("learning rate: 0.002 x 12 / 4 (lr_scaling linear) = 0.006"),
            std::string::npos)
      << ended.errors;
  EXPECT_NE(ended.errors.find("without warm-up"), std::string::npos) << ended.errors;
  const auto events = telemetry::read_events(fixture.run_folder("run") / "events.jsonl");
  const auto step = std::find_if(events.begin(), events.end(),
                                 [](const auto& event) { return event["event"] == "step"; });
  ASSERT_NE(step, events.end());
  EXPECT_DOUBLE_EQ((*step)["learning_rate"].template get<double>(), 0.006);
  const json metrics = json::parse(read_file(fixture.run_folder("run") / "metrics.json"));
  EXPECT_EQ(metrics["lr_scaling"], "linear");
  EXPECT_DOUBLE_EQ(metrics["peak_learning_rate"].get<double>(), 0.006);
}

// Returns the begin and the end of each slice `name` of a trace.
std::vector<std::pair<double, double>> slices(const json& trace, const std::string& name) {
  std::vector<std::pair<double, double>> found;
  for (const json& event : trace.at("traceEvents"))
    if (event["name"] == name && event["ph"] == "X")
      found.emplace_back(event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
  return found;
}

TEST(DataParallel, ATraceShowsReductionsWithinBackward) {
  const TrainFixture fixture;
  const Ended ended =
      fixture.run("run", {"--nproc", "2", "tuning.mode=full", "parallel.bucket_mb=1",
                          "logging.trace_steps=2", "train.epochs=2", "train.save_strategy=no"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  for (const int rank : {0, 1}) {
    const json trace = json::parse(read_file(fixture.run_folder("run") / "traces" /
                                             ("rank-" + std::to_string(rank) + ".json")));
    for (const char* step : {"step 3", "step 4"}) EXPECT_EQ(slices(trace, step).size(), 1U) << step;
    EXPECT_TRUE(slices(trace, "step 5").empty());
    EXPECT_EQ(slices(trace, "optimize").size(), 2U);
    const auto backwards = slices(trace, "backward");
    ASSERT_EQ(backwards.size(), 4U);  // two micro-batches in each step
    int within = 0;
    for (const json& event : trace.at("traceEvents"))
      if (event["name"] == "world all_reduce" && event["ph"] == "b")
        for (const size_t last : {1, 3})
          within += event["ts"] > backwards[last].first && event["ts"] < backwards[last].second;
    // The gradients take 14 MB, in buckets of 1 MiB; the embedding and the head exceed a bucket.
    EXPECT_GE(within, 2 * 6);
  }
}

TEST(DataParallel, ATraceOfARunThatIsTooShortIsWarnedOf) {
  const TrainFixture fixture;
  const Ended ended = fixture.run("run", {"logging.trace_steps=2", "train.steps=2"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_NE(ended.errors.find("no step was traced"), std::string::npos) << ended.errors;
}

bool is_rank(pid_t process, const std::string& rank) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ");
  for (std::string variable; std::getline(file, variable, '\0');)
    if (variable == "RANK=" + rank) return true;
  return false;
}

TEST(DataParallel, ARankThatIsSlowIsNamed) {
  const TrainFixture fixture;
  TrainProcess process =
      fixture.start("run", {"--nproc", "2", "train.epochs=8", "train.save_strategy=no"});
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("run", "step", 1); }));
  const auto said = [&] {
    for (const auto& event : telemetry::read_events(fixture.run_folder("run") / "events.jsonl"))
      if (event["event"] == "warning" &&
          event["message"].get<std::string>().find("rank 1 is slow: over 20 steps") == 0)
        return true;
    return false;
  };
  std::vector<pid_t> slow;
  for (const pid_t rank : process.ranks())
    if (is_rank(rank, "1")) slow.push_back(rank);
  ASSERT_EQ(slow.size(), 1U);
  // The rank is stopped for four fifths of the time.
  while (process.running() && !said()) {
    ::kill(slow[0], SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ::kill(slow[0], SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const Ended ended = process.wait();
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_TRUE(said());
  EXPECT_NE(ended.errors.find("warning: rank 1 is slow"), std::string::npos) << ended.errors;
}

}  // namespace
}  // namespace convoy::testing
