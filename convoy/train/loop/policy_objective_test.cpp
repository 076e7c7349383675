// SPDX-License-Identifier: Apache-2.0
//
// Learning from rewarded texts over a model made by hand, with texts that a test gives it.
#include "convoy/train/loop/policy_objective.h"

#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>

#include "convoy/core/base/hash.h"
#include "convoy/model/nn/head_loss.h"
#include "convoy/train/loop/toy_run_test.h"

namespace convoy::train {
namespace {

constexpr int64_t kSamples = 4;
constexpr int32_t kGood = 3;  // the token that rewards ask for

data::TokenDataset toy_problems() {
  std::vector<data::EncodedRow> rows;
  for (const std::vector<int32_t>& prompt :
       std::vector<std::vector<int32_t>>{{1, 2}, {4, 1, 6}, {9, 8}, {5, 0, 2, 7}, {10, 1}, {6, 6}})
    rows.push_back(row(prompt, prompt.size()));
  return data::TokenDataset::from_rows(rows);
}

// Log-probabilities of the texts under the model, as its engine gives them.
std::vector<float> drawn_by(ToyModel& model, const Rollout& rollout) {
  const at::NoGradGuard no_grad;
  const LabelledBatch batch = assemble_batch(
      data::TokenDataset::from_rows({row(rollout.ids, static_cast<size_t>(rollout.prompt_tokens))}),
      {0});
  const at::Tensor nll_T =
      nn::head_token_losses(model, model.hidden_states(batch.tokens, {}), batch.labels).nll_T;
  std::vector<float> drawn;
  for (int64_t at = rollout.prompt_tokens - 1; at + 1 < std::ssize(rollout.ids); ++at)
    drawn.push_back(-nll_T[at].item<float>());
  return drawn;
}

// Texts that depend on turn, problem and sample alone. The reward of a text is the share of its
// tokens that are the good one.
class MadeTexts : public RolloutSource {
 public:
  explicit MadeTexts(ToyModel& model) : model_(model) {}

  std::vector<Rollout> draw(const RolloutTurn& turn,
                            const std::vector<int64_t>& problems) override {
    turns.push_back(turn);
    if (turn.first_step == stops_at) throw StopRequest("stopped");
    std::vector<Rollout> rollouts;
    const data::TokenDataset prompts = toy_problems();
    for (const int64_t problem : problems)
      for (int64_t sample = 0; sample < kSamples; ++sample) {
        const auto prompt = prompts.ids(problem);
        Rollout rollout{.problem = problem,
                        .sample = sample,
                        .ids = {prompt.begin(), prompt.end()},
                        .prompt_tokens = std::ssize(prompt)};
        const uint64_t mixed = mix_seed(
            std::vector<uint64_t>{static_cast<uint64_t>(turn.first_step),
                                  static_cast<uint64_t>(problem), static_cast<uint64_t>(sample)});
        const auto length = static_cast<int64_t>(2 + mixed % 3);
        double good = 0;
        for (int64_t token = 0; token < length; ++token) {
          const auto id = static_cast<int32_t>((mixed >> (8 * token)) % kVocab);
          // Every other token is the good one in odd samples.
          rollout.ids.push_back((sample + token) % 3 == 0 ? kGood : id);
          good += rollout.ids.back() == kGood ? 1 : 0;
        }
        rollout.reward = are_alike ? 0.5 : good / static_cast<double>(length);
        if (negates) rollout.reward = -rollout.reward;
        rollout.rewards = {rollout.reward};
        rollout.is_truncated = truncates && sample == 1;
        rollout.drawn = drawn_by(model_, rollout);
        rollout.reference.assign(rollout.drawn.size(), -1.5F);
        rollouts.push_back(std::move(rollout));
      }
    return rollouts;
  }
  void record(const RolloutTurn&, const std::vector<Rollout>& rollouts, bool does_teach) override {
    recorded = rollouts;
    teaches = does_teach;
  }
  const std::vector<std::string>& reward_names() const override { return names_; }
  bool has_validation() const override { return false; }
  std::optional<Evaluation> evaluate(comm::Group&, const std::function<bool()>&,
                                     const TextLosses&) override {
    return std::nullopt;
  }

  std::vector<RolloutTurn> turns;
  std::vector<Rollout> recorded;
  bool teaches = false;
  int64_t stops_at = -1;
  bool are_alike = false;
  bool negates = false;
  bool truncates = false;

