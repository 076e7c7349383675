// SPDX-License-Identifier: Apache-2.0
//
// Tests what a row requests beside its rule: seen ids, biases and log-probabilities.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"
#include "convoy/model/kernels/sampler/sampler.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

std::vector<int64_t> ids_of(const at::Tensor& logits_RV, const std::vector<SamplingRow>& rows) {
  std::vector<int64_t> ids;
  for (const SampledToken& token : sample_tokens(logits_RV, logits_RV.size(1), rows))
    ids.push_back(token.id);
  return ids;
}

TEST(Sampler, AnIdThatOnlyTheDeviceHasIsPenalisedToo) {
  const at::Tensor logits = at::tensor({4.f, 3.f, 2.f, 1.f}).repeat({3, 1});
  const std::vector<int32_t> seen{1};
  const SamplingRule rule{.temperature = 0, .repetition_penalty = 8};
  const std::vector<SamplingRow> rows{{.rule = rule, .seen_ids = seen, .unread_id = 2},
                                      {.rule = rule, .unread_id = 0},
                                      {.rule = {.temperature = 0}, .unread_id = 1}};
  const at::Tensor unread_ids = at::tensor({2, 0, 0}, at::kLong);
  device::Upload upload(at::kCPU);
  const SamplingTables tables = make_sampling_tables(rows, 4, upload);
  upload.send();
  const PickedTokens picked = pick_tokens(logits, 4, rows, tables, unread_ids);
  const auto tokens = read_tokens(picked.sampled_RS);
  EXPECT_EQ(tokens[0].id, 2) << "0 and 1 are seen: 4 / 8, 3 / 8";
  EXPECT_EQ(tokens[1].id, 0) << "2 is seen";
  EXPECT_EQ(tokens[2].id, 0) << "without a penalty";
}

// The answer contains id 2 twice; id 1 is only in the prompt.
TEST(Sampler, WhatIsAddedToLogitsHasAClosedForm) {
  const at::Tensor logits = at::tensor({4.f, 3.5f, 3.f, 2.f, -kInfinite});
  const std::vector<int32_t> seen{1, 2, 2, 0};
  const std::vector<LogitBias> biases{{.id = 2, .bias = 1.75f}, {.id = 4, .bias = 100.f}};
  const auto likeliest = [&](const SamplingRule& rule, std::span<const LogitBias> biased) {
    return ids_of(logits.unsqueeze(0),
                  {{.rule = rule, .seen_ids = seen, .answer_begin = 1, .biases = biased}});
  };
  using Ids = std::vector<int64_t>;
  EXPECT_EQ(likeliest({.temperature = 0, .presence_penalty = 0.25}, {}), Ids{0}) << "3.75";
  EXPECT_EQ(likeliest({.temperature = 0, .frequency_penalty = 0.75}, {}), Ids{1}) << "3.25, 3.5";
  EXPECT_EQ(likeliest({.temperature = 0, .frequency_penalty = -1.5}, {}), Ids{2}) << "5.5, 6";
  EXPECT_EQ(likeliest({.temperature = 0, .frequency_penalty = -0.5, .presence_penalty = 2}, {}),
            Ids{1})
      << "2.5, 3.5, 2";
  EXPECT_EQ(likeliest({.temperature = 0}, biases), Ids{2}) << "4.75; an infinite one stays";
  EXPECT_EQ(likeliest({.temperature = 0, .presence_penalty = 1.5}, biases), Ids{1})
      << "2.5, 3.5, 3.25";
  EXPECT_EQ(likeliest({.temperature = 0, .repetition_penalty = 8}, biases), Ids{2})
      << "0.5, 0.4, 2.1";
}

