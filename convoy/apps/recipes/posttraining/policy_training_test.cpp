// SPDX-License-Identifier: Apache-2.0
//
// Learning from rewards against TRL's trainers (tests/golden/policy/policy_training.json): from the
// same rollouts and rewards the same losses, advantages, gradient norms and weights, for whole
// models and adapters, on one and two ranks, with and without accumulation.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <mutex>

#include "convoy/core/base/files.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/nn/head_loss.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/loop/labelled_batch.h"
#include "convoy/train/loop/policy_objective.h"
#include "convoy/train/loop/train_loop.h"
#include "convoy/train/parallel/dp/replica_threads.h"
#include "convoy/train/parallel/trained_parameters.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using Golden = nlohmann::json;

// As tests/parity allows.
constexpr double kLikeTrl = 1e-5;

Golden read_policy_golden() {
  return Golden::parse(
      read_file(testing::source_folder() / "tests/golden/policy/policy_training.json"));
}

fs::path policy_model() { return testing::source_folder() / "tests/golden/train/qwen2"; }

struct PolicyModel {
  explicit PolicyModel(const std::string& tuning)
      : model(models::load_causal_lm(io::ModelFolder::open(policy_model().string()), at::kFloat)) {
    if (tuning == "full") {
      model->set_requires_grad(true);
      parameters = model->parameters();
      return;
    }
    lora = adapters::LoraModel::load(*model, policy_model() / "start");
    parameters = lora->parameters();
  }
  std::unique_ptr<nn::CausalLm> model;
  std::optional<adapters::LoraModel> lora;
  std::vector<nn::NamedTensor> parameters;
};

std::vector<float> text_logprobs(nn::CausalLm& model, const train::Rollout& rollout,
                                 double temperature) {
  const at::NoGradGuard no_grad;
  data::EncodedRow row{.ids = rollout.ids,
                       .supervised = std::vector<uint8_t>(rollout.ids.size(), 1)};
  std::fill_n(row.supervised.begin(), rollout.prompt_tokens, uint8_t{0});
  const train::LabelledBatch batch =
      train::assemble_batch(data::TokenDataset::from_rows({row}), {0});
  const at::Tensor nll_N =
      nn::head_token_losses(model, model.hidden_states(batch.tokens, {}), batch.labels, temperature)
          .nll_T.index_select(0, batch.labels.tokens_N());
  const at::Tensor logprobs_N = nll_N.neg();
  const float* const first = logprobs_N.const_data_ptr<float>();
  return {first, first + logprobs_N.numel()};
}

// The rollouts of the golden file. TRL's reference is the model as it starts; an adapter starts as
// a map of zeros.
class RecordedRollouts : public train::RolloutSource {
 public:
  RecordedRollouts(const Golden& golden, const Golden& one, nn::CausalLm& model)
      : model_(model),
        samples_(golden["samples"]),
        inner_steps_(one["policy"].value("inner_steps", 1)),
        temperature_(one.value("temperature", 1.0)) {
    const bool is_shifted = one["policy"].contains("importance_cap");
    for (const Golden& turn : golden["turns"]) {
      std::vector<train::Rollout>& rollouts = turns_.emplace_back();
      for (const Golden& one_text : turn) {
        train::Rollout rollout{.problem = std::ssize(rollouts) / samples_,
                               .sample = std::ssize(rollouts) % samples_,
                               .ids = one_text["prompt"].get<std::vector<int32_t>>(),
                               .reward = one_text["reward"]};
        rollout.prompt_tokens = std::ssize(rollout.ids);
        for (const int32_t id : one_text["text"]) rollout.ids.push_back(id);
        rollout.rewards = {rollout.reward};
        rollout.reference = text_logprobs(model, rollout, temperature_);
        if (is_shifted) shifts_[rollout.ids] = one_text["shift"].get<std::vector<float>>();
        rollouts.push_back(std::move(rollout));
      }
    }
  }

  std::vector<train::Rollout> draw(const train::RolloutTurn& turn,
                                   const std::vector<int64_t>& problems) override {
    const std::vector<train::Rollout>& all =
        turns_[static_cast<size_t>(turn.first_step / inner_steps_)];
    std::vector<train::Rollout> rollouts;
    for (const int64_t problem : problems)
      for (int64_t sample = 0; sample < samples_; ++sample) {
        rollouts.push_back(all[static_cast<size_t>(problem * samples_ + sample)]);
        rollouts.back().drawn = drawn(rollouts.back());
      }
    return rollouts;
  }
  void record(const train::RolloutTurn&, const std::vector<train::Rollout>& rollouts,
              bool /*teaches*/) override {
    std::vector<double>& advantages = advantages_of_turns.emplace_back(rollouts.size());
    for (const train::Rollout& rollout : rollouts)
      if (const int64_t place = rollout.problem * samples_ + rollout.sample;
          place < std::ssize(advantages))
        advantages[static_cast<size_t>(place)] = rollout.advantage;
  }
  const std::vector<std::string>& reward_names() const override { return names_; }
  bool has_validation() const override { return false; }
  std::optional<train::Evaluation> evaluate(comm::Group&, const std::function<bool()>&) override {
    return std::nullopt;
  }

  std::vector<std::vector<double>> advantages_of_turns;

 private:
  // As an engine that is not the trainer gives them.
  std::vector<float> drawn(const train::Rollout& rollout) const {
    std::vector<float> drawn = text_logprobs(model_, rollout, temperature_);
    if (const auto shift = shifts_.find(rollout.ids); shift != shifts_.end())
      for (size_t token = 0; token < drawn.size(); ++token) drawn[token] += shift->second[token];
    return drawn;
  }

