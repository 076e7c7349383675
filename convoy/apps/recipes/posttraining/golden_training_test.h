// SPDX-License-Identifier: Apache-2.0
//
// Trainings over recorded rollouts against what TRL's trainers learn from the same ones: the model
// of tests/golden/train, the loop on some ranks, and the comparison.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/models/registry.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/loop/train_loop.h"
#include "convoy/train/parallel/dp/replica_threads.h"
#include "convoy/train/parallel/trained_parameters.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {

using Golden = nlohmann::json;

// As tests/parity allows.
inline constexpr double kLikeTrl = 1e-5;

inline Golden read_golden(const std::string& name) {
  return Golden::parse(read_file(testing::source_folder() / "tests/golden" / name));
}

inline std::filesystem::path golden_model_folder() {
  return testing::source_folder() / "tests/golden/train/qwen2";
}

struct GoldenModel {
  explicit GoldenModel(const std::string& tuning)
      : model(models::load_causal_lm(io::ModelFolder::open(golden_model_folder().string()),
                                     at::kFloat)) {
    if (tuning == "full") {
      model->set_requires_grad(true);
      parameters = model->parameters();
      return;
    }
    lora = adapters::LoraModel::load(*model, golden_model_folder() / "start");
    parameters = lora->parameters();
  }
  std::unique_ptr<nn::CausalLm> model;
  std::optional<adapters::LoraModel> lora;
  std::vector<nn::NamedTensor> parameters;
};

// The settings of a golden file's trainings that every case of it has.
inline settings::TrainSettings golden_settings(const Golden& golden, const std::string& task) {
  settings::TrainSettings settings;
  settings.task = task;
  settings.rollout.samples = golden["samples"];
  settings.rollout.max_new_tokens = golden["longest"];
  settings.train.steps = golden["steps"];
  settings.train.learning_rate = golden["learning_rate"];
  settings.train.schedule.lr_scheduler_type = "constant";
  settings.train.schedule.warmup_ratio = 0;
  settings.train.weight_decay = 0;
  settings.train.max_grad_norm = 1;
  settings.train.eval_strategy = "no";
  settings.train.final_eval = false;
  settings.train.save_strategy = "no";
  return settings;
}

struct GoldenOutcome {
  std::vector<Golden> steps = {};
  std::map<std::string, at::Tensor> values = {};
};

// Makes the objective of a rank over its model, plan and group, which outlive it.
using GoldenObjective = std::function<std::unique_ptr<train::TrainingObjective>(
    GoldenModel& model, const data::BatchPlan& plan, comm::Group& group)>;

