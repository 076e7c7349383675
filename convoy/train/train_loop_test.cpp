// SPDX-License-Identifier: Apache-2.0
//
// The loop over a model made by hand (an embedding and a head), against the same steps written out
// plainly.
#include "convoy/train/train_loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/nn/kv_cache.h"
#include "convoy/parallel/trained_parameters.h"
#include "convoy/train/token_batch.h"
#include "files/temporary_folder.h"

namespace convoy::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Tensors = std::vector<at::Tensor>;

constexpr int64_t kVocab = 11;
constexpr int64_t kWidth = 6;

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
  nn::KvCache make_cache() const override { return {0, 1, 1, at::TensorOptions()}; }

  std::function<void()> before_forward;
  std::vector<bool> phases;  // whether passes drew random numbers, where that changed
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

data::EncodedRow row(const std::vector<int32_t>& ids, size_t unsupervised = 1) {
  data::EncodedRow row{.ids = ids, .supervised = std::vector<uint8_t>(ids.size(), 1)};
  for (size_t token = 0; token < unsupervised; ++token) row.supervised[token] = 0;
  return row;
}

// Rows of many lengths, so that a mean over rows or micro-batches is not the mean over tokens.
data::TokenDataset training_rows() {
  return data::TokenDataset::from_rows({row({1, 2, 3, 4, 5, 6, 7, 8}), row({3, 1}), row({9, 8, 7}),
                                        row({4, 4, 4, 4, 2}, 4), row({10, 1, 6}), row({5, 0}),
                                        row({2, 3, 5, 7, 0, 1}, 2)});
}

