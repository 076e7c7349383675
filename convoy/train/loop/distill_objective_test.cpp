// SPDX-License-Identifier: Apache-2.0
//
// Learning from a teacher over models made by hand, with texts that a test gives.
#include "convoy/train/loop/distill_objective.h"

#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "convoy/model/nn/head_loss.h"
#include "convoy/train/loop/toy_run_test.h"

namespace convoy::train {
namespace {

constexpr int64_t kTextsOfProblem = 2;

data::TokenDataset taught_problems() {
  std::vector<data::EncodedRow> rows;
  for (const std::vector<int32_t>& prompt :
       std::vector<std::vector<int32_t>>{{1, 2}, {4, 1, 6}, {9, 8}, {5, 0, 2, 7}})
    rows.push_back(row(prompt, prompt.size()));
  return data::TokenDataset::from_rows(rows);
}

// Texts that depend on problem and sample alone, of unequal lengths.
std::vector<Rollout> taught_texts(const std::vector<int64_t>& problems) {
  const data::TokenDataset prompts = taught_problems();
  std::vector<Rollout> texts;
  for (const int64_t problem : problems)
    for (int64_t sample = 0; sample < kTextsOfProblem; ++sample) {
      const auto prompt = prompts.ids(problem);
      Rollout text{.problem = problem,
                   .sample = sample,
                   .ids = {prompt.begin(), prompt.end()},
                   .prompt_tokens = std::ssize(prompt)};
      for (int64_t token = 0; token < 1 + (3 * problem + sample) % 4; ++token)
        text.ids.push_back(static_cast<int32_t>((7 * problem + 3 * sample + 5 * token) % kVocab));
      texts.push_back(std::move(text));
    }
  return texts;
}

// The answer of a server that has the teacher, at the tokens of a text.
TeacherTokens served_tokens(nn::CausalLm& teacher, const Rollout& text, int64_t top_k) {
  const at::NoGradGuard no_grad;
  std::vector<int64_t> ids(text.ids.begin(), text.ids.end());
  std::vector<int64_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), int64_t{0});
  const int64_t length = std::ssize(ids);
  const at::Tensor log_TV =
      nn::head_logits(teacher, teacher.hidden_states({ids, positions, {0, length}, at::kCPU}, {}))
          .log_softmax(1);
  TeacherTokens tokens;
  for (int64_t at = text.prompt_tokens; at < length; ++at) {
    const auto [logprobs, likeliest] = log_TV[at - 1].topk(top_k);
    for (int64_t rank = 0; rank < top_k; ++rank) {
      tokens.ids.push_back(static_cast<int32_t>(likeliest[rank].item<int64_t>()));
      tokens.logprobs.push_back(logprobs[rank].item<float>());
    }
    const double listed = logprobs.to(at::kDouble).exp().sum().item<double>();
    tokens.logprobs.push_back(static_cast<float>(std::log(1 - listed)));
  }
  return tokens;
}

class GivenTexts : public RolloutSource {
 public:
  std::vector<Rollout> draw(const RolloutTurn&, const std::vector<int64_t>& problems) override {
    return texts_of(problems);
  }
  void record(const RolloutTurn&, const std::vector<Rollout>&, bool) override {}
  const std::vector<std::string>& reward_names() const override { return names_; }
  bool has_validation() const override { return true; }
  std::optional<Evaluation> evaluate(comm::Group&, const std::function<bool()>&,
                                     const TextLosses& losses) override {
    Evaluation evaluation;
    int64_t tokens = 0;
    const std::vector<Rollout> texts = texts_of({0, 1, 2, 3});
    for (const double loss : losses(texts)) evaluation.loss += loss;
    for (const Rollout& text : texts) tokens += text.text_tokens();
    evaluation.loss /= static_cast<double>(tokens);
    return evaluation;
  }

  nn::CausalLm* served_teacher = nullptr;  // its likeliest tokens come with the texts
  int64_t top_k = 0;

 private:
  std::vector<Rollout> texts_of(const std::vector<int64_t>& problems) const {
    std::vector<Rollout> texts = taught_texts(problems);
    if (served_teacher != nullptr)
      for (Rollout& text : texts) text.teacher = served_tokens(*served_teacher, text, top_k);
    return texts;
  }

  const std::vector<std::string> names_;
};

settings::TrainSettings taught_settings(const std::string& divergence) {
  settings::TrainSettings settings = make_settings();
  settings.task = "distill";
  settings.train.weight_decay = 0;
  settings.train.schedule.lr_scheduler_type = "constant";
  settings.train.schedule.warmup_steps = 0;
  settings.distill.divergence = divergence;
  settings.rollout.samples = kTextsOfProblem;
  return settings;
}

