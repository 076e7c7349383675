// SPDX-License-Identifier: Apache-2.0
//
// Classifiers through the loop: against torch's steps (tests/golden/signals), and over ranks.
#include "convoy/train/loop/classify_objective.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/train/loop/train_loop.h"
#include "convoy/train/parallel/trained_parameters.h"
#include "files/temporary_folder.h"
#include "ranks/ranks.h"

namespace convoy::train {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kClasses = 6;

const io::SafetensorsFile& golden_file() {
  static const io::SafetensorsFile file(fs::path(std::getenv("CONVOY_SOURCE_DIR")) /
                                        "tests/golden/signals/network.safetensors");
  return file;
}

at::Tensor golden(const std::string& name) {
  return device::copy_to_tensor(golden_file().require(name));
}

nn::SignalClassifierSpec golden_network() {
  return {.encoder = {.num_channels = 9,
                      .window_rows = 40,
                      .pooling = nn::ChannelPooling::Joint,
                      .widths = {8, 16, 24},
                      .kernel_sizes = {5, 5, 3}},
          .hidden = {20},
          .dropout = 0,
          .num_classes = kClasses};
}

data::SignalWindows windows_of(const at::Tensor& x_NLC, const at::Tensor& classes_N) {
  data::SignalWindows windows;
  windows.num_windows = x_NLC.size(0);
  windows.window_rows = x_NLC.size(1);
  for (int64_t channel = 0; channel < x_NLC.size(2); ++channel)
    windows.channel_names.push_back(std::to_string(channel));
  const float* const values = x_NLC.const_data_ptr<float>();
  windows.values.assign(values, values + x_NLC.numel());
  const int64_t* const classes = classes_N.const_data_ptr<int64_t>();
  windows.classes.assign(classes, classes + classes_N.numel());
  return windows;
}

data::SignalWindows golden_windows() { return windows_of(golden("x"), golden("y")); }

// The first `count` windows of the golden file, repeated.
data::SignalWindows some_windows(int64_t count) {
  std::vector<int64_t> chosen;
  for (int64_t index = 0; index < count; ++index) chosen.push_back(index % 12);
  return golden_windows().selected(chosen);
}

settings::TrainSettings golden_settings() {
  settings::TrainSettings settings;
  settings.task = "classify";
  settings.train.steps = 4;
  settings.train.batch_size = 12;
  settings.train.grad_accum = 1;
  settings.train.learning_rate = 1e-2;
  settings.train.weight_decay = 1e-2;
  settings.train.max_grad_norm = 0.5;
  settings.train.schedule.lr_scheduler_type = "constant";
  settings.train.eval_strategy = "no";
  settings.train.save_strategy = "no";
  settings.train.final_eval = false;
  return settings;
}

// A run from the golden start, in a folder of its own.
class SignalRun {
 public:
  SignalRun(const settings::TrainSettings& settings, data::SignalWindows windows,
            comm::Group& group, const fs::path& folder, nn::SignalClassifierSpec spec)
      : settings_(settings),
        windows_(std::move(windows)),
        group_(group),
        folder_(folder),
        order_(windows_.num_windows, {.batch_size = settings.train.batch_rows(),
                                      .grad_accum = settings.train.accumulation(),
                                      .world_size = group.size(),
                                      .shuffle = false}),
        model(spec, 42),
        strategy_(parallel::make_strategy(settings.parallel, group)),
        objective(model, windows_, order_, windows_,
                  {.label_smoothing = 0.1, .eval_batch_size = 5}) {}

  LoopResult go() {
    optim::AdamW optimizer({.weight_decay = settings_.train.weight_decay},
                           parallel::prepare_units(*strategy_, model.units(), parameters_));
    model.set_residency(strategy_->residency());
    const int64_t steps = total_steps(settings_.train, order_.steps_per_epoch());
    const optim::LearningRateSchedule schedule(settings_.train.schedule,
                                               settings_.train.learning_rate, steps);
    checkpoint::CheckpointStore checkpoints(folder_ / "checkpoints", 3);
    std::optional<telemetry::TrainingLog> log;
    if (group_.rank() == 0) {
      telemetry::TrainingLogOptions options;
      options.run_folder = folder_;
      options.total_steps = steps;
      options.counts_tokens = false;
      options.progress.style = telemetry::ProgressStyle::None;
      log.emplace(std::move(options), Log(LogLevel::Quiet));
    }
    telemetry::FlightWriter flight;
    const checkpoint::Stamp stamp;
    const std::atomic<bool> stop_requested = false;
    const LoopParts parts{.objective = objective,
                          .parameters = parameters_,
                          .parameter_group = "model",
                          .strategy = *strategy_,
                          .optimizer = optimizer,
                          .schedule = schedule,
                          .stamp = stamp,
                          .checkpoints = checkpoints,
                          .log = log ? &*log : nullptr,
                          .flight = flight,
                          .files_alongside = {},
                          .buffers = model.buffers(),
                          .stop_requested = stop_requested};
    return run_training_loop(parts, settings_, {});
  }

