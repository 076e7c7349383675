// SPDX-License-Identifier: Apache-2.0
//
// Learning from a teacher against TRL's DistillationTrainer (tests/golden/distill): from the same
// texts the same losses, entropies, gradient norms and weights, for whole models and adapters, on
// one and two ranks, with and without accumulation.
#include <ATen/ATen.h>

#include "convoy/apps/recipes/posttraining/golden_training_test.h"
#include "convoy/train/loop/distill_objective.h"

namespace convoy::recipes {
namespace {

// The texts of the golden file, step by step.
class RecordedTexts : public train::RolloutSource {
 public:
  explicit RecordedTexts(const Golden& golden)
      : turns_(golden["turns"]), samples_(golden["samples"]) {}

  std::vector<train::Rollout> draw(const train::RolloutTurn& turn,
                                   const std::vector<int64_t>& problems) override {
    std::vector<train::Rollout> rollouts;
    for (const int64_t problem : problems)
      for (int64_t sample = 0; sample < samples_; ++sample) {
        const Golden& one = turns_[static_cast<size_t>(turn.first_step)]
                                  [static_cast<size_t>(problem * samples_ + sample)];
        train::Rollout rollout{
            .problem = problem, .sample = sample, .ids = one["prompt"].get<std::vector<int32_t>>()};
        rollout.prompt_tokens = std::ssize(rollout.ids);
        for (const int32_t id : one["text"]) rollout.ids.push_back(id);
        rollouts.push_back(std::move(rollout));
      }
    return rollouts;
  }
  void record(const train::RolloutTurn&, const std::vector<train::Rollout>&,
              bool teaches) override {
    EXPECT_TRUE(teaches);
  }
  const std::vector<std::string>& reward_names() const override { return names_; }
  bool has_validation() const override { return false; }
  std::optional<train::Evaluation> evaluate(comm::Group&, const std::function<bool()>&,
                                            const TextLosses&) override {
    return std::nullopt;
  }

 private:
  const Golden turns_;
  const int64_t samples_;
  const std::vector<std::string> names_;
};

struct TeacherBeforeObjective {
  RecordedTexts texts;
  std::unique_ptr<nn::CausalLm> teacher;
};

class RecordedTeaching : private TeacherBeforeObjective, public train::DistillObjective {
 public:
  RecordedTeaching(const Golden& golden, const settings::TrainSettings& settings,
                   nn::CausalLm& model, const data::BatchPlan& plan, comm::Group& group)
      : TeacherBeforeObjective{RecordedTexts(golden),
                               models::load_causal_lm(
                                   io::ModelFolder::open(
                                       (testing::source_folder() / "tests/golden/distill/teacher")
                                           .string()),
                                   at::kFloat)},
        DistillObjective(model, teacher.get(), plan, texts, {.distill = settings.distill},
                         settings.rollout, group) {}
};

GoldenOutcome train_taught_on(int ranks, const Golden& golden, const Golden& one) {
  settings::TrainSettings settings = golden_settings(golden, "distill");
  const Golden& distill = one["distill"];
  settings.distill.divergence = distill["divergence"];
  settings.distill.beta = distill.value("beta", settings.distill.beta);
  settings.distill.temperature = distill.value("temperature", 1.0);
  settings.distill.top_k = distill.value("top_k", 0);
  return train_golden(ranks, golden, settings, one["tuning"], one["grad_accum"],
                      [&](GoldenModel& trained, const data::BatchPlan& plan, comm::Group& group) {
                        return std::make_unique<RecordedTeaching>(golden, settings, *trained.model,
                                                                  plan, group);
                      });
}

TEST(DistillTraining, FollowsTrlForEveryDivergenceFullAndLoraOnOneAndTwoRanks) {
  const Golden golden = read_golden("distill/distill_training.json");
  for (const Golden& one : golden["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const GoldenOutcome found = train_taught_on(1, golden, one);
    expect_like_trl(found, one);
    // TRL's entropy is a mean over micro-batches of different sizes.
    if (one["grad_accum"] == 1)
      for (size_t step = 0; step < found.steps.size(); ++step)
        expect_like_trl(found.steps[step]["entropy"], one["curve"][step]["entropy"],
                        fmt::format("entropy of step {}", step));
    SCOPED_TRACE("two ranks");
    expect_like_trl(train_taught_on(2, golden, one), one);
  }
}

}  // namespace
}  // namespace convoy::recipes