 private:
  ToyModel& model_;
  const std::vector<std::string> names_ = {"good"};
};

settings::TrainSettings policy_settings(const std::string& loss = "dapo") {
  settings::TrainSettings settings = make_settings();
  settings.task = "grpo";
  settings.train.weight_decay = 0;
  settings.train.schedule.lr_scheduler_type = "constant";
  settings.train.schedule.warmup_steps = 0;
  settings.policy.loss = loss;
  settings.rollout.samples = kSamples;
  settings.rollout.max_new_tokens = 6;
  return settings;
}

class Policy : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  struct Run {
    Run(settings::TrainSettings wanted, const fs::path& folder)
        : toy(std::move(wanted), folder, {}, toy_problems()),
          texts(toy.model),
          objective(toy.model, toy.plan, texts, toy.settings.policy, toy.settings.rollout,
                    toy.group()) {}
    LoopResult go() { return toy.go(objective); }

    ToyRun toy;
    MadeTexts texts;
    PolicyObjective objective;
  };

  // Log-probabilities of the first turn's texts, each times its reward less the mean.
  static double liking(ToyModel& model) {
    MadeTexts texts(model);
    std::vector<Rollout> rollouts = texts.draw({}, {0, 1, 2, 3, 4, 5});
    double mean = 0;
    for (const Rollout& rollout : rollouts)
      mean += rollout.reward / static_cast<double>(rollouts.size());
    double sum = 0;
    for (const Rollout& rollout : rollouts)
      for (const float log_probability : rollout.drawn)
        sum += (rollout.reward - mean) * static_cast<double>(log_probability);
    return sum;
  }

