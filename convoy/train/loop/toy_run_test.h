// SPDX-License-Identifier: Apache-2.0
//
// For tests of the loop: a run over a model made by hand, an embedding and a head.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/model/nn/kv_cache.h"
#include "convoy/train/loop/labelled_batch.h"
#include "convoy/train/loop/language_objective.h"
#include "convoy/train/loop/train_loop.h"
#include "convoy/train/parallel/trained_parameters.h"

namespace convoy::train {

namespace fs = std::filesystem;
using nlohmann::json;
using Tensors = std::vector<at::Tensor>;

inline constexpr int64_t kVocab = 11;
inline constexpr int64_t kWidth = 6;

// Predicts the next token from the token alone.
class ToyModel final : public nn::CausalLm {
 public:
  ToyModel() : head_("lm_head", random(2), at::Tensor()), embedding_VD_(random(1)) {
    set_requires_grad(true);
  }

  at::Tensor hidden_states(const nn::TokenBatch& batch,
                           const nn::ForwardOptions& options) override {
    if (before_forward) before_forward();
    const bool draws = options.draw_key.has_value();
    if (phases.empty() || phases.back() != draws) phases.push_back(draws);
    return at::tanh(at::embedding(embedding_VD_, batch.token_ids_T())) * factor;
  }
  nn::Linear& head() override { return head_; }
  bool head_is_tied() const override { return false; }
  std::vector<nn::NamedTensor> parameters() override {
    return {{"embedding.weight", embedding_VD_}, {"lm_head.weight", head_.weight()}};
  }
  std::vector<nn::Unit> units() override {
    return {{.name = "toy", .frozen = {}, .trained = parameters()}};
  }
  void set_residency(nn::Residency*) override {}
  nn::Residency* residency() const override { return nullptr; }
  nn::UnitUse use_head() const override { return {nullptr, 0}; }
  std::vector<nn::Linear*> block_linears() override { return {}; }
  void quantize_blocks(const kernels::IntegerFormat&) override {}
  void set_requires_grad(bool requires_grad) override {
    embedding_VD_.requires_grad_(requires_grad);
    head_.weight().requires_grad_(requires_grad);
  }
  at::Device device() const override { return at::kCPU; }
  int64_t hidden_size() const override { return kWidth; }
  int64_t vocab_size() const override { return kVocab; }
  int64_t num_layers() const override { return 0; }
  int64_t max_positions() const override { return 100; }
  const std::string& family() const override { return family_; }
  int64_t matmul_parameters() const override { return kVocab * kWidth; }
  int64_t attention_width() const override { return 0; }
  nn::KvGeometry kv_geometry() const override { return {}; }

  std::function<void()> before_forward;
  std::vector<bool> phases;  // true for passes with random numbers, one entry per change
  double factor = 1;         // on the hidden states: NaN spoils the loss

 private:
  static at::Tensor random(int64_t seed) {
    at::manual_seed(static_cast<uint64_t>(seed));
    return at::randn({kVocab, kWidth});
  }

  nn::Linear head_;
  at::Tensor embedding_VD_;
  std::string family_ = "toy";
};

inline data::EncodedRow row(const std::vector<int32_t>& ids, size_t unsupervised = 1) {
  data::EncodedRow row{.ids = ids, .supervised = std::vector<uint8_t>(ids.size(), 1)};
  for (size_t token = 0; token < unsupervised; ++token) row.supervised[token] = 0;
  return row;
}

// Rows of many lengths, so that a mean over rows or micro-batches is not the mean over tokens.
inline data::TokenDataset training_rows() {
  return data::TokenDataset::from_rows({row({1, 2, 3, 4, 5, 6, 7, 8}), row({3, 1}), row({9, 8, 7}),
                                        row({4, 4, 4, 4, 2}, 4), row({10, 1, 6}), row({5, 0}),
                                        row({2, 3, 5, 7, 0, 1}, 2)});
}

// Like training_rows(), but some tokens have other weights than 1.
inline data::TokenDataset weighted_rows() {
  std::vector<data::EncodedRow> rows = {
      row({1, 2, 3, 4, 5, 6, 7, 8}), row({3, 1}),     row({9, 8, 7}),
      row({4, 4, 4, 4, 2}, 4),       row({10, 1, 6}), row({5, 0}),
      row({2, 3, 5, 7, 0, 1}, 2)};
  rows[0].weights = {1, 0.5, 0.5, 0.5, 1, 1, 2, 2};
  rows[1].weights = {1, 0.125};
  rows[6].weights = {0, 3, 0.25, 0.25, 0.25, 0.25};
  return data::TokenDataset::from_rows(rows);
}

inline settings::TrainSettings make_settings() {
  settings::TrainSettings settings;
  settings.seed = 5;
  settings.train.steps = 6;
  settings.train.batch_size = 2;
  settings.train.grad_accum = 1;
  settings.train.learning_rate = 0.05;
  settings.train.weight_decay = 0.1;
  settings.train.max_grad_norm = 1.0;
  settings.train.schedule.lr_scheduler_type = "linear";
  settings.train.schedule.warmup_ratio = 0;
  settings.train.schedule.warmup_steps = 2;
  settings.train.eval_strategy = "no";
  settings.train.final_eval = false;
  settings.train.save_strategy = "no";
  // Large, so that the size of a gradient is not divided away by Adam.
  settings.train.optimizer.adam_epsilon = 0.5;
  return settings;
}

// A run in a folder of its own. Runs made from one folder continue each other.
class ToyRun {
 public:
  ToyRun(settings::TrainSettings wanted, const fs::path& folder, data::TokenDataset validation = {},
         const data::TokenDataset& rows = training_rows())
      : settings(std::move(wanted)),
        folder_(folder),
        validation_(std::move(validation)),
        plan(rows, {.batch_size = settings.train.batch_rows(),
                    .grad_accum = settings.train.accumulation(),
                    .world_size = comm::read_rank_environment().world,
                    .seed = static_cast<uint64_t>(settings.seed)}),
        checkpoints(folder / "checkpoints", 10) {
    optimizer_.emplace(optim::AdamWConfig{.epsilon = settings.train.optimizer.adam_epsilon,
                                          .weight_decay = settings.train.weight_decay},
                       parallel::prepare_parameters(*strategy_, model, parameters));
    checkpoints.prepare();
  }

