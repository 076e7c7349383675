// SPDX-License-Identifier: Apache-2.0
//
// Each loss against its paper's formula, written out in plain arithmetic here, and against TRL's
// trainers on the same numbers (tests/golden/policy).
#include "convoy/train/objectives/policy_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "files/source_folder.h"

namespace convoy::objectives {
namespace {

// Tokens under the three models, one list per rollout.
struct Rollout {
  std::vector<double> trained, drawn, reference;
  double advantage = 0;
};

// Ratios below, within and above the clip, with advantages of both signs and 0.
const std::vector<Rollout> kRollouts = {
    {{-1.0, -0.2, -3.0}, {-1.5, -0.25, -1.0}, {-1.2, -0.1, -2.0}, 1.5},
    {{-0.7}, {-0.1}, {-0.6}, -0.75},
    {{-2.0, -1.0}, {-2.9, -1.05}, {-2.5, -1.0}, -2},
    {{-0.5, -0.5}, {-0.75, -0.45}, {-0.4, -0.6}, 0.5},
    {{-1.0, -4.0}, {-3.0, -1.0}, {-1.0, -1.0}, 0}};

at::Tensor fp64_T(const std::vector<double>& values) {
  return at::tensor(values, at::TensorOptions().dtype(at::kDouble));
}

std::vector<double> list_of(const at::Tensor& tensor) {
  const at::Tensor held = tensor.detach().to(at::kDouble).contiguous();
  const double* values = held.const_data_ptr<double>();
  return {values, values + held.numel()};
}

PolicyTokens tokens_of(const std::vector<Rollout>& rollouts) {
  PolicyTokens tokens;
  std::vector<double> trained, drawn, reference;
  tokens.starts = {0};
  for (const Rollout& rollout : rollouts) {
    trained.insert(trained.end(), rollout.trained.begin(), rollout.trained.end());
    drawn.insert(drawn.end(), rollout.drawn.begin(), rollout.drawn.end());
    reference.insert(reference.end(), rollout.reference.begin(), rollout.reference.end());
    tokens.starts.push_back(static_cast<int64_t>(trained.size()));
    tokens.advantage_R.push_back(rollout.advantage);
  }
  tokens.log_probability_T = fp64_T(trained).requires_grad_(true);
  tokens.drawn_T = fp64_T(drawn);
  tokens.reference_T = fp64_T(reference);
  return tokens;
}

settings::PolicySettings policy(const std::string& loss, double kl_beta = 0) {
  settings::PolicySettings settings;
  settings.loss = loss;
  settings.clip_low = 0.2;
  settings.clip_high = 0.3;
  settings.kl_beta = kl_beta;
  return settings;
}

double clip(double ratio) { return std::clamp(ratio, 0.8, 1.3); }

double ppo(double ratio, double advantage) {
  return -std::min(ratio * advantage, clip(ratio) * advantage);
}

double k3(const Rollout& rollout, size_t token) {
  const double difference = rollout.reference[token] - rollout.trained[token];
  return std::exp(difference) - difference - 1;
}

double log_ratio(const Rollout& rollout) {
  double sum = 0;
  for (size_t token = 0; token < rollout.trained.size(); ++token)
    sum += rollout.trained[token] - rollout.drawn[token];
  return sum;
}

double ratio(const Rollout& rollout, size_t token) {
  return std::exp(rollout.trained[token] - rollout.drawn[token]);
}

using TokenLoss = std::function<double(const Rollout&, size_t)>;

double token_sum(const TokenLoss& loss) {
  double sum = 0;
  for (const Rollout& rollout : kRollouts)
    for (size_t token = 0; token < rollout.trained.size(); ++token) sum += loss(rollout, token);
  return sum;
}

// The sum over rollouts of the mean over their tokens.
double mean_sum(const TokenLoss& loss) {
  return token_sum([&](const Rollout& rollout, size_t token) {
    return loss(rollout, token) / static_cast<double>(rollout.trained.size());
  });
}

// The gradient against differences. No ratio of kRollouts lies at a corner of the clip.
void expect_gradient(const settings::PolicySettings& settings) {
  PolicyTokens tokens = tokens_of(kRollouts);
  policy_losses(settings, tokens).sum.backward();
  const std::vector<double> gradient = list_of(tokens.log_probability_T.grad());
  constexpr double kShift = 1e-6;
  for (size_t token = 0; token < gradient.size(); ++token) {
    const auto shifted = [&](double shift) {
      PolicyTokens moved = tokens_of(kRollouts);
      moved.log_probability_T = moved.log_probability_T.detach().clone();
      moved.log_probability_T[static_cast<int64_t>(token)] += shift;
      return policy_losses(settings, moved).sum.item<double>();
    };
    EXPECT_NEAR(gradient[token], (shifted(kShift) - shifted(-kShift)) / (2 * kShift), 1e-7)
        << token;
  }
}

void expect_sum(const settings::PolicySettings& settings, double wanted) {
  SCOPED_TRACE(settings.loss);
  EXPECT_NEAR(policy_losses(settings, tokens_of(kRollouts)).sum.item<double>(), wanted, 1e-12);
  expect_gradient(settings);
}

TEST(PolicyLoss, OfTokensIsItsPapersFormula) {
  constexpr double kBeta = 0.3;
  const TokenLoss plain = [](const Rollout& rollout, size_t token) {
    return ppo(ratio(rollout, token), rollout.advantage);
  };
  const TokenLoss with_divergence = [&](const Rollout& rollout, size_t token) {
    return plain(rollout, token) + kBeta * k3(rollout, token);
  };
  expect_sum(policy("grpo"), mean_sum(plain));
  expect_sum(policy("grpo", kBeta), mean_sum(with_divergence));
  for (const char* loss : {"dapo", "dr_grpo", "bnpo"}) {
    expect_sum(policy(loss), token_sum(plain));
    expect_sum(policy(loss, kBeta), token_sum(with_divergence));
  }
}

TEST(PolicyLoss, OfSequencesHasOneRatioPerRollout) {
  double gspo = 0;
  double rloo = 0;
  for (const Rollout& rollout : kRollouts) {
    const auto tokens = static_cast<double>(rollout.trained.size());
    gspo += ppo(std::exp(log_ratio(rollout) / tokens), rollout.advantage);
    rloo += ppo(std::exp(log_ratio(rollout)), rollout.advantage);
  }
  expect_sum(policy("gspo"), gspo);
  expect_sum(policy("gspo", 0.3), gspo + 0.3 * mean_sum(k3));
  expect_sum(policy("rloo"), rloo);
  // The divergence is a part of the reward there.
  expect_sum(policy("rloo", 0.3), rloo);
}

TEST(PolicyLoss, CispoWeighsTheGradientOfEachToken) {
  PolicyTokens tokens = tokens_of(kRollouts);
  const PolicyLosses losses = policy_losses(policy("cispo"), tokens);
  const auto weight = [](const Rollout& rollout, size_t token) {
    return std::min(ratio(rollout, token), 1.3) * rollout.advantage;
  };
  EXPECT_NEAR(losses.sum.item<double>(), token_sum([&](const Rollout& rollout, size_t token) {
                return -weight(rollout, token) * rollout.trained[token];
              }),
              1e-12);
  losses.sum.backward();
  const std::vector<double> gradient = list_of(tokens.log_probability_T.grad());
  size_t at = 0;
  for (const Rollout& rollout : kRollouts)
    for (size_t token = 0; token < rollout.trained.size(); ++token, ++at)
      EXPECT_NEAR(gradient[at], -weight(rollout, token), 1e-12) << at;
}

TEST(PolicyLoss, TellsRatiosDivergenceAndWhatWasClipped) {
  const PolicyLosses grpo = policy_losses(policy("grpo"), tokens_of(kRollouts));
  // Ratios: 1.65, 1.05, 0.14 | 0.55 | 2.46, 1.05 | 1.28, 0.95 | 7.4, 0.05
  EXPECT_EQ(list_of(grpo.clipped_T), (std::vector<double>{1, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_NEAR(grpo.ratio_T[0].item<double>(), std::exp(0.5), 1e-12);
  EXPECT_NEAR(grpo.divergence_T[3].item<double>(), k3(kRollouts[1], 0), 1e-12);
  EXPECT_FALSE(grpo.divergence_T.requires_grad());
  EXPECT_FALSE(grpo.ratio_T.requires_grad());
  // A rollout's ratios: exp(-0.48), exp(-0.6), exp(0.48), exp(0.1), exp(-0.5)
  const PolicyLosses gspo = policy_losses(policy("gspo"), tokens_of(kRollouts));
  EXPECT_EQ(list_of(gspo.clipped_T), (std::vector<double>{0, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
  const PolicyLosses cispo = policy_losses(policy("cispo"), tokens_of(kRollouts));
  EXPECT_EQ(list_of(cispo.clipped_T), (std::vector<double>{1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  PolicyTokens without = tokens_of(kRollouts);
  without.reference_T = at::Tensor();
  EXPECT_FALSE(policy_losses(policy("grpo", 0.3), without).divergence_T.defined());
}

// Accumulation and ranks rest on this.
TEST(PolicyLoss, TheSumOfPartsIsTheSumOfTheWhole) {
  for (const settings::PolicyLossFacts& facts : settings::kPolicyLosses) {
    const settings::PolicySettings settings = policy(std::string(facts.name), 0.3);
    PolicyTokens whole = tokens_of(kRollouts);
    policy_losses(settings, whole).sum.backward();
    std::vector<double> gradient;
    for (const Rollout& rollout : kRollouts) {
      PolicyTokens part = tokens_of({rollout});
      policy_losses(settings, part).sum.backward();
      for (const double value : list_of(part.log_probability_T.grad())) gradient.push_back(value);
    }
    EXPECT_EQ(gradient, list_of(whole.log_probability_T.grad())) << facts.name;
  }
}

TEST(PolicyLoss, WithoutRolloutsTheSumIsZero) {
  for (const settings::PolicyLossFacts& facts : settings::kPolicyLosses) {
    PolicyTokens none = tokens_of({});
    const PolicyLosses losses = policy_losses(policy(std::string(facts.name), 0.3), none);
    EXPECT_EQ(losses.sum.item<double>(), 0) << facts.name;
    losses.sum.backward();
    EXPECT_EQ(policy_divisor(policy(std::string(facts.name)), 0, 0, 1), 1) << facts.name;
  }
}

TEST(PolicyLoss, TheDivisorCountsTheWholeStep) {
  EXPECT_EQ(policy_divisor(policy("grpo"), 6, 50, 16), 6);
  EXPECT_EQ(policy_divisor(policy("gspo"), 6, 50, 16), 6);
  EXPECT_EQ(policy_divisor(policy("rloo"), 6, 50, 16), 6);
  EXPECT_EQ(policy_divisor(policy("dapo"), 6, 50, 16), 50);
  EXPECT_EQ(policy_divisor(policy("bnpo"), 6, 50, 16), 50);
  EXPECT_EQ(policy_divisor(policy("cispo"), 6, 50, 16), 50);
  EXPECT_EQ(policy_divisor(policy("dr_grpo"), 6, 50, 16), 96);
}

std::vector<double> advantages(const std::string& loss, const std::string& scale,
                               const std::vector<double>& rewards, int64_t group_size) {
  settings::PolicySettings settings = policy(loss);
  settings.scale_rewards = scale;
  return advantages_of(settings, rewards, group_size);
}

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted,
                 double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t at = 0; at < found.size(); ++at) EXPECT_NEAR(found[at], wanted[at], tolerance) << at;
}

TEST(Advantages, OfAGroup) {
  const std::vector<double> rewards = {1, 0, 2, 5, 5, 8};
  expect_near(advantages("grpo", "none", rewards, 3), {0, -1, 1, -1, -1, 2}, 1e-12);
  // Sample standard deviations: 1 and sqrt(3); of all six rewards: sqrt(9.1).
  const double second = std::sqrt(3) + 1e-4;
  expect_near(advantages("grpo", "group", rewards, 3),
              {0, -1 / 1.0001, 1 / 1.0001, -1 / second, -1 / second, 2 / second}, 1e-12);
  const double all = std::sqrt(9.1) + 1e-4;
  expect_near(advantages("grpo", "batch", rewards, 3),
              {0, -1 / all, 1 / all, -1 / all, -1 / all, 2 / all}, 1e-12);
  // Means of the others: 1, 1.5, 0.5 and 6.5, 6.5, 5.
  expect_near(advantages("rloo", "none", rewards, 3), {0, -1.5, 1.5, -1.5, -1.5, 3}, 1e-12);
}

TEST(Advantages, AutoIsThePapersScale) {
  const std::vector<double> rewards = {1, 0, 2, 5, 5, 8};
  for (const char* loss : {"grpo", "dapo", "bnpo", "gspo", "cispo"})
    EXPECT_EQ(advantages(loss, "auto", rewards, 3), advantages(loss, "group", rewards, 3)) << loss;
  for (const char* loss : {"dr_grpo", "rloo"})
    EXPECT_EQ(advantages(loss, "auto", rewards, 3), advantages(loss, "none", rewards, 3)) << loss;
}

// 0.1 + 0.1 + 0.1 is not three times 0.1.
TEST(Advantages, EqualRewardsBringExactlyNothing) {
  for (const char* scale : {"group", "batch", "none"})
    for (const char* loss : {"grpo", "rloo"}) {
      const std::vector<double> found = advantages(loss, scale, {0.1, 0.1, 0.1, 0.1, 0.7, 0.2}, 3);
      EXPECT_EQ(std::vector<double>(found.begin(), found.begin() + 3), std::vector<double>(3, 0))
          << loss << " " << scale;
      EXPECT_NE(found[3], 0);
    }
}

nlohmann::json golden() {
  std::ifstream file(testing::source_folder() / "tests/golden/policy/policy_losses.json");
  return nlohmann::json::parse(file);
}

PolicyTokens golden_tokens(const nlohmann::json& file) {
  PolicyTokens tokens;
  tokens.log_probability_T =
      fp64_T(file["trained"].get<std::vector<double>>()).requires_grad_(true);
  tokens.drawn_T = fp64_T(file["drawn"].get<std::vector<double>>());
  tokens.reference_T = fp64_T(file["reference"].get<std::vector<double>>());
  tokens.starts = {0};
  for (const int64_t length : file["lengths"])
    tokens.starts.push_back(tokens.starts.back() + length);
  return tokens;
}

settings::PolicySettings golden_settings(const nlohmann::json& wanted) {
  settings::PolicySettings settings = policy(wanted["loss"], wanted["kl_beta"]);
  settings.clip_low = wanted["clip_low"];
  settings.clip_high = wanted["clip_high"];
  settings.scale_rewards = wanted.value("scale_rewards", "auto");
  return settings;
}

TEST(PolicyLoss, IsThatOfTrlsTrainers) {
  const nlohmann::json file = golden();
  ASSERT_EQ(file["cases"].size(), 18u);
  for (const nlohmann::json& wanted : file["cases"]) {
    SCOPED_TRACE(wanted["settings"].dump());
    const settings::PolicySettings settings = golden_settings(wanted["settings"]);
    PolicyTokens tokens = golden_tokens(file);
    std::vector<double> rewards = file["rewards"];
    if (settings::policy_loss_named(settings.loss).lowers_rewards)
      rewards = lower_rewards(settings, rewards, tokens.drawn_T, tokens.reference_T, tokens.starts);
    tokens.advantage_R = advantages_of(settings, rewards, file["group"]);
    expect_near(tokens.advantage_R, wanted["advantages"], 1e-12);
    const double divisor =
        policy_divisor(settings, std::ssize(rewards), tokens.starts.back(), file["longest_tokens"]);
    const at::Tensor loss = policy_losses(settings, tokens).sum / divisor;
    EXPECT_NEAR(loss.item<double>(), wanted["loss"], 1e-12);
    loss.backward();
    expect_near(list_of(tokens.log_probability_T.grad()), wanted["gradient"], 1e-12);
  }
}

// Texts that another program drew: the ratio counts from the model before its first step on them,
// here 0.1 above that of the drawing model for each token, and each token counts as often more as
// that model likes it more.
TEST(PolicyImportance, WeighsTokensAndIsCapped) {
  const double shift = 0.1;
  for (const double cap : {3.0, 1.05, 0.0}) {
    SCOPED_TRACE(cap);
    const double factor = cap == 0 ? 1 : std::min(std::exp(shift), cap);
    const auto sum_of = [&](const std::string& loss) {
      settings::PolicySettings settings = policy(loss);
      settings.importance_cap = cap;
      PolicyTokens tokens = tokens_of(kRollouts);
      tokens.started_T = tokens.drawn_T + shift;
      return policy_losses(settings, tokens).sum.item<double>();
    };
    EXPECT_NEAR(sum_of("dapo"), token_sum([&](const Rollout& rollout, size_t token) {
                  return factor * ppo(ratio(rollout, token) / std::exp(shift), rollout.advantage);
                }),
                1e-12);
    double gspo = 0;
    for (const Rollout& rollout : kRollouts) {
      const double mean = log_ratio(rollout) / static_cast<double>(rollout.trained.size());
      gspo += factor * ppo(std::exp(mean - shift), rollout.advantage);
    }
    EXPECT_NEAR(sum_of("gspo"), gspo, 1e-12);
  }
}

TEST(PolicyImportance, OfTheDrawingModelItselfIsExactlyOne) {
  for (const char* const loss : {"grpo", "dapo", "gspo", "rloo", "cispo"}) {
    PolicyTokens own = tokens_of(kRollouts);
    own.started_T = own.drawn_T;
    const PolicyLosses found = policy_losses(policy(loss), own);
    EXPECT_TRUE(at::equal(found.importance_T, at::ones_like(own.drawn_T)));
    EXPECT_TRUE(at::equal(found.sum, policy_losses(policy(loss), tokens_of(kRollouts)).sum))
        << loss;
  }
}

}  // namespace
}  // namespace convoy::objectives
