// SPDX-License-Identifier: Apache-2.0
//
// Learning from rewards against TRL's trainers (tests/golden/policy/policy_training.json): from the
// same rollouts and rewards the same losses, advantages, gradient norms and weights, for whole
// models and adapters, on one and two ranks, with and without accumulation.
#include <ATen/ATen.h>

#include "convoy/apps/recipes/posttraining/golden_training_test.h"
#include "convoy/model/nn/head_loss.h"
#include "convoy/train/loop/labelled_batch.h"
#include "convoy/train/loop/policy_objective.h"

namespace convoy::recipes {
namespace {

std::vector<float> text_logprobs(nn::CausalLm& model, const train::Rollout& rollout,
                                 double temperature) {
  const at::NoGradGuard no_grad;
  const train::LabelledBatch batch =
      train::assemble_batch(data::TokenDataset::from_rows({train::row_of(rollout)}), {0});
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
  std::optional<train::Evaluation> evaluate(comm::Group&, const std::function<bool()>&,
                                            const TextLosses&) override {
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
  settings::TrainSettings settings = golden_settings(golden, "grpo");
  settings.rollout.temperature = one.value("temperature", 1.0);
  const Golden& policy = one["policy"];
  settings.policy.loss = policy["loss"];
  settings.policy.clip_high = policy.value("clip_high", settings.policy.clip_high);
  settings.policy.kl_beta = policy.value("kl_beta", 0.0);
  settings.policy.importance_cap = policy.value("importance_cap", settings.policy.importance_cap);
  settings.policy.scale_rewards = policy.value("scale_rewards", "auto");
  settings.policy.inner_steps = policy.value("inner_steps", 1);
  return settings;
}

struct PolicyOutcome {
  GoldenOutcome outcome = {};
  std::vector<std::vector<double>> advantages;  // in the order of the file, on one rank
};

struct RolloutsBeforeObjective {
  RecordedRollouts recorded;
};

// Hands its source's advantages over when it goes.
class RecordedTraining : private RolloutsBeforeObjective, public train::PolicyObjective {
 public:
  RecordedTraining(const Golden& golden, const Golden& one, const settings::TrainSettings& settings,
                   nn::CausalLm& model, const data::BatchPlan& plan, comm::Group& group,
                   std::vector<std::vector<double>>* advantages)
      : RolloutsBeforeObjective{{golden, one, model}},
        PolicyObjective(model, plan, recorded, settings.policy, settings.rollout, group),
        advantages_(advantages) {}
  ~RecordedTraining() override {
    if (advantages_ != nullptr) *advantages_ = recorded.advantages_of_turns;
  }

 private:
  std::vector<std::vector<double>>* advantages_;
};

PolicyOutcome train_policy_on(int ranks, const Golden& golden, const Golden& one,
                              int64_t grad_accum) {
  const settings::TrainSettings settings = policy_case(golden, one);
  PolicyOutcome found;
  found.outcome =
      train_golden(ranks, golden, settings, one["tuning"], grad_accum,
                   [&](GoldenModel& trained, const data::BatchPlan& plan, comm::Group& group) {
                     return std::make_unique<RecordedTraining>(
                         golden, one, settings, *trained.model, plan, group,
                         group.rank() == 0 ? &found.advantages : nullptr);
                   });
  return found;
}

TEST(PolicyTraining, FollowsTrlForEveryLossFullAndLoraOnOneAndTwoRanks) {
  const Golden golden = read_golden("policy/policy_training.json");
  for (const Golden& one : golden["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const int64_t grad_accum = one["grad_accum"];
    const PolicyOutcome found = train_policy_on(1, golden, one, grad_accum);
    expect_like_trl(found.outcome, one);
    ASSERT_FALSE(found.advantages.empty());
    for (size_t turn = 0; turn < found.advantages.size(); ++turn) {
      const Golden& wanted = one["advantages"][turn];
      ASSERT_EQ(found.advantages[turn].size(), wanted.size());
      for (size_t at = 0; at < wanted.size(); ++at)
        expect_like_trl(found.advantages[turn][at], wanted[at], fmt::format("advantage {}", at));
    }
    SCOPED_TRACE("two ranks");
    expect_like_trl(train_policy_on(2, golden, one, grad_accum).outcome, one);
  }
}

}  // namespace
}  // namespace convoy::recipes
