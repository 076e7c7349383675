// SPDX-License-Identifier: Apache-2.0
//
// Rows of which only some ids may be picked: everything is as if the other logits were -inf.
#include "convoy/model/kernels/sampler/allowed_logits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "convoy/model/kernels/sampler/sampler.h"

namespace convoy::kernels {
namespace {

constexpr float kInfiniteLogit = std::numeric_limits<float>::infinity();
constexpr int64_t kAllLogits = 100;
constexpr int64_t kPickableIds = 90;  // the last logits are padded rows of a head

// Every third id, in three words.
std::vector<uint32_t> third_ids() {
  std::vector<uint32_t> words(3);
  for (int64_t id = 0; id < kPickableIds; id += 3)
    words[static_cast<size_t>(id / 32)] |= 1U << (id % 32);
  return words;
}

bool is_allowed(std::span<const uint32_t> allowed, int64_t id) {
  const auto word = static_cast<size_t>(id / 32);
  return word < allowed.size() && (allowed[word] >> (id % 32) & 1U) != 0;
}

at::Tensor random_logits(int64_t rows, at::ScalarType type) {
  at::Generator generator = at::detail::createCPUGenerator(7);
  return at::randn({rows, kAllLogits}, generator).mul_(4).to(type);
}

at::Tensor with_infinities(const at::Tensor& logits_RV, const std::vector<uint32_t>& allowed) {
  at::Tensor changed = logits_RV.clone();
  for (int64_t id = 0; id < kAllLogits; ++id)
    if (!is_allowed(allowed, id)) changed.select(1, id).fill_(-kInfiniteLogit);
  return changed;
}

std::vector<SamplingRow> rows_of_many_rules(int64_t count, std::span<const uint32_t> allowed) {
  static const std::vector<int32_t> kSeen{0, 1, 3, 3, 6};
  static const std::vector<LogitBias> kBiases{{.id = 1, .bias = 100.f}, {.id = 9, .bias = 2.f}};
  const std::vector<SamplingRule> rules{{.temperature = 0},
                                        {},
                                        {.temperature = 0.6, .top_k = 5},
                                        {.top_p = 0.8},
                                        {.min_p = 0.1},
                                        {.repetition_penalty = 1.3, .presence_penalty = 0.5}};
  std::vector<SamplingRow> rows;
  for (int64_t row = 0; row < count; ++row)
    rows.push_back({.rule = rules[static_cast<size_t>(row) % rules.size()],
                    .uniform = static_cast<double>(row) / static_cast<double>(count),
                    .seen_ids = kSeen,
                    .biases = row % 2 == 0 ? std::span<const LogitBias>(kBiases)
                                           : std::span<const LogitBias>(),
                    .allowed = allowed,
                    .wants_logprob = row % 4 > 0,
                    .num_likeliest = row % 4 > 1 ? 40 : 0});
  return rows;
}

TEST(AllowedLogits, TokensAndLogprobsAreThoseOfInfiniteLogits) {
  const std::vector<uint32_t> allowed = third_ids();
  constexpr int64_t kRows = 240;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor logits = random_logits(kRows, type);
    const auto found = sample_tokens(logits, kPickableIds, rows_of_many_rules(kRows, allowed));
    const auto wanted = sample_tokens(with_infinities(logits, allowed), kPickableIds,
                                      rows_of_many_rules(kRows, {}));
    for (size_t row = 0; row < found.size(); ++row) {
      EXPECT_EQ(found[row].id, wanted[row].id) << row;
      EXPECT_EQ(found[row].id % 3, 0) << row;
      EXPECT_EQ(found[row].logprob, wanted[row].logprob) << row;
      ASSERT_EQ(found[row].likeliest.size(), wanted[row].likeliest.size()) << row;
      for (size_t place = 0; place < found[row].likeliest.size(); ++place) {
        EXPECT_EQ(found[row].likeliest[place].id, wanted[row].likeliest[place].id);
        EXPECT_EQ(found[row].likeliest[place].logprob, wanted[row].likeliest[place].logprob);
      }
    }
  }
}

TEST(AllowedLogits, SharesAreTheSoftmaxOverTheAllowedIds) {
  const std::vector<uint32_t> allowed = third_ids();
  const at::Tensor logits = random_logits(1, at::kFloat);
  const at::Tensor shares = with_infinities(logits, allowed).to(at::kDouble).softmax(1)[0];
  constexpr int64_t kDraws = 100'000;
  std::vector<SamplingRow> rows;
  for (int64_t draw = 0; draw < kDraws; ++draw)
    rows.push_back({.rule = {},
                    .uniform = (static_cast<double>(draw) + 0.5) / kDraws,
                    .allowed = allowed,
                    .wants_logprob = true});
  std::map<int64_t, int64_t> counts;
  for (const SampledToken& token :
       sample_tokens(logits.expand({kDraws, kAllLogits}), kPickableIds, rows)) {
    ++counts[token.id];
    EXPECT_NEAR(token.logprob, std::log(shares[token.id].item<double>()), 1e-5);
  }
  // Numbers that cover [0, 1) evenly find each id as often as its share says, up to one.
  for (int64_t id = 0; id < kAllLogits; ++id)
    EXPECT_NEAR(static_cast<double>(counts[id]), shares[id].item<double>() * kDraws, 2.0) << id;
}

TEST(AllowedLogits, AnOrdinaryRowBesideItIsNotChanged) {
  const std::vector<uint32_t> allowed = third_ids();
  const at::Tensor logits = random_logits(6, at::kBFloat16);
  std::vector<SamplingRow> rows = rows_of_many_rules(6, {});
  const auto alone = sample_tokens(logits, kPickableIds, rows);
  rows[2].allowed = allowed;
  const auto beside = sample_tokens(logits, kPickableIds, rows);
  for (size_t row = 0; row < rows.size(); ++row) {
    if (row == 2) continue;
    EXPECT_EQ(beside[row].id, alone[row].id);
    EXPECT_EQ(beside[row].logprob, alone[row].logprob);
  }
}

TEST(AllowedLogits, NothingAllowedGivesNoToken) {
  const std::vector<uint32_t> none(3);
  for (const double temperature : {0.0, 1.0})
    EXPECT_EQ(sample_tokens(
                  random_logits(1, at::kFloat), kPickableIds,
                  std::vector<SamplingRow>{{.rule = {.temperature = temperature}, .allowed = none}})
                  .front()
                  .id,
              kNoToken);
}

// GPUs make this tensor before their op.
TEST(AllowedLogits, TheTensorOfOtherDevicesIsTheSame) {
  const std::vector<uint32_t> allowed = third_ids();
  const std::vector<uint32_t> shorter{allowed[0]};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor logits = random_logits(3, type);
    const std::vector<SamplingRow> rows{
        {.rule = {}, .allowed = allowed}, {}, {.rule = {}, .allowed = shorter}};
    device::Upload upload(at::kCPU);
    SamplingTables tables;
    add_allowed_tables(rows, upload, tables);
    upload.send();
    const at::Tensor found = allowed_logits(logits, tables);
    EXPECT_TRUE(found[0].equal(with_infinities(logits.slice(0, 0, 1), allowed)[0]));
    EXPECT_TRUE(found[1].equal(logits[1]));
    EXPECT_TRUE(found[2].equal(with_infinities(logits.slice(0, 2, 3), shorter)[0]));
  }
  device::Upload upload(at::kCPU);
  SamplingTables tables;
  add_allowed_tables(std::vector<SamplingRow>(2), upload, tables);
  const at::Tensor logits = random_logits(2, at::kFloat);
  EXPECT_TRUE(allowed_logits(logits, tables).is_same(logits));
}

}  // namespace
}  // namespace convoy::kernels