  LoopResult go() {
    LanguageObjective objective(model, plan, validation_,
                                settings.train.rows_of_evaluation_batch());
    return go(objective);
  }

  // With an objective over `model`.
  LoopResult go(TrainingObjective& objective) {
    checkpoint::Progress start;
    if (const auto loaded = checkpoints.load_newest()) {
      start = loaded->state.progress;
      const at::NoGradGuard no_grad;
      for (const nn::NamedTensor& parameter : parameters) {
        at::Tensor value = parameter.value;
        value.copy_(loaded->group("toy").read(parameter.name));
      }
      const checkpoint::GroupReader reader = loaded->group("optimizer");
      std::vector<optim::NamedState> state;
      for (const std::string& name : reader.names()) state.push_back({name, reader.read(name)});
      optimizer_->load_state(start.step, state);
    }
    telemetry::TrainingLogOptions options;
    options.run_folder = folder_;
    options.total_steps = total_steps(settings.train, plan.steps_per_epoch());
    options.resume_step = start.step > 0 ? start.step : -1;
    options.progress.style = telemetry::ProgressStyle::None;
    telemetry::TrainingLog log(std::move(options), Log(LogLevel::Quiet));
    telemetry::FlightWriter flight;
    const optim::LearningRateSchedule rates = schedule();
    const LoopParts parts{.objective = objective,
                          .parameters = parameters,
                          .parameter_group = "toy",
                          .strategy = *strategy_,
                          .optimizer = *optimizer_,
                          .schedule = rates,
                          .stamp = stamp_,
                          .checkpoints = checkpoints,
                          .log = &log,
                          .flight = flight,
                          .files_alongside = {},
                          .stop_requested = stop_requested};
    return run_training_loop(parts, settings, start);
  }

  optim::LearningRateSchedule schedule() const {
    return {settings.train.schedule, settings.train.learning_rate,
            total_steps(settings.train, plan.steps_per_epoch())};
  }

  // events.jsonl, of one kind.
  std::vector<json> events(const std::string& kind) const {
    std::vector<json> rows;
    std::ifstream file(folder_ / "events.jsonl");
    for (std::string line; std::getline(file, line);)
      if (json event = json::parse(line); event["event"] == kind) rows.push_back(std::move(event));
    return rows;
  }

  Tensors values() const {
    Tensors all;
    for (const nn::NamedTensor& parameter : parameters)
      all.push_back(parameter.value.detach().clone());
    return all;
  }

  comm::Group& group() { return *group_; }

  settings::TrainSettings settings;
  ToyModel model;
  std::vector<nn::NamedTensor> parameters = model.parameters();
  std::atomic<bool> stop_requested = false;

 private:
  fs::path folder_;
  data::TokenDataset validation_;
  // World 1, unless the test runs as ranks.
  std::unique_ptr<comm::Group> group_ =
      comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300));
  std::unique_ptr<parallel::Strategy> strategy_ = parallel::make_strategy({}, *group_);
  std::optional<optim::AdamW> optimizer_;
  checkpoint::Stamp stamp_;

 public:
  data::BatchPlan plan;
  checkpoint::CheckpointStore checkpoints;
};

inline void expect_same_bits(const Tensors& found, const Tensors& wanted) {
  for (size_t index = 0; index < wanted.size(); ++index)
    EXPECT_TRUE(found[index].equal(wanted[index])) << index;
}

}  // namespace convoy::train