TEST(Sampler, AnIdThatOnlyTheDeviceHasIsCountedToo) {
  const at::Tensor logits = at::tensor({4.f, 3.f, 2.f, 1.f}).repeat({4, 1});
  const std::vector<int32_t> seen{0, 0};
  const std::vector<LogitBias> biases{{.id = 0, .bias = 0.5f}};
  const SamplingRule frequent{.temperature = 0, .frequency_penalty = 0.75};
  const SamplingRule present{.temperature = 0, .presence_penalty = 1.25};
  const std::vector<SamplingRow> rows{
      {.rule = frequent, .seen_ids = seen, .answer_begin = 1, .unread_id = 0},
      {.rule = present, .seen_ids = seen, .answer_begin = 2, .biases = biases, .unread_id = 0},
      {.rule = present, .seen_ids = seen, .answer_begin = 1, .biases = biases, .unread_id = 0},
      {.rule = present, .unread_id = 1}};
  const at::Tensor unread_ids = at::tensor({0, 1}, at::kLong);
  device::Upload upload(at::kCPU);
  const SamplingTables tables = make_sampling_tables(rows, 4, upload);
  upload.send();
  const auto tokens = read_tokens(pick_tokens(logits, 4, rows, tables, unread_ids).sampled_RS);
  EXPECT_EQ(tokens[0].id, 1) << "4 less 0.75 twice";
  EXPECT_EQ(tokens[1].id, 0) << "4.5 less 1.25: its only one is unread, and has a bias";
  EXPECT_EQ(tokens[2].id, 0) << "4.5 less 1.25 once";
  EXPECT_EQ(tokens[3].id, 0) << "1 is the unread one";
}

TEST(Sampler, ARowThatAsksForLikeliestIdsChangesNoOther) {
  at::Generator generator = at::detail::createCPUGenerator(9);
  const at::Tensor logits = at::randn({8, 3000}, generator).mul_(3);
  std::vector<SamplingRow> rows;
  for (int64_t row = 0; row < 8; ++row)
    rows.push_back({.rule = {.top_p = row % 2 == 0 ? 0.9 : 1.0},
                    .uniform = 0.125 * static_cast<double>(row),
                    .wants_logprob = true});
  const std::vector<SampledToken> alone = sample_tokens(logits, 3000, rows);
  rows[3].num_likeliest = 5;
  rows[6].num_likeliest = 2;
  const std::vector<SampledToken> beside = sample_tokens(logits, 3000, rows);
  for (size_t row = 0; row < rows.size(); ++row) {
    EXPECT_EQ(beside[row].id, alone[row].id) << row;
    EXPECT_EQ(beside[row].logprob, alone[row].logprob) << row;
    EXPECT_EQ(std::ssize(beside[row].likeliest), rows[row].num_likeliest) << row;
  }
}

TEST(Sampler, TheNextPassGetsAnIdWhereNoneWasPicked) {
  const at::Tensor logits = at::tensor({1.f, 5.f, 1.f, 5.f, NAN, 1.f}).view({2, 3});
  const std::vector<SamplingRow> rows(2, {.rule = {.temperature = 0}});
  device::Upload upload(at::kCPU);
  const SamplingTables tables = make_sampling_tables(rows, 3, upload);
  upload.send();
  const PickedTokens picked = pick_tokens(logits, 3, rows, tables);
  EXPECT_TRUE(at::equal(picked.next_ids_R, at::tensor({1, 0}, at::kLong)));
  const auto tokens = read_tokens(picked.sampled_RS);
  EXPECT_EQ(tokens[0].id, 1);
  EXPECT_EQ(tokens[1].id, kNoToken);
}