  std::vector<nlohmann::json> events(const std::string& kind) const {
    std::vector<nlohmann::json> rows;
    std::ifstream file(folder_ / "events.jsonl");
    for (std::string line; std::getline(file, line);)
      if (auto event = nlohmann::json::parse(line); event["event"] == kind)
        rows.push_back(std::move(event));
    return rows;
  }

  // Whole on every rank, whatever the strategy.
  std::vector<at::Tensor> values() {
    std::vector<std::unique_ptr<nn::UnitUse>> uses;
    for (size_t unit = 0; unit < model.units().size(); ++unit)
      uses.push_back(std::make_unique<nn::UnitUse>(model.residency(), unit));
    std::vector<at::Tensor> all;
    for (const nn::NamedTensor& parameter : model.parameters())
      all.push_back(parameter.value.detach().clone());
    for (const nn::NamedTensor& buffer : model.buffers()) all.push_back(buffer.value.clone());
    return all;
  }

 private:
  settings::TrainSettings settings_;
  data::SignalWindows windows_;
  comm::Group& group_;
  fs::path folder_;
  data::EpochOrder order_;

 public:
  nn::SignalClassifier model;

 private:
  std::vector<nn::NamedTensor> parameters_ = model.trained_parameters();
  std::unique_ptr<parallel::Strategy> strategy_;