class Taught : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    // Another model: each token's states are turned round.
    const at::NoGradGuard no_grad;
    teacher_.parameters()[0].value.copy_(teacher_.parameters()[0].value.flip({1}));
    teacher_.set_requires_grad(false);
  }
  void TearDown() override { fs::remove_all(folder_); }

  struct Run {
    Run(settings::TrainSettings wanted, const fs::path& folder, nn::CausalLm& teacher,
        bool is_served = false)
        : toy(std::move(wanted), folder, {}, taught_problems()),
          objective(toy.model, is_served ? nullptr : &teacher, toy.plan, texts,
                    {.distill = toy.settings.distill, .eval_texts = 3}, toy.settings.rollout,
                    toy.group()) {
      texts.top_k = toy.settings.distill.top_k;
      if (is_served) texts.served_teacher = &teacher;
    }
    LoopResult go() { return toy.go(objective); }
    double divergence() { return objective.evaluate(toy.group(), {})->loss; }

    ToyRun toy;
    GivenTexts texts;
    DistillObjective objective;
  };

  fs::path folder_;
  ToyModel teacher_;
};

TEST_F(Taught, TheModelComesNearerToItsTeacherByEveryDivergence) {
  for (const char* const divergence : {"forward_kl", "reverse_kl", "js"})
    for (const int64_t top_k : {0, 3}) {
      settings::TrainSettings settings = taught_settings(divergence);
      settings.distill.top_k = top_k;
      settings.train.steps = 12;
      settings.train.learning_rate = 0.02;
      settings.train.optimizer.adam_epsilon = 1e-8;
      Run run(settings, folder_ / divergence / std::to_string(top_k), teacher_);
      const double before = run.divergence();
      run.go();
      EXPECT_LT(run.divergence(), 0.8 * before) << divergence << " " << top_k;
      const json last = run.toy.events("step").back();
      EXPECT_TRUE(last.contains("entropy"));
      EXPECT_TRUE(last.contains("completions/mean_length"));
      EXPECT_FALSE(last.contains("reward"));
    }
}

TEST_F(Taught, WhatAServerSaysOfTheTeacherTeachesTheSame) {
  for (const char* const divergence : {"forward_kl", "reverse_kl", "js"}) {
    std::vector<json> steps[2];
    double after[2] = {};
    for (const bool is_served : {false, true}) {
      settings::TrainSettings settings = taught_settings(divergence);
      settings.distill.top_k = 3;
      settings.train.batch_size = 2;
      settings.train.grad_accum = 2;
      settings.train.steps = 4;
      Run run(settings, folder_ / divergence / (is_served ? "served" : "beside"), teacher_,
              is_served);
      run.go();
      steps[is_served] = run.toy.events("step");
      after[is_served] = run.divergence();
    }
    ASSERT_EQ(steps[0].size(), 4u);
    for (size_t step = 0; step < steps[0].size(); ++step)
      for (const char* const name : {"loss", "grad_norm", "entropy"})
        EXPECT_NEAR(steps[0][step][name].get<double>(), steps[1][step][name].get<double>(), 1e-6)
            << divergence << " step " << step << " " << name;
    EXPECT_NEAR(after[0], after[1], 1e-6);
  }
}

// The first step's loss is the divergence that an evaluation of the same texts measures: a mean
// over tokens, whatever the lengths of texts.
TEST_F(Taught, AccumulationChangesNoStep) {
  std::vector<json> steps[2];
  for (const int64_t accumulation : {1, 2}) {
    settings::TrainSettings settings = taught_settings("reverse_kl");
    settings.train.batch_size = 4 / accumulation;
    settings.train.grad_accum = accumulation;
    settings.train.steps = 3;
    Run run(settings, folder_ / std::to_string(accumulation), teacher_);
    const double before = run.divergence();
    run.go();
    steps[accumulation - 1] = run.toy.events("step");
    EXPECT_NEAR(steps[accumulation - 1][0]["loss"].get<double>(), before, 1e-5);
  }
  ASSERT_EQ(steps[0].size(), steps[1].size());
  for (size_t step = 0; step < steps[0].size(); ++step)
    for (const char* const name : {"loss", "grad_norm", "entropy", "supervised_tokens"})
      EXPECT_NEAR(steps[0][step][name].get<double>(), steps[1][step][name].get<double>(), 1e-5)
          << "step " << step << " " << name;
}

TEST_F(Taught, ATeacherThatIsTheModelTeachesNothing) {
  settings::TrainSettings settings = taught_settings("js");
  settings.train.steps = 1;
  ToyModel same;
  same.set_requires_grad(false);
  Run run(settings, folder_, same);
  run.go();
  EXPECT_NEAR(run.toy.events("step")[0]["loss"].get<double>(), 0, 1e-6);
  EXPECT_NEAR(run.toy.events("step")[0]["grad_norm"].get<double>(), 0, 1e-6);
}

}  // namespace
}  // namespace convoy::train