TEST(Sampler, LogprobsAreThoseOfTheLogitsAsTheyCame) {
  at::Generator generator = at::detail::createCPUGenerator(3);
  const std::vector<int32_t> seen{5, 7};
  for (const int64_t width : {9, 5000}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      at::Tensor logits = at::randn({3, width}, generator).mul_(2).to(dtype);
      logits.select(1, 1).fill_(-kInfinite);
      const at::Tensor wanted = logits.to(at::kDouble).log_softmax(1);
      const std::vector<SamplingRow> rows{
          {.rule = {.temperature = 0}, .wants_logprob = true, .num_likeliest = 4},
          {.rule = {.temperature = 0.6, .top_p = 0.9, .repetition_penalty = 3},
           .uniform = 0.5,
           .seen_ids = seen,
           .wants_logprob = true,
           .num_likeliest = width == 9 ? 9 : 300},
          {.rule = {.temperature = 0}}};
      const std::vector<SampledToken> found = sample_tokens(logits, width, rows);
      for (int64_t row = 0; row < 2; ++row) {
        EXPECT_NEAR(found[row].logprob, wanted[row][found[row].id].item<double>(), 1e-5);
        const at::Tensor order = wanted[row].argsort(/*stable=*/true, 0, /*descending=*/true);
        const bool all_have_likelihood = rows[row].num_likeliest < width;
        ASSERT_EQ(static_cast<int64_t>(found[row].likeliest.size()),
                  all_have_likelihood ? rows[row].num_likeliest : width - 1);
        for (size_t at = 0; at < found[row].likeliest.size(); ++at) {
          const TokenLogprob& likely = found[row].likeliest[at];
          EXPECT_EQ(likely.id, order[static_cast<int64_t>(at)].item<int64_t>());
          EXPECT_NEAR(likely.logprob, wanted[row][likely.id].item<double>(), 1e-5);
        }
      }
      EXPECT_TRUE(found[2].likeliest.empty());
    }
  }
}

// As in the loss and in transformers, the padded rows of a head count in the normalisation.
TEST(Sampler, LogprobsAreNormalisedOverLogitsThatAreNeverPicked) {
  at::Generator generator = at::detail::createCPUGenerator(4);
  const std::vector<int32_t> seen{5, 7};
  for (const int64_t padded : {1, 4, 70}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const int64_t num_ids = 300;
      at::Tensor logits = at::randn({2, num_ids + padded}, generator).mul_(2).to(dtype);
      logits.select(1, num_ids).fill_(9);  // the highest logit, but a padded row
      const at::Tensor wanted = logits.to(at::kDouble).log_softmax(1);
      const std::vector<SampledToken> found =
          sample_tokens(logits, num_ids,
                        std::vector<SamplingRow>{
                            {.rule = {.temperature = 0}, .wants_logprob = true, .num_likeliest = 6},
                            {.rule = {.temperature = 0.6, .repetition_penalty = 3},
                             .uniform = 0.5,
                             .seen_ids = seen,
                             .wants_logprob = true}});
      for (int64_t row = 0; row < 2; ++row) {
        ASSERT_LT(found[row].id, num_ids);
        EXPECT_NEAR(found[row].logprob, wanted[row][found[row].id].item<double>(), 1e-5);
      }
      ASSERT_EQ(found[0].likeliest.size(), 6u);
      for (const TokenLogprob& likely : found[0].likeliest) {
        EXPECT_LT(likely.id, num_ids);
        EXPECT_NEAR(likely.logprob, wanted[0][likely.id].item<double>(), 1e-5);
      }
    }
  }
}

// The head's weight is the identity, so its logits are the hidden states.
TEST(Sampler, LogprobsHaveTheBitsOfTheLoss) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
  at::Generator generator = at::detail::createCPUGenerator(5);
  for (const int64_t width : {9, 64, 1003}) {
    const int64_t num_rows = 21;
    const at::Tensor logits = at::randn({num_rows, width}, generator).mul_(7);
    std::vector<SamplingRow> rows;
    for (int64_t row = 0; row < num_rows; ++row)
      rows.push_back({.rule = {},
                      .uniform = static_cast<double>(row) / static_cast<double>(num_rows),
                      .wants_logprob = true,
                      .num_likeliest = row % 2});
    const std::vector<SampledToken> found = sample_tokens(logits, width - 2, rows);
    std::vector<int64_t> labels;
    for (const SampledToken& token : found) labels.push_back(token.id);
    const TokenLosses losses = linear_token_losses(logits, at::eye(width), LabelledTokens(labels));
    for (int64_t row = 0; row < num_rows; ++row)
      EXPECT_EQ(found[row].logprob, -losses.nll_T[row].item<float>()) << width << " " << row;
  }
}

}  // namespace
}  // namespace convoy::kernels
