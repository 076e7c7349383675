// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/sampler/sampler.h"

#include <gtest/gtest.h>

#include <random>

#include "convoy/kernels/sampler/sampler_reference.h"
#include "convoy/kernels/simd/cpu_isa.h"
#include "kernel_checks/op_check.h"

namespace convoy::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<int64_t> sample(const at::Tensor& logits_RV, const SamplingRule& rule,
                            const std::vector<double>& uniform, int64_t num_ids = 0) {
  const at::Tensor ids_R = sample_tokens(logits_RV, num_ids > 0 ? num_ids : logits_RV.size(1), rule,
                                         at::tensor(uniform, at::kDouble));
  return {ids_R.const_data_ptr<int64_t>(), ids_R.const_data_ptr<int64_t>() + ids_R.size(0)};
}

// How far a number may lie from the share of the id that it found: sums of up to 1e5 fp32 weights.
constexpr double kShareTolerance = 2e-5;

// The distance of `uniform` from the share of `id`; 1 where the id may not be picked at all.
double distance_from_share(const std::vector<reference::Share>& shares, int64_t id,
                           double uniform) {
  double begin = 0;
  for (const reference::Share& share : shares) {
    if (share.id == id) return std::max({0.0, begin - uniform, uniform - share.end});
    begin = share.end;
  }
  return 1.0;
}

struct RandomRows {
  at::Tensor logits_RV;
  int64_t num_ids;
  SamplingRule rule;
  std::vector<double> uniform;
};

// Flat, ordinary and peaked rows; some with logits of -inf, many equal ones in bf16.
RandomRows random_rows(std::mt19937_64& random) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  const auto real = [&] { return std::uniform_real_distribution<double>()(random); };
  RandomRows made;
  const int64_t rows = below(8) == 0 ? 1 + below(5) : 1;
  const int64_t width = 1 + below(below(20) == 0 ? 40000 : 300);
  made.num_ids = below(2) == 0 ? width : 1 + below(width);
  const double spread = std::pow(10.0, -3.0 + 5.0 * real());
  at::Generator generator = at::detail::createCPUGenerator(random());
  at::Tensor logits =
      at::randn({rows, width}, generator, at::TensorOptions().dtype(at::kDouble)) * spread;
  if (below(4) == 0) logits.select(1, below(width)).add_(30.0);
  if (below(4) == 0) logits.slice(1, 0, below(width)).fill_(-kInfinity);
  logits.select(1, below(made.num_ids)).fill_(spread);  // never all -inf
  made.logits_RV = logits.to(below(2) == 0 ? at::kFloat : at::kBFloat16);
  constexpr double kTemperatures[] = {0.0, 0.1, 0.7, 1.0, 3.0};
  constexpr double kShares[] = {1.0, 0.95, 0.5, 0.01, 0.9999999};
  made.rule = {.temperature = kTemperatures[below(5)],
               .top_k = below(2) == 0 ? 0 : 1 + below(2 * width),
               .top_p = kShares[below(5)]};
  for (int64_t row = 0; row < rows; ++row) made.uniform.push_back(below(9) == 0 ? 0.0 : real());
  return made;
}

TEST(Sampler, EqualsAFullSortInDouble) {
  std::mt19937_64 random(1);
  int64_t picked = 0;
  int64_t exact = 0;
  for (int round = 0; round < 2500; ++round) {
    const RandomRows made = random_rows(random);
    const auto found = sample(made.logits_RV, made.rule, made.uniform, made.num_ids);
    const at::Tensor wide = made.logits_RV.to(at::kDouble).contiguous();
    for (size_t row = 0; row < found.size(); ++row) {
      const double* begin = wide[static_cast<int64_t>(row)].const_data_ptr<double>();
      // Whether the id on the edge of a nucleus belongs to it may hang on the last bit.
      double distance = 1.0;
      bool equal = false;
      for (const double nudge : {0.0, -1e-6, 1e-6}) {
        if (equal) break;
        SamplingRule rule = made.rule;
        if (rule.top_p < 1.0) rule.top_p = std::min(rule.top_p * (1.0 + nudge), 1.0 - 1e-12);
        const auto shares =
            reference::shares_of_row({begin, static_cast<size_t>(made.num_ids)}, rule);
        const double here = distance_from_share(shares, found[row], made.uniform[row]);
        distance = std::min(distance, here);
        equal = equal || here == 0.0;
      }
      ASSERT_LE(distance, kShareTolerance)
          << "round " << round << " row " << row << ": id " << found[row] << " of " << made.num_ids
          << ", temperature " << made.rule.temperature << " top_k " << made.rule.top_k << " top_p "
          << made.rule.top_p;
      ++picked;
      exact += equal ? 1 : 0;
    }
  }
  EXPECT_GT(static_cast<double>(exact), 0.99 * static_cast<double>(picked));
}