settings::TrainSettings make_settings() {
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
  ToyRun(settings::TrainSettings wanted, const fs::path& folder, data::TokenDataset validation = {})
      : settings(std::move(wanted)),
        folder_(folder),
        validation_(std::move(validation)),
        plan(training_rows(), {.batch_size = settings.train.batch_size,
                               .grad_accum = settings.train.grad_accum,
                               .seed = static_cast<uint64_t>(settings.seed)}),
        checkpoints(folder / "checkpoints", 10) {
    optimizer_.emplace(optim::AdamWConfig{.epsilon = settings.train.optimizer.adam_epsilon,
                                          .weight_decay = settings.train.weight_decay},
                       parallel::prepare_parameters(*strategy_, model, parameters));
    checkpoints.prepare();
  }

  LoopResult go() {
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
    const LoopParts parts{.model = model,
                          .parameters = parameters,
                          .parameter_group = "toy",
                          .plan = plan,
                          .validation = validation_,
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

  settings::TrainSettings settings;
  ToyModel model;
  std::vector<nn::NamedTensor> parameters = model.parameters();
  std::atomic<bool> stop_requested = false;

 private:
  fs::path folder_;
  data::TokenDataset validation_;
  std::unique_ptr<comm::Group> group_ = comm::join_group({}, std::chrono::seconds(1));
  std::unique_ptr<parallel::Strategy> strategy_ = parallel::make_strategy({}, *group_);
  std::optional<optim::AdamW> optimizer_;
  checkpoint::Stamp stamp_;

 public:
  data::BatchPlan plan;
  checkpoint::CheckpointStore checkpoints;
};

// The mean negative log-likelihood of the rows' supervised tokens.
at::Tensor plain_loss(ToyModel& model, const data::TokenDataset& dataset,
                      const std::vector<int64_t>& rows) {
  const LabelledBatch batch = assemble_batch(dataset, rows);
  const at::Tensor logits =
      at::matmul(model.hidden_states(batch.tokens, {}), model.head().weight().t());
  return at::cross_entropy_loss(logits.index_select(0, batch.labels.tokens_N()),
                                batch.labels.labels_N(), {}, at::Reduction::Sum) /
         batch.supervised_tokens();
}

struct PlainStep {
  double loss = 0;
  double grad_norm = 0;
};

// Each step at once over the rows of all its micro-batches, with AdamW as its paper writes it.
std::vector<PlainStep> train_plainly(ToyRun& run) {
  const optim::LearningRateSchedule schedule = run.schedule();
  const double epsilon = run.settings.train.optimizer.adam_epsilon;
  const auto shaped_zeros = [&] {
    Tensors zeros;
    for (const nn::NamedTensor& parameter : run.parameters)
      zeros.push_back(at::zeros_like(parameter.value));
    return zeros;
  };
  Tensors means = shaped_zeros(), squares = shaped_zeros();
  std::vector<PlainStep> steps;
  for (int64_t step = 0; step < run.settings.train.steps; ++step) {
    const data::StepPosition position{step / run.plan.steps_per_epoch(),
                                      step % run.plan.steps_per_epoch()};
    std::vector<int64_t> rows;
    for (int64_t micro = 0; micro < run.plan.config().grad_accum; ++micro)
      for (const int64_t index : run.plan.rows(position, micro, 0)) rows.push_back(index);
    const at::Tensor loss = plain_loss(run.model, run.plan.dataset(), rows);
    const auto gradients =
        torch::autograd::grad({loss}, {run.parameters[0].value, run.parameters[1].value});
    double squared = 0;
    for (const at::Tensor& gradient : gradients)
      squared += gradient.to(at::kDouble).square().sum().item<double>();
    const double norm = std::sqrt(squared);
    const double most = run.settings.train.max_grad_norm;
    const double clip = most > 0 ? std::min(1.0, most / (norm + 1e-6)) : 1.0;
    const double lr = schedule.at(step);
    const at::NoGradGuard no_grad;
    for (size_t index = 0; index < gradients.size(); ++index) {
      const at::Tensor gradient = gradients[index] * clip;
      means[index] = 0.9 * means[index] + 0.1 * gradient;
      squares[index] = 0.999 * squares[index] + 0.001 * gradient.square();
      const auto time = static_cast<double>(step + 1);
      const at::Tensor mean = means[index] / (1 - std::pow(0.9, time));
      const at::Tensor square = squares[index] / (1 - std::pow(0.999, time));
      at::Tensor value = run.parameters[index].value;
      value.mul_(1 - lr * run.settings.train.weight_decay);
      value.sub_(lr * mean / (square.sqrt() + epsilon));
    }
    steps.push_back({loss.item<double>(), norm});
  }
  return steps;
}

void expect_close(const Tensors& found, const Tensors& wanted) {
  for (size_t index = 0; index < wanted.size(); ++index)
    EXPECT_TRUE(at::allclose(found[index], wanted[index], 1e-5, 1e-6))
        << index << ": " << (found[index] - wanted[index]).abs().max().item<float>();
}

void expect_same_bits(const Tensors& found, const Tensors& wanted) {
  for (size_t index = 0; index < wanted.size(); ++index)
    EXPECT_TRUE(found[index].equal(wanted[index])) << index;
}

class TrainLoop : public ::testing::Test {
 protected:
  fs::path fresh_folder() { return folder_ / std::to_string(++count_); }

  void expect_plain_training(const settings::TrainSettings& settings) {
    ToyRun run(settings, fresh_folder());
    const LoopResult result = run.go();
    EXPECT_EQ(result.end, LoopEnd::Finished);
    EXPECT_EQ(result.progress.step, settings.train.steps);
    ToyRun plain(settings, fresh_folder());
    const std::vector<PlainStep> wanted = train_plainly(plain);
    expect_close(run.values(), plain.values());
    const std::vector<json> steps = run.events("step");
    ASSERT_EQ(steps.size(), wanted.size());
    const optim::LearningRateSchedule schedule = run.schedule();
    for (size_t step = 0; step < wanted.size(); ++step) {
      EXPECT_EQ(steps[step]["step"], step + 1);
      EXPECT_NEAR(steps[step]["loss"].get<double>(), wanted[step].loss, 1e-5);
      EXPECT_NEAR(steps[step]["grad_norm"].get<double>(), wanted[step].grad_norm, 1e-5);
      EXPECT_NEAR(steps[step]["learning_rate"].get<double>(),
                  schedule.at(static_cast<int64_t>(step)), 1e-12);
    }
  }

  testing::TemporaryFolder folder_;
  int count_ = 0;
};

TEST_F(TrainLoop, TakesTheStepsThatAreWrittenOutPlainly) { expect_plain_training(make_settings()); }

TEST_F(TrainLoop, AccumulationWeighsEveryTokenAlike) {
  settings::TrainSettings settings = make_settings();
  settings.train.batch_size = 1;
  settings.train.grad_accum =
      3;  // 7 rows: the last step of an epoch has one row and two empty micro-batches
  expect_plain_training(settings);
}

TEST_F(TrainLoop, ClipsTheNormOfAllGradientsTogether) {
  settings::TrainSettings settings = make_settings();
  for (const double most : {0.0, 0.05, 100.0}) {
    settings.train.max_grad_norm = most;
    expect_plain_training(settings);
  }
}

TEST_F(TrainLoop, EpochsAreRoundedUpToWholeSteps) {
  settings::TrainSettings settings = make_settings();
  settings.train.steps = 0;
  settings.train.epochs = 1.3;  // 4 steps per epoch
  ToyRun run(settings, fresh_folder());
  EXPECT_EQ(run.go().progress.step, 6);
  EXPECT_EQ(total_steps(settings.train, 4), 6);
  settings.train.epochs = 2;
  EXPECT_EQ(total_steps(settings.train, 4), 8);
}

TEST_F(TrainLoop, EvaluatesWhenItIsDueAndAtTheEnd) {
  const data::TokenDataset validation =
      data::TokenDataset::from_rows({row({1, 2, 3}), row({4, 5}), row({6, 7, 8, 9}, 2)});
  settings::TrainSettings settings = make_settings();
  settings.train.steps = 5;
  settings.train.eval_strategy = "steps";
  settings.train.eval_steps = 2;
  settings.train.final_eval = true;
  ToyRun run(settings, fresh_folder(), validation);
  run.go();
  const std::vector<json> evaluations = run.events("eval");
  std::vector<int64_t> steps;
  for (const json& event : evaluations) steps.push_back(event["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 4, 5}));
  // Training draws random numbers, the evaluations between its steps do not.
  EXPECT_EQ(run.model.phases, (std::vector<bool>{true, false, true, false, true, false}));
  EXPECT_EQ(evaluations.back()["supervised_tokens"], 5);
  EXPECT_NEAR(evaluations.back()["loss"].get<double>(),
              plain_loss(run.model, validation, {0, 1, 2}).item<double>(), 1e-5);

  settings.train.eval_strategy = "epoch";
  settings.train.final_eval = false;
  ToyRun by_epoch(settings, fresh_folder(), validation);  // 4 steps per epoch, 5 in all
  by_epoch.go();
  steps.clear();
  for (const json& event : by_epoch.events("eval")) steps.push_back(event["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 5}));

  ToyRun without_rows(settings, fresh_folder());
  without_rows.go();
  EXPECT_TRUE(without_rows.events("eval").empty());
}

TEST_F(TrainLoop, SavesWhenItIsDueAndAtTheEnd) {
  settings::TrainSettings settings = make_settings();
  settings.train.steps = 5;
  settings.train.save_strategy = "steps";
  settings.train.save_steps = 2;
  ToyRun run(settings, fresh_folder());
  run.go();
  std::vector<int64_t> steps;
  for (const json& event : run.events("checkpoint")) steps.push_back(event["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 4, 5}));
  const auto newest = run.checkpoints.load_newest();
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->state.progress.step, 5);
  EXPECT_TRUE(newest->group("toy").read("lm_head.weight").equal(run.values()[1]));
}

TEST_F(TrainLoop, AStopFinishesTheStepSavesAndGoesOnToTheSameBits) {
  settings::TrainSettings settings = make_settings();
  settings.train.grad_accum = 2;
  ToyRun unbroken(settings, fresh_folder());
  unbroken.go();

  const fs::path folder = fresh_folder();
  ToyRun stopped(settings, folder);
  int64_t forwards = 0;
  stopped.model.before_forward = [&] {
    if (++forwards == 5) stopped.stop_requested = true;  // in the third step
  };
  const LoopResult result = stopped.go();
  EXPECT_EQ(result.end, LoopEnd::Stopped);
  EXPECT_EQ(result.progress.step, 3);
  EXPECT_EQ(stopped.checkpoints.load_newest()->state.progress, result.progress);

  ToyRun resumed(settings, folder);
  EXPECT_EQ(resumed.go().end, LoopEnd::Finished);
  expect_same_bits(resumed.values(), unbroken.values());
}

// Asked to stop in each of its forward passes in turn, within steps and within evaluations.
TEST_F(TrainLoop, AStopPutsAnEvaluationOffAndTheNextRunMakesIt) {
  const data::TokenDataset validation = data::TokenDataset::from_rows(
      {row({1, 2, 3}), row({4, 5}), row({6, 7}), row({2, 3}), row({5, 6, 7})});
  settings::TrainSettings settings = make_settings();
  settings.train.steps = 4;
  settings.train.eval_strategy = "steps";
  settings.train.eval_steps = 2;
  settings.train.eval_batch_size = 1;
  settings.train.final_eval = true;
  const auto losses = [](const ToyRun& run) {
    std::vector<std::pair<int64_t, double>> found;
    for (const json& event : run.events("eval")) found.emplace_back(event["step"], event["loss"]);
    return found;
  };
  ToyRun unbroken(settings, fresh_folder(), validation);
  const LoopResult whole = unbroken.go();
  int64_t num_put_off = 0;
  for (int64_t stop_at = 1;; ++stop_at) {
    SCOPED_TRACE(stop_at);
    const fs::path folder = fresh_folder();
    ToyRun stopped(settings, folder, validation);
    int64_t forwards = 0;
    stopped.model.before_forward = [&] {
      if (++forwards == stop_at) stopped.stop_requested = true;
    };
    const LoopResult result = stopped.go();
    if (forwards < stop_at) break;
    if (result.end == LoopEnd::Finished) continue;
    num_put_off += result.progress.evaluation_pending ? 1 : 0;
    ToyRun resumed(settings, folder, validation);
    const LoopResult rest = resumed.go();
    EXPECT_EQ(rest.end, LoopEnd::Finished);
    EXPECT_EQ(rest.progress, whole.progress);
    EXPECT_EQ(losses(resumed), losses(unbroken));
    expect_same_bits(resumed.values(), unbroken.values());
  }
  EXPECT_GE(num_put_off, 4) << "two steps before an evaluation, and the first batch of each";
}

TEST_F(TrainLoop, ARunThatHasAllItsStepsTakesNone) {
  settings::TrainSettings settings = make_settings();
  settings.train.save_strategy = "steps";
  settings.train.save_steps = 6;
  const fs::path folder = fresh_folder();
  ToyRun(settings, folder).go();
  ToyRun again(settings, folder);
  int64_t forwards = 0;
  again.model.before_forward = [&] { ++forwards; };
  EXPECT_EQ(again.go().end, LoopEnd::Finished);
  EXPECT_EQ(forwards, 0);
}

TEST_F(TrainLoop, EndsEarlyWhenNothingGetsBetter) {
  const data::TokenDataset validation = data::TokenDataset::from_rows({row({1, 3}), row({3, 2})});
  settings::TrainSettings settings = make_settings();
  settings.train.steps = 40;
  settings.train.eval_strategy = "steps";
  settings.train.eval_steps = 2;
  settings.train.early_stopping_patience = 3;
  settings.train.learning_rate = 0;  // the first evaluation stays the best
  ToyRun run(settings, fresh_folder(), validation);
  const LoopResult result = run.go();
  EXPECT_EQ(result.end, LoopEnd::EarlyStopped);
  EXPECT_EQ(result.progress.step, 8);
  EXPECT_EQ(result.progress.best_step, 2);
  EXPECT_EQ(result.progress.evaluations_without_improvement, 3);
  EXPECT_EQ(run.events("eval").size(), 4U);

  settings.train.early_stopping_patience = 0;
  settings.train.steps = 12;
  ToyRun patient(settings, fresh_folder(), validation);
  EXPECT_EQ(patient.go().end, LoopEnd::Finished);
}

TEST_F(TrainLoop, ALossThatIsNoNumberEndsTheRunAndIsNotSaved) {
  settings::TrainSettings settings = make_settings();
  settings.train.save_strategy = "steps";
  settings.train.save_steps = 1;
  for (const double poison :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    ToyRun run(settings, fresh_folder());
    Tensors before;
    int64_t forwards = 0;
    run.model.before_forward = [&] {
      if (++forwards != 3) return;
      run.model.factor = poison;
      before = run.values();
    };
    try {
      run.go();
      ADD_FAILURE() << "the run went on with " << poison;
    } catch (const NumericError& error) {
      EXPECT_EQ(error.place().step, 3);
    }
    EXPECT_EQ(run.checkpoints.load_newest()->state.progress.step, 2);
    expect_same_bits(run.values(), before);
  }
}

}  // namespace
}  // namespace convoy::train