  fs::path folder_;
};

TEST_F(Policy, RaisesWhatIsRewardedAndLowersWhatIsPunished) {
  for (const char* const loss : {"grpo", "dapo", "dr_grpo", "bnpo", "gspo", "rloo", "cispo"}) {
    for (const bool negates : {false, true}) {
      Run run(policy_settings(loss), folder_ / loss / (negates ? "punished" : "rewarded"));
      run.texts.negates = negates;
      const double before = liking(run.toy.model);
      run.go();
      if (negates)
        EXPECT_LT(liking(run.toy.model), before) << loss;
      else
        EXPECT_GT(liking(run.toy.model), before) << loss;
    }
  }
}

TEST_F(Policy, AccumulationChangesNoStep) {
  for (const char* const loss : {"grpo", "dapo", "dr_grpo", "gspo"}) {
    std::vector<json> steps[2];
    for (const int64_t accumulation : {1, 2}) {
      settings::TrainSettings settings = policy_settings(loss);
      settings.train.batch_size = 4 / accumulation;
      settings.train.grad_accum = accumulation;
      settings.policy.mask_truncated = true;
      settings.policy.kl_beta = 0.1;
      settings.policy.scale_rewards = "batch";
      Run run(settings, folder_ / loss / std::to_string(accumulation));
      run.texts.truncates = true;
      run.go();
      steps[accumulation - 1] = run.toy.events("step");
    }
    ASSERT_EQ(steps[0].size(), steps[1].size());
    for (size_t step = 0; step < steps[0].size(); ++step) {
      for (const char* const name : {"loss", "grad_norm", "kl"})
        EXPECT_NEAR(steps[0][step][name].get<double>(), steps[1][step][name].get<double>(), 1e-5)
            << loss << " step " << step << " " << name;
      for (const char* const name : {"reward", "reward_std", "tokens", "supervised_tokens", "rows"})
        EXPECT_EQ(steps[0][step][name], steps[1][step][name]) << loss << " " << name;
    }
  }
}

TEST_F(Policy, StepsOnTheSameTextsDrawOnce) {
  settings::TrainSettings settings = policy_settings();
  settings.train.steps = 6;
  settings.policy.inner_steps = 3;
  Run run(settings, folder_);
  EXPECT_EQ(run.objective.steps_per_epoch(), 3 * run.toy.plan.steps_per_epoch());
  run.go();
  ASSERT_EQ(run.texts.turns.size(), 2u);
  EXPECT_EQ(run.texts.turns[0].first_step, 0);
  EXPECT_EQ(run.texts.turns[1].first_step, 3);
  EXPECT_TRUE(run.texts.turns[1].begins);
  const std::vector<json> steps = run.toy.events("step");
  ASSERT_EQ(steps.size(), 6u);
  for (const size_t first : {0, 3}) {
    EXPECT_EQ(steps[first]["kl_engine_trainer"], 0.0);
    EXPECT_EQ(steps[first]["logprob_difference"], 0.0);
    EXPECT_GT(steps[first + 1]["logprob_difference"].get<double>(), 0) << "the model has moved";
    EXPECT_EQ(steps[first]["reward"], steps[first + 1]["reward"]);
  }
}

TEST_F(Policy, ARunThatStopsBetweenStepsOnTheSameTextsGoesOnWithThem) {
  settings::TrainSettings settings = policy_settings();
  settings.policy.inner_steps = 3;
  settings.train.save_strategy = "steps";
  settings.train.save_steps = 2;
  Run run(settings, folder_);
  run.toy.settings.train.steps = 2;
  run.go();
  Run later(settings, folder_);
  later.go();
  ASSERT_FALSE(later.texts.turns.empty());
  EXPECT_EQ(later.texts.turns[0].first_step, 0);
  EXPECT_FALSE(later.texts.turns[0].begins);
}

TEST_F(Policy, AStopWhileTextsAreDrawnKeepsTheStepsBefore) {
  settings::TrainSettings settings = policy_settings();
  settings.train.save_strategy = "epoch";
  Run unbroken(settings, folder_ / "unbroken");
  unbroken.go();
  Run stopped(settings, folder_ / "stopped");
  stopped.texts.stops_at = 1;
  const LoopResult result = stopped.go();
  EXPECT_EQ(result.end, LoopEnd::Stopped);
  EXPECT_EQ(result.progress.step, 1);
  Run later(settings, folder_ / "stopped");
  EXPECT_EQ(later.go().end, LoopEnd::Finished);
  EXPECT_EQ(later.texts.turns[0].first_step, 1);
  expect_same_bits(later.toy.values(), unbroken.toy.values());
}

TEST_F(Policy, AStepWithoutSpreadChangesNothingAndIsCounted) {
  settings::TrainSettings settings = policy_settings();
  settings.train.weight_decay = 0.5;
  Run run(settings, folder_);
  run.texts.are_alike = true;
  const Tensors before = run.toy.values();
  run.go();
  expect_same_bits(run.toy.values(), before);
  for (const json& step : run.toy.events("step")) {
    EXPECT_EQ(step["frac_reward_zero_std"], 1.0);
    EXPECT_EQ(step["loss"], 0.0);
    EXPECT_EQ(step["reward"], 0.5);
  }
  for (const Rollout& rollout : run.texts.recorded) EXPECT_EQ(rollout.advantage, 0);
  EXPECT_FALSE(run.texts.teaches);
}

TEST_F(Policy, TheDivergenceIsLearntWithoutSpreadToo) {
  settings::TrainSettings settings = policy_settings();
  settings.policy.kl_beta = 0.5;
  Run run(settings, folder_);
  run.texts.are_alike = true;
  const Tensors before = run.toy.values();
  run.go();
  EXPECT_TRUE(run.texts.teaches);
  EXPECT_FALSE(run.toy.values()[0].equal(before[0]));
}

TEST_F(Policy, MaskedTextsCountInTheBaselineAndNotInTheLoss) {
  settings::TrainSettings settings = policy_settings();
  settings.train.steps = 1;
  settings.train.batch_size = 6;
  std::vector<double> losses;
  for (const bool masks : {false, true}) {
    settings.policy.mask_truncated = masks;
    Run run(settings, folder_ / (masks ? "masks" : "learns"));
    run.texts.truncates = true;
    run.go();
    double sum = 0;
    double tokens = 0;
    for (const Rollout& rollout : run.texts.recorded) {
      if (masks && rollout.is_truncated) continue;
      // The model drew the texts, so each ratio is 1.
      sum -= rollout.advantage * static_cast<double>(rollout.text_tokens());
      tokens += static_cast<double>(rollout.text_tokens());
    }
    const std::vector<json> steps = run.toy.events("step");
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_NEAR(steps[0]["loss"].get<double>(), sum / tokens, 1e-9);
    EXPECT_EQ(steps[0]["completions/clipped_ratio"], 0.25);
  }
}

}  // namespace
}  // namespace convoy::train