// The loop on one rank.
inline GoldenOutcome train_golden_rank(const Golden& golden,
                                       const settings::TrainSettings& settings,
                                       GoldenModel& trained, comm::Group& group, int64_t grad_accum,
                                       const GoldenObjective& make_objective,
                                       const std::filesystem::path& folder) {
  constexpr int64_t kProblems = 4;
  std::vector<data::EncodedRow> prompts(kProblems,
                                        {.ids = {3}, .supervised = std::vector<uint8_t>(1, 0)});
  const data::BatchPlan plan(data::TokenDataset::from_rows(prompts),
                             {.batch_size = kProblems / grad_accum / group.size(),
                              .grad_accum = grad_accum,
                              .world_size = group.size(),
                              .shuffle = false});
  const auto objective = make_objective(trained, plan, group);
  const auto strategy = parallel::make_strategy({}, group);
  optim::AdamW optimizer(
      {.epsilon = golden["adam_epsilon"], .weight_decay = 0},
      parallel::prepare_parameters(*strategy, *trained.model, trained.parameters));
  const optim::LearningRateSchedule schedule(settings.train.schedule, settings.train.learning_rate,
                                             settings.train.steps);
  const checkpoint::Stamp stamp;
  checkpoint::CheckpointStore checkpoints(folder / "checkpoints", 1);
  telemetry::FlightWriter flight;
  const std::atomic<bool> stop_requested = false;
  std::optional<telemetry::TrainingLog> log;
  if (group.rank() == 0) {
    telemetry::TrainingLogOptions options;
    options.run_folder = folder;
    options.total_steps = settings.train.steps;
    options.progress.style = telemetry::ProgressStyle::None;
    log.emplace(std::move(options), Log(LogLevel::Quiet));
  }
  train::run_training_loop({.objective = *objective,
                            .parameters = trained.parameters,
                            .parameter_group = "trained",
                            .strategy = *strategy,
                            .optimizer = optimizer,
                            .schedule = schedule,
                            .stamp = stamp,
                            .checkpoints = checkpoints,
                            .log = log ? &*log : nullptr,
                            .flight = flight,
                            .files_alongside = {},
                            .stop_requested = stop_requested},
                           settings, {});
  GoldenOutcome outcome;
  for (const nn::NamedTensor& parameter : trained.parameters)
    outcome.values[parameter.name] = parameter.value.detach().clone();
  if (group.rank() != 0) return outcome;
  std::ifstream file(folder / "events.jsonl");
  for (std::string line; std::getline(file, line);)
    if (Golden event = Golden::parse(line); event["event"] == "step")
      outcome.steps.push_back(std::move(event));
  return outcome;
}

inline GoldenOutcome train_golden(int ranks, const Golden& golden,
                                  const settings::TrainSettings& settings,
                                  const std::string& tuning, int64_t grad_accum,
                                  const GoldenObjective& make_objective) {
  const testing::TemporaryFolder folder;
  std::vector<std::unique_ptr<GoldenModel>> models;
  for (int rank = 0; rank < ranks; ++rank) models.push_back(std::make_unique<GoldenModel>(tuning));
  telemetry::FlightWriter flight;
  GoldenOutcome outcome;
  parallel::run_replicas(
      {}, ranks, flight, [&](const std::shared_ptr<comm::StoreBarrier>& store_barrier) {
        const auto group = comm::join_group_at(store_barrier, std::chrono::seconds(300));
        try {
          GoldenModel& own = *models[static_cast<size_t>(store_barrier->rank())];
          GoldenOutcome found = train_golden_rank(golden, settings, own, *group, grad_accum,
                                                  make_objective, folder.path());
          if (store_barrier->rank() == 0) outcome = std::move(found);
        } catch (...) {
          group->abort();
          throw;
        }
      });
  return outcome;
}

inline void expect_like_trl(double found, double wanted, const std::string& what,
                            double beside = 0) {
  EXPECT_LE(std::abs(found - wanted), kLikeTrl * std::max(1.0, std::abs(wanted)) + beside)
      << what << ": " << found << ", wanted " << wanted;
}

inline void expect_like_trl(const GoldenOutcome& found, const Golden& one) {
  const Golden& curve = one["curve"];
  ASSERT_EQ(found.steps.size(), curve.size());
  for (size_t step = 0; step < curve.size(); ++step)
    for (const char* const name : {"loss", "grad_norm"})
      expect_like_trl(found.steps[step][name], curve[step][name],
                      fmt::format("{} of step {}", name, step));
  ASSERT_EQ(found.values.size(), one["weights"].size());
  for (const auto& [name, figures] : one["weights"].items()) {
    ASSERT_TRUE(found.values.contains(name)) << name;
    const at::Tensor value = found.values.at(name).to(at::kDouble).flatten();
    const at::Tensor waves = at::arange(value.numel(), value.options()).cos();
    expect_like_trl(value.norm().item<double>(), figures[0], "norm of " + name);
    expect_like_trl((value * waves).sum().item<double>(), figures[1], "product of " + name,
                    kLikeTrl * std::sqrt(static_cast<double>(value.numel())) / 4);
  }
}

}  // namespace convoy::recipes