TEST(Sampler, TheCheckAgainstTheReferenceFindsAWrongId) {
  const auto shares = reference::shares_of_row(std::vector<double>{1, 3, 2}, {.top_p = 0.7});
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(distance_from_share(shares, 1, 0.5), 0.0);
  EXPECT_GT(distance_from_share(shares, 2, 0.5), 0.1);
  EXPECT_EQ(distance_from_share(shares, 0, 0.99), 1.0);
}

TEST(Sampler, EqualLogitsPreferTheLowerId) {
  const at::Tensor logits = at::tensor({1.0f, 3.0f, 3.0f, 2.0f, 3.0f}).unsqueeze(0);
  EXPECT_EQ(sample(logits, {.temperature = 0}, {0.0}), std::vector<int64_t>{1});
  EXPECT_EQ(sample(logits, {.top_k = 2}, {0.6}), std::vector<int64_t>{2});
  EXPECT_EQ(sample(logits, {.top_k = 2}, {0.99999}), std::vector<int64_t>{2});
  EXPECT_EQ(sample(logits, {.top_p = 0.5}, {0.99999}), std::vector<int64_t>{2});
  const at::Tensor flat = at::zeros({1, 5000}, at::kBFloat16);
  EXPECT_EQ(sample(flat, {.top_k = 100}, {0.505}), std::vector<int64_t>{50});
  EXPECT_EQ(sample(flat, {.top_p = 0.5}, {0.9999}), std::vector<int64_t>{2499});
}

TEST(Sampler, ARowDoesNotDependOnItsNeighbours) {
  at::Generator generator = at::detail::createCPUGenerator(3);
  const at::Tensor logits = at::randn({17, 3001}, generator);
  std::vector<double> uniform;
  for (int row = 0; row < 17; ++row) uniform.push_back(row / 17.0);
  for (const SamplingRule& rule :
       {SamplingRule{}, SamplingRule{.top_p = 0.9}, SamplingRule{.top_k = 40}}) {
    const auto together = sample(logits, rule, uniform);
    for (int64_t row = 0; row < 17; ++row)
      EXPECT_EQ(sample(logits.slice(0, row, row + 1), rule, {uniform[row]}).front(), together[row]);
  }
}

TEST(Sampler, RowsThatAreNotFiniteGetNoToken) {
  const at::Tensor logits =
      at::tensor({1.0f, NAN, 2.0f, 1.0f, kInfinity, 2.0f, -kInfinity, -kInfinity, -kInfinity, NAN,
                  1.0f, 2.0f, -kInfinity, 1.0f, -kInfinity})
          .view({5, 3});
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const double temperature : {0.0, 1.0}) {
      for (const double top_p : {1.0, 0.9}) {
        const auto found = sample(logits.to(dtype), {.temperature = temperature, .top_p = top_p},
                                  {0.1, 0.1, 0.1, 0.1, 0.999});
        EXPECT_EQ(found, (std::vector<int64_t>{kNoToken, kNoToken, kNoToken, kNoToken, 1}));
      }
    }
  }
}

TEST(Sampler, ANaNBeyondThePickableIdsDoesNotCount) {
  const at::Tensor logits = at::tensor({1.0f, 2.0f, NAN}).unsqueeze(0);
  EXPECT_EQ(sample(logits, {.temperature = 0}, {0.0}, 2), std::vector<int64_t>{1});
}

TEST(Sampler, AnyTemperatureIsSafe) {
  const at::Tensor logits = at::tensor({-1e30f, 3.0f, 2.0f, -kInfinity}).unsqueeze(0);
  for (const double top_p : {1.0, 0.9}) {
    EXPECT_EQ(sample(logits, {.temperature = 1e-300, .top_p = top_p}, {0.9999}).front(), 1);
    EXPECT_LT(sample(logits, {.temperature = 1e300, .top_p = top_p}, {0.9999}).front(), 3);
  }
}

}  // namespace
}  // namespace convoy::kernels