 public:
  ClassifyObjective objective;
};

double difference(const at::Tensor& found, const at::Tensor& wanted) {
  return (found - wanted).abs().max().item<double>();
}

TEST(ClassifyObjective, TakesTorchsSteps) {
  const testing::TemporaryFolder folder;
  const auto group = comm::join_group({}, std::chrono::seconds(1));
  SignalRun run(golden_settings(), golden_windows(), *group, folder.path(), golden_network());
  run.go();
  const std::vector<nlohmann::json> steps = run.events("step");
  ASSERT_EQ(steps.size(), 4U);
  const at::Tensor losses = golden("losses");
  const at::Tensor norms = golden("norms");
  for (size_t step = 0; step < steps.size(); ++step) {
    const auto at = static_cast<int64_t>(step);
    EXPECT_NEAR(steps[step]["loss"].get<double>(), losses[at].item<double>(), 2e-5) << step;
    EXPECT_NEAR(steps[step]["grad_norm"].get<double>(), norms[at].item<double>(), 2e-4) << step;
    EXPECT_EQ(steps[step]["rows"], 12);
    EXPECT_TRUE(steps[step].contains("samples_per_second"));
    EXPECT_FALSE(steps[step].contains("tokens"));
  }
  for (const nn::NamedTensor& parameter : run.model.parameters())
    EXPECT_LT(difference(parameter.value.detach(), golden("end." + parameter.name)), 2e-4)
        << parameter.name;
  for (const nn::NamedTensor& buffer : run.model.buffers())
    EXPECT_LT(difference(buffer.value, golden("end." + buffer.name)), 1e-4) << buffer.name;
}

TEST(ClassifyObjective, RemembersItsEpochsAlsoAcrossAStop) {
  EpochHistory whole;
  EpochHistory first;
  const StepOutcome steps[] = {
      {.loss = 2, .rows = 4, .hits = 1, .learning_rate = 0.1, .seconds = 1},
      {.loss = 1, .rows = 2, .hits = 2, .learning_rate = 0.1, .seconds = 1},
      {.loss = 0.5, .rows = 4, .hits = 3, .learning_rate = 0.2, .seconds = 3}};
  for (const StepOutcome& step : steps) whole.add(step);
  first.add(steps[0]);
  EpochHistory second = EpochHistory::from_json(first.to_json(), "here");
  second.add(steps[1]);
  second.add(steps[2]);
  const Evaluation evaluation{.loss = 0.7, .others = {{"accuracy", 0.8}}};
  const EpochRecord record = whole.close(1, evaluation);
  EXPECT_DOUBLE_EQ(record.train_loss, (2.0 * 4 + 2 + 0.5 * 4) / 10);
  EXPECT_DOUBLE_EQ(record.train_accuracy, 0.6);
  EXPECT_EQ(record.learning_rate, 0.2);
  EXPECT_EQ(record.val_accuracy, 0.8);
  EXPECT_DOUBLE_EQ(whole.samples_per_second(), 2);
  second.close(1, evaluation);
  EXPECT_EQ(second.to_json(), whole.to_json());
  EXPECT_THROW(EpochHistory::from_json(io::Json::object(), "here"), DataError);
}

settings::TrainSettings settings_over_ranks(const std::string& strategy) {
  settings::TrainSettings settings = golden_settings();
  settings.parallel.strategy = strategy;
  settings.parallel.keep_whole_below = 0;
  settings.train.steps = 0;
  settings.train.epochs = 2;
  settings.train.batch_size = 3;
  settings.train.eval_strategy = "epoch";
  return settings;
}

// 13 windows in steps of 6 over two ranks, or of 12 with accumulation: in the last step of an epoch
// the second rank has none.
RANK_BODY(StrategiesAgree) {
  const auto group = comm::join_group(comm::read_rank_environment(), std::chrono::seconds(30));
  const testing::TemporaryFolder folder;
  nn::SignalClassifierSpec spec = golden_network();
  spec.dropout = 0.2;
  for (const int64_t accumulation : {1, 2}) {
    std::vector<at::Tensor> wanted;
    for (const char* const strategy : {"ddp", "zero1", "zero2", "zero3"}) {
      SCOPED_TRACE(strategy);
      settings::TrainSettings settings = settings_over_ranks(strategy);
      settings.train.grad_accum = accumulation;
      SignalRun run(settings, some_windows(13), *group,
                    folder / (strategy + std::to_string(accumulation)), spec);
      run.go();
      const std::vector<at::Tensor> found = run.values();
      if (wanted.empty()) wanted = found;
      for (size_t index = 0; index < found.size(); ++index)
        EXPECT_LT(difference(found[index], wanted[index]), 1e-5) << index;
      ASSERT_EQ(run.objective.history().epochs().size(), 2U);
      // Every rank remembers the same figures.
      io::Json memory = run.objective.memory();
      memory.erase("total_seconds");
      const std::vector<std::string> all = group->all_gather_bytes(memory.dump());
      EXPECT_EQ(all[0], all[1]);
      // And holds the same weights and running statistics.
      for (const at::Tensor& value : found) {
        at::Tensor of_rank_zero = value.clone();
        group->broadcast(of_rank_zero, 0);
        EXPECT_TRUE(of_rank_zero.equal(value));
      }
    }
  }
}

TEST(ClassifyObjective, StrategiesAgreeAndSoDoRanks) {
  testing::expect_all_well(testing::start_ranks(2, "StrategiesAgree"));
}

// The figures of an evaluation equal one rank's figures, bit for bit.
RANK_BODY(EvaluatesTogether) {
  const auto group = comm::join_group(comm::read_rank_environment(), std::chrono::seconds(30));
  const auto alone = comm::join_group({}, std::chrono::seconds(1));
  const nn::SignalClassifier model(golden_network(), 42);
  const data::SignalWindows windows = some_windows(23);
  const ClassifyOptions options{.label_smoothing = 0.1, .eval_batch_size = 4};
  const auto together = evaluate_windows(model, windows, options, *group);
  const auto wanted = evaluate_windows(model, windows, options, *alone);
  EXPECT_EQ(together->loss_sum, wanted->loss_sum);
  for (int64_t truth = 0; truth < kClasses; ++truth)
    for (int64_t predicted = 0; predicted < kClasses; ++predicted)
      EXPECT_EQ(together->confusion.count(truth, predicted),
                wanted->confusion.count(truth, predicted));
  EXPECT_FALSE(
      evaluate_windows(model, windows, options, *group, [&] { return group->rank() == 1; }));
}

TEST(ClassifyObjective, RanksEvaluateTogetherAsOneDoes) {
  testing::expect_all_well(testing::start_ranks(3, "EvaluatesTogether"));
}

}  // namespace
}  // namespace convoy::train