  nn::CausalLm& model_;
  const int64_t samples_;
  const int64_t inner_steps_;
  const double temperature_;
  std::map<std::vector<int32_t>, std::vector<float>> shifts_;  // by a text's ids
  std::vector<std::vector<train::Rollout>> turns_;
  const std::vector<std::string> names_ = {"recorded"};
};

settings::TrainSettings policy_case(const Golden& golden, const Golden& one) {
  settings::TrainSettings settings;
  settings.task = "grpo";
  settings.rollout.samples = golden["samples"];
  settings.rollout.max_new_tokens = golden["longest"];
  settings.rollout.temperature = one.value("temperature", 1.0);
  const Golden& policy = one["policy"];
  settings.policy.loss = policy["loss"];
  settings.policy.clip_high = policy.value("clip_high", settings.policy.clip_high);
  settings.policy.kl_beta = policy.value("kl_beta", 0.0);
  settings.policy.importance_cap = policy.value("importance_cap", settings.policy.importance_cap);
  settings.policy.scale_rewards = policy.value("scale_rewards", "auto");
  settings.policy.inner_steps = policy.value("inner_steps", 1);
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

struct PolicyOutcome {
  std::vector<Golden> steps = {};
  std::vector<std::vector<double>> advantages;  // in the order of the file, on one rank
  std::map<std::string, at::Tensor> values = {};
};

// The loop on one rank.
PolicyOutcome train_policy(const Golden& golden, const Golden& one, PolicyModel& trained,
                           comm::Group& group, int64_t grad_accum, const fs::path& folder) {
  constexpr int64_t kProblems = 4;
  const settings::TrainSettings settings = policy_case(golden, one);
  std::vector<data::EncodedRow> prompts(kProblems,
                                        {.ids = {3}, .supervised = std::vector<uint8_t>(1, 0)});
  const data::BatchPlan plan(data::TokenDataset::from_rows(prompts),
                             {.batch_size = kProblems / grad_accum / group.size(),
                              .grad_accum = grad_accum,
                              .world_size = group.size(),
                              .shuffle = false});
  RecordedRollouts source(golden, one, *trained.model);
  const auto strategy = parallel::make_strategy({}, group);
  optim::AdamW optimizer(
      {.epsilon = golden["adam_epsilon"], .weight_decay = 0},
      parallel::prepare_parameters(*strategy, *trained.model, trained.parameters));
  train::PolicyObjective objective(*trained.model, plan, source, settings.policy, settings.rollout,
                                   group);
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
  train::run_training_loop({.objective = objective,
                            .parameters = trained.parameters,
                            .parameter_group = "policy",
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
  PolicyOutcome outcome{.advantages = source.advantages_of_turns};
  for (const nn::NamedTensor& parameter : trained.parameters)
    outcome.values[parameter.name] = parameter.value.detach().clone();
  if (group.rank() != 0) return outcome;
  std::ifstream file(folder / "events.jsonl");
  for (std::string line; std::getline(file, line);)
    if (Golden event = Golden::parse(line); event["event"] == "step")
      outcome.steps.push_back(std::move(event));
  return outcome;
}

PolicyOutcome train_policy_on(int ranks, const Golden& golden, const Golden& one,
                              int64_t grad_accum) {
  const testing::TemporaryFolder folder;
  const std::string tuning = one["tuning"];
  std::vector<std::unique_ptr<PolicyModel>> models;
  for (int rank = 0; rank < ranks; ++rank) models.push_back(std::make_unique<PolicyModel>(tuning));
  telemetry::FlightWriter flight;
  PolicyOutcome outcome;
  parallel::run_replicas(
      {}, ranks, flight, [&](const std::shared_ptr<comm::StoreBarrier>& store_barrier) {
        const auto group = comm::join_group_at(store_barrier, std::chrono::seconds(300));
        try {
          PolicyModel& own = *models[static_cast<size_t>(store_barrier->rank())];
          PolicyOutcome found = train_policy(golden, one, own, *group, grad_accum, folder.path());
          if (store_barrier->rank() == 0) outcome = std::move(found);
        } catch (...) {
          group->abort();
          throw;
        }
      });
  return outcome;
}

void expect_like_trl(double found, double wanted, const std::string& what, double beside = 0) {
  EXPECT_LE(std::abs(found - wanted), kLikeTrl * std::max(1.0, std::abs(wanted)) + beside)
      << what << ": " << found << ", wanted " << wanted;
}

void expect_like_trl(const PolicyOutcome& found, const Golden& one) {
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

TEST(PolicyTraining, FollowsTrlForEveryLossFullAndLoraOnOneAndTwoRanks) {
  const Golden golden = read_policy_golden();
  for (const Golden& one : golden["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const int64_t grad_accum = one["grad_accum"];
    const PolicyOutcome found = train_policy_on(1, golden, one, grad_accum);
    expect_like_trl(found, one);
    ASSERT_FALSE(found.advantages.empty());
    for (size_t turn = 0; turn < found.advantages.size(); ++turn) {
      const Golden& wanted = one["advantages"][turn];
      ASSERT_EQ(found.advantages[turn].size(), wanted.size());
      for (size_t at = 0; at < wanted.size(); ++at)
        expect_like_trl(found.advantages[turn][at], wanted[at], fmt::format("advantage {}", at));
    }
    SCOPED_TRACE("two ranks");
    expect_like_trl(train_policy_on(2, golden, one, grad_accum), one);
  }
}

}  // namespace
}  // namespace convoy::recipes
