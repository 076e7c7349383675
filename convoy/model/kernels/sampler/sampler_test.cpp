// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sampler/sampler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "convoy/model/kernels/registry/op_table.h"
#include "convoy/model/kernels/simd/cpu_isa.h"
#include "kernel_checks/op_check.h"
#include "kernel_checks/reference_ops.h"

namespace convoy::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<int64_t> sampled_tokens(const at::Tensor& logits_RV,
                                    const std::vector<SamplingRow>& rows, int64_t num_ids = 0) {
  std::vector<int64_t> ids;
  for (const SampledToken& token :
       sample_tokens(logits_RV, num_ids > 0 ? num_ids : logits_RV.size(1), rows))
    ids.push_back(token.id);
  return ids;
}

// Samples all rows by the same rule.
std::vector<int64_t> sampled_tokens(const at::Tensor& logits_RV, const SamplingRule& rule,
                                    const std::vector<double>& uniform, int64_t num_ids = 0) {
  std::vector<SamplingRow> rows;
  for (const double number : uniform) rows.push_back({.rule = rule, .uniform = number});
  return sampled_tokens(logits_RV, rows, num_ids);
}

// How far a number may lie outside the share of the id that it found: shares are sums of up to 1e5
// fp32 weights.
constexpr double kShareTolerance = 2e-5;

// Returns the distance of `uniform` from the share of `id`, or 1 if the id must not be picked.
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
  std::vector<std::vector<int32_t>> seen;
  std::vector<SamplingRow> rows;
};

// Returns rows that are flat, ordinary or peaked. Some have logits of -inf, and some have many
// equal logits in bf16.
RandomRows random_rows(std::mt19937_64& random) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  const auto real = [&] { return std::uniform_real_distribution<double>()(random); };
  RandomRows made;
  const int64_t rows = below(8) == 0 ? 1 + below(5) : 1;
  const int64_t width = 1 + below(below(10) == 0 ? 40000 : 300);
  made.num_ids = below(2) == 0 ? width : 1 + below(width);
  const double spread = std::pow(10.0, -3.0 + 5.0 * real());
  at::Generator generator = at::detail::createCPUGenerator(random());
  at::Tensor logits =
      at::randn({rows, width}, generator, at::TensorOptions().dtype(at::kDouble)) * spread;
  if (below(4) == 0) logits.select(1, below(width)).add_(30.0);
  if (below(4) == 0) logits.slice(1, 0, below(width)).fill_(-kInfinity);
  logits.select(1, below(made.num_ids)).fill_(spread);  // one logit is finite
  made.logits_RV = logits.to(below(2) == 0 ? at::kFloat : at::kBFloat16);
  constexpr double kTemperatures[] = {0.0, 0.1, 0.7, 1.0, 3.0};
  constexpr double kShares[] = {1.0, 0.95, 0.5, 0.01, 0.9999999};
  constexpr double kLeast[] = {0.0, 0.0, 0.05, 1.0};
  constexpr double kPenalties[] = {1.0, 1.0, 1.25, 0.75};
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int32_t> seen(below(50));
    for (int32_t& id : seen) id = static_cast<int32_t>(below(made.num_ids));
    made.seen.push_back(std::move(seen));
  }
  for (int64_t row = 0; row < rows; ++row) {
    made.rows.push_back({.rule = {.temperature = kTemperatures[below(5)],
                                  .top_k = below(2) == 0 ? 0 : 1 + below(2 * width),
                                  .top_p = kShares[below(5)],
                                  .min_p = kLeast[below(4)],
                                  .repetition_penalty = kPenalties[below(4)]},
                         .uniform = below(9) == 0 ? 0.0 : real(),
                         .seen_ids = made.seen[row]});
  }
  return made;
}

// Rounding may decide whether an id at the edge of a nucleus belongs to it, so the smallest
// distance counts over slightly changed limits.
double smallest_distance(std::span<const double> logits, const SamplingRow& row, int64_t id) {
  double distance = 1.0;
  for (const double nudge : {0.0, -1e-6, 1e-6}) {
    SamplingRule rule = row.rule;
    if (rule.top_p < 1.0) rule.top_p = std::min(rule.top_p * (1.0 + nudge), 1.0 - 1e-12);
    if (rule.min_p < 1.0) rule.min_p *= 1.0 + nudge;
    const auto shares = reference::shares_of_row(logits, rule, row.seen_ids);
    distance = std::min(distance, distance_from_share(shares, id, row.uniform));
    if (distance == 0.0) break;
  }
  return distance;
}

TEST(Sampler, EqualsAFullSortInDouble) {
  std::mt19937_64 random(1);
  int64_t picked = 0;
  int64_t exact = 0;
  for (int round = 0; round < 2500; ++round) {
    const RandomRows made = random_rows(random);
    const auto found = sampled_tokens(made.logits_RV, made.rows, made.num_ids);
    const at::Tensor wide = made.logits_RV.to(at::kDouble).contiguous();
    for (size_t row = 0; row < found.size(); ++row) {
      const double* begin = wide[static_cast<int64_t>(row)].const_data_ptr<double>();
      const SamplingRow& given = made.rows[row];
      const double distance =
          smallest_distance({begin, static_cast<size_t>(made.num_ids)}, given, found[row]);
      ASSERT_LE(distance, kShareTolerance)
          << "round " << round << " row " << row << ": id " << found[row] << " of " << made.num_ids
          << ", temperature " << given.rule.temperature << " top_k " << given.rule.top_k
          << " top_p " << given.rule.top_p << " min_p " << given.rule.min_p << " penalty "
          << given.rule.repetition_penalty;
      ++picked;
      exact += distance == 0.0 ? 1 : 0;
    }
  }
  EXPECT_GT(static_cast<double>(exact), 0.99 * static_cast<double>(picked));
}

const nlohmann::json& golden() {
  static const nlohmann::json file = [] {
    const char* const source = std::getenv("CONVOY_SOURCE_DIR");
    std::ifstream in(std::string(source == nullptr ? "." : source) +
                     "/tests/golden/sampling/sampling.json");
    return nlohmann::json::parse(in);
  }();
  return file;
}

SamplingRule golden_rule(const nlohmann::json& entry) {
  const nlohmann::json& rule = entry["rule"];
  return {.temperature = rule["temperature"].get<double>(),
          .top_k = rule["top_k"].get<int64_t>(),
          .top_p = rule["top_p"].get<double>(),
          .min_p = rule["min_p"].get<double>(),
          .repetition_penalty = rule["repetition_penalty"].get<double>()};
}

// Returns rows with the same rule, whose numbers are spread evenly over [0, 1).
std::vector<SamplingRow> spread_rows(const SamplingRule& rule, int64_t count,
                                     std::span<const int32_t> seen) {
  std::vector<SamplingRow> rows;
  for (int64_t number = 0; number < count; ++number)
    rows.push_back({.rule = rule,
                    .uniform = (static_cast<double>(number) + 0.5) / static_cast<double>(count),
                    .seen_ids = seen});
  return rows;
}

// The numbers are spread evenly over [0, 1), so each id is found as often as its share predicts, up
// to one number at each end of its interval.
TEST(Sampler, SharesEqualThoseAfterTransformersProcessors) {
  constexpr int64_t kNumbers = 2000;
  for (const nlohmann::json& entry : golden()) {
    const auto seen = entry["seen"].get<std::vector<int32_t>>();
    const at::Tensor logits = at::tensor(entry["logits"].get<std::vector<float>>());
    const auto rows = spread_rows(golden_rule(entry), kNumbers, seen);
    std::vector<double> found(logits.size(0));
    for (const int64_t id : sampled_tokens(logits.expand({kNumbers, logits.size(0)}), rows))
      found[id] += 1.0 / kNumbers;
    for (size_t id = 0; id < found.size(); ++id)
      EXPECT_NEAR(found[id], entry["shares"].value(std::to_string(id), 0.0), 1.01 / kNumbers)
          << entry["rule"].dump() << " id " << id;
  }
}

// For tables that need long for each row: a few numbers must each find the id whose share contains
// them.
TEST(Sampler, FewNumbersFindTheSharesAfterTransformersProcessors) {
  constexpr int64_t kNumbers = 3;
  for (const nlohmann::json& entry : golden()) {
    std::map<int64_t, double> by_id;
    for (const auto& [id, share] : entry["shares"].items()) by_id[std::stoll(id)] = share;
    std::vector<reference::Share> shares;
    double end = 0;
    for (const auto& [id, share] : by_id) shares.push_back({.id = id, .end = end += share});
    const auto seen = entry["seen"].get<std::vector<int32_t>>();
    const at::Tensor logits = at::tensor(entry["logits"].get<std::vector<float>>());
    const auto rows = spread_rows(golden_rule(entry), kNumbers, seen);
    const auto found = sampled_tokens(logits.expand({kNumbers, logits.size(0)}), rows);
    for (size_t row = 0; row < rows.size(); ++row)
      EXPECT_LE(distance_from_share(shares, found[row], rows[row].uniform), kShareTolerance)
          << entry["rule"].dump() << " number " << rows[row].uniform << " id " << found[row];
  }
}

// Returns Pearson's statistic of the drawn ids against the exact shares. Ids with few expected
// draws form one cell.
double chi_square(const std::vector<int64_t>& drawn, const std::vector<double>& shares,
                  int64_t& cells) {
  constexpr double kLeast = 10;
  const auto draws = static_cast<double>(drawn.size());
  std::vector<double> counts(shares.size());
  for (const int64_t id : drawn) counts[id] += 1;
  double statistic = 0;
  double expected = 0;
  double observed = 0;
  cells = 0;
  for (size_t id = 0; id < shares.size(); ++id) {
    expected += shares[id] * draws;
    observed += counts[id];
    if (expected < kLeast && id + 1 < shares.size()) continue;
    if (expected > 0) statistic += (observed - expected) * (observed - expected) / expected;
    cells += expected > 0 ? 1 : 0;
    expected = observed = 0;
  }
  return statistic;
}

// The logits -i / 50 of 1000 ids give a geometric distribution, for which the cuts are known
// exactly.
TEST(Sampler, DrawsPassAChiSquareTest) {
  constexpr int64_t kIds = 1000;
  constexpr int64_t kDraws = 20000;
  const at::Tensor logits = at::arange(kIds, at::kFloat).div_(-50.0).expand({kDraws, kIds});
  struct Kind {
    SamplingRule rule;
    double decay;  // the ratio of the shares of neighbouring ids
    int64_t kept;
  };
  const double decay = std::exp(-1.0 / 50);
  const auto ids_of_share = [&](double share) {
    return static_cast<int64_t>(
        std::ceil(std::log1p(-share * (1 - std::pow(decay, kIds))) / std::log(decay)));
  };
  const std::vector<Kind> kinds{
      {{}, decay, kIds},
      {{.temperature = 2.0}, std::sqrt(decay), kIds},
      {{.top_k = 40}, decay, 40},
      {{.top_p = 0.8}, decay, ids_of_share(0.8)},
      {{.min_p = 0.1}, decay, static_cast<int64_t>(50 * std::log(10.0)) + 1},
  };
  std::mt19937_64 random(11);
  for (const Kind& kind : kinds) {
    std::vector<double> uniform;
    for (int64_t draw = 0; draw < kDraws; ++draw)
      uniform.push_back(std::uniform_real_distribution<double>()(random));
    std::vector<double> shares(kIds);
    for (int64_t id = 0; id < kind.kept; ++id)
      shares[id] =
          std::pow(kind.decay, id) * (1 - kind.decay) / (1 - std::pow(kind.decay, kind.kept));
    int64_t cells = 0;
    const double statistic = chi_square(sampled_tokens(logits, kind.rule, uniform), shares, cells);
    // The bound is five standard deviations above the mean of the chi-square distribution.
    const auto freedom = static_cast<double>(cells - 1);
    EXPECT_LT(statistic, freedom + 5 * std::sqrt(2 * freedom)) << cells << " cells";
    std::swap(shares[0], shares[kind.kept - 1]);
    EXPECT_GT(chi_square(sampled_tokens(logits, kind.rule, uniform), shares, cells),
              freedom + 5 * std::sqrt(2 * freedom));
  }
}

constexpr int32_t kSeenIds[] = {2, 7, 7};

// Returns every combination of temperature, top-k, top-p, min-p and penalty, and greedy rules with
// and without penalty.
std::vector<SamplingRule> every_combination() {
  std::vector<SamplingRule> rules;
  for (int parts = 0; parts < 32; ++parts)
    rules.push_back({.temperature = (parts & 1) != 0 ? 0.7 : 1.0,
                     .top_k = (parts & 2) != 0 ? 7 : 0,
                     .top_p = (parts & 4) != 0 ? 0.85 : 1.0,
                     .min_p = (parts & 8) != 0 ? 0.1 : 0.0,
                     .repetition_penalty = (parts & 16) != 0 ? 1.5 : 1.0});
  for (const double penalty : {1.0, 1.5})
    rules.push_back({.temperature = 0, .repetition_penalty = penalty});
  return rules;
}

std::string text_of(const SamplingRule& rule) {
  return fmt::format("temperature {} top_k {} top_p {} min_p {} penalty {}", rule.temperature,
                     rule.top_k, rule.top_p, rule.min_p, rule.repetition_penalty);
}

// Returns logits in which likely and unlikely ids alternate.
at::Tensor ordinary_logits(int64_t ids) {
  const at::Tensor order = at::arange(ids, at::kLong).mul_(5).remainder(ids);
  return order.to(at::kFloat).div_(-0.25f * static_cast<float>(ids)).add_(1.0f);
}

// Returns a bound that the statistic exceeds once in a million cases, by the cube root
// approximation of Wilson and Hilferty.
double chi_square_bound(int64_t freedom) {
  constexpr double kDeviations = 4.75;
  const double ninth = 2.0 / (9.0 * static_cast<double>(freedom));
  return static_cast<double>(freedom) * std::pow(1 - ninth + kDeviations * std::sqrt(ninth), 3);
}

// Draws several answers to one prompt: the rows have the same logits and differ only in their
// random numbers.
TEST(Sampler, FewDrawsOfEveryCombinationPassAChiSquareTest) {
  constexpr int64_t kIds = 12;
  constexpr int64_t kDraws = 40;
  const at::Tensor logits = ordinary_logits(kIds);
  const at::Tensor logprobs = logits.to(at::kDouble).log_softmax(0);
  const at::Tensor wide = logits.to(at::kDouble);
  std::mt19937_64 random(12);
  bool finds_greedy = false;
  for (const SamplingRule& rule : every_combination()) {
    SCOPED_TRACE(text_of(rule));
    std::vector<SamplingRow> rows;
    for (int64_t draw = 0; draw < kDraws; ++draw)
      rows.push_back({.rule = rule,
                      .uniform = std::uniform_real_distribution<double>()(random),
                      .seen_ids = kSeenIds,
                      .wants_logprob = true});
    std::vector<int64_t> drawn;
    for (const SampledToken& token : sample_tokens(logits.expand({kDraws, kIds}), kIds, rows)) {
      ASSERT_NE(token.id, kNoToken);
      EXPECT_NEAR(token.logprob, logprobs[token.id].item<double>(), 1e-5);
      drawn.push_back(token.id);
    }
    std::vector<double> shares(kIds);
    double begin = 0;
    for (const reference::Share& share :
         reference::shares_of_row({wide.const_data_ptr<double>(), kIds}, rule, kSeenIds)) {
      shares[share.id] = share.end - begin;
      begin = share.end;
    }
    for (const int64_t id : drawn) EXPECT_GT(shares[id], 0) << id << " may not be picked";
    int64_t cells = 0;
    const double statistic = chi_square(drawn, shares, cells);
    if (cells > 1) {
      EXPECT_LT(statistic, chi_square_bound(cells - 1)) << cells << " cells";
    }
    if (!finds_greedy) {
      // The test would detect a sampler that always picks the most likely id.
      const auto most = std::max_element(shares.begin(), shares.end()) - shares.begin();
      const double of_greedy = chi_square(std::vector<int64_t>(kDraws, most), shares, cells);
      finds_greedy = cells > 1 && of_greedy > chi_square_bound(cells - 1);
      EXPECT_TRUE(finds_greedy);
    }
  }
}

std::vector<SampledToken> tokens_of_aten(const at::Tensor& logits_RV, int64_t num_ids,
                                         const std::vector<SamplingRow>& rows) {
  const SamplerOps& ops = aten_op_table().sampler;
  device::Upload upload(at::kCPU);
  const SamplingTables tables = ops.make_tables(rows, num_ids, upload);
  upload.send();
  return read_tokens(ops.pick(logits_RV, num_ids, rows, tables, {}).sampled_RS);
}

// An id may differ only if the number lies at the edge between two ids, which each table rounds on
// its own.
TEST(Sampler, SameSeedDrawsTheIdsOfTheAtenTable) {
  constexpr int64_t kIds = 96;
  constexpr int64_t kDraws = 6;
  std::mt19937_64 random(13);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor logits = ordinary_logits(kIds).to(dtype);
    const at::Tensor wide = logits.to(at::kDouble);
    for (const SamplingRule& rule : every_combination()) {
      std::vector<SamplingRow> rows;
      for (int64_t draw = 0; draw < kDraws; ++draw)
        rows.push_back({.rule = rule,
                        .uniform = std::uniform_real_distribution<double>()(random),
                        .seen_ids = kSeenIds});
      const at::Tensor logits_RV = logits.expand({kDraws, kIds});
      const auto found = sampled_tokens(logits_RV, rows);
      const auto wanted = tokens_of_aten(logits_RV, kIds, rows);
      for (size_t row = 0; row < rows.size(); ++row) {
        if (found[row] == wanted[row].id) continue;
        EXPECT_LE(smallest_distance({wide.const_data_ptr<double>(), kIds}, rows[row], found[row]),
                  kShareTolerance)
            << text_of(rule) << ": " << found[row] << " instead of " << wanted[row].id;
      }
    }
  }
}

TEST(Sampler, RowsOfOneBatchHaveRulesOfTheirOwn) {
  const at::Tensor logits = at::tensor({0.0f, 1.0f, 2.0f, 3.0f}).expand({5, 4});
  const std::vector<int32_t> seen{3, 3, 3};
  const std::vector<SamplingRow> rows{
      {.rule = {.temperature = 0}},
      {.rule = {.temperature = 0, .repetition_penalty = 2}, .seen_ids = seen},
      {.rule = {.top_k = 1}, .uniform = 0.99},
      {.rule = {}, .uniform = 0.0},
      {.rule = {.min_p = 0.3}, .uniform = 0.0},
  };
  EXPECT_EQ(sampled_tokens(logits, rows), (std::vector<int64_t>{3, 2, 3, 0, 2}));
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
  EXPECT_EQ(sampled_tokens(logits, SamplingRule{.temperature = 0}, {0.0}), std::vector<int64_t>{1});
  EXPECT_EQ(sampled_tokens(logits, SamplingRule{.top_k = 2}, {0.6}), std::vector<int64_t>{2});
  EXPECT_EQ(sampled_tokens(logits, SamplingRule{.top_k = 2}, {0.99999}), std::vector<int64_t>{2});
  EXPECT_EQ(sampled_tokens(logits, SamplingRule{.top_p = 0.5}, {0.99999}), std::vector<int64_t>{2});
  const at::Tensor flat = at::zeros({1, 5000}, at::kBFloat16);
  EXPECT_EQ(sampled_tokens(flat, SamplingRule{.top_k = 100}, {0.505}), std::vector<int64_t>{50});
  EXPECT_EQ(sampled_tokens(flat, SamplingRule{.top_p = 0.5}, {0.9999}), std::vector<int64_t>{2499});
}

TEST(Sampler, ARowDoesNotDependOnItsNeighbours) {
  at::Generator generator = at::detail::createCPUGenerator(3);
  const at::Tensor logits = at::randn({17, 3001}, generator);
  std::vector<double> uniform;
  for (int row = 0; row < 17; ++row) uniform.push_back(row / 17.0);
  for (const SamplingRule& rule :
       {SamplingRule{}, SamplingRule{.top_p = 0.9}, SamplingRule{.top_k = 40}}) {
    const auto together = sampled_tokens(logits, rule, uniform);
    for (int64_t row = 0; row < 17; ++row)
      EXPECT_EQ(sampled_tokens(logits.slice(0, row, row + 1), rule, {uniform[row]}).front(),
                together[row]);
  }
}

TEST(Sampler, OneThatIsCutBesideItChangesNoRow) {
  at::Generator generator = at::detail::createCPUGenerator(4);
  const at::Tensor logits = at::randn({9, 3001}, generator);
  std::vector<SamplingRow> rows;
  for (int row = 0; row < 9; ++row)
    rows.push_back(
        {.rule = {.temperature = row % 3 == 0 ? 0.0 : 0.8, .min_p = row % 3 == 1 ? 0.01 : 0.0},
         .uniform = row / 9.0});
  const auto alone = sampled_tokens(logits.narrow(0, 0, 8), {rows.begin(), rows.end() - 1});
  rows.back().rule = {.top_p = 0.5};
  std::vector<int64_t> beside = sampled_tokens(logits, rows);
  beside.pop_back();
  EXPECT_EQ(beside, alone);
}

TEST(Sampler, RowsThatAreNotFiniteGetNoToken) {
  const at::Tensor logits =
      at::tensor({1.0f, NAN, 2.0f, 1.0f, kInfinity, 2.0f, -kInfinity, -kInfinity, -kInfinity, NAN,
                  1.0f, 2.0f, -kInfinity, 1.0f, -kInfinity})
          .view({5, 3});
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const double temperature : {0.0, 1.0}) {
      for (const double top_p : {1.0, 0.9}) {
        const auto found = sampled_tokens(logits.to(dtype),
                                          SamplingRule{.temperature = temperature, .top_p = top_p},
                                          {0.1, 0.1, 0.1, 0.1, 0.999});
        EXPECT_EQ(found, (std::vector<int64_t>{kNoToken, kNoToken, kNoToken, kNoToken, 1}));
      }
    }
  }
}

TEST(Sampler, ANaNBeyondThePickableIdsDoesNotCount) {
  const at::Tensor logits = at::tensor({1.0f, 2.0f, NAN}).unsqueeze(0);
  EXPECT_EQ(sampled_tokens(logits, SamplingRule{.temperature = 0}, {0.0}, 2),
            std::vector<int64_t>{1});
}

TEST(Sampler, AnyTemperatureIsSafe) {
  const at::Tensor logits = at::tensor({-1e30f, 3.0f, 2.0f, -kInfinity}).unsqueeze(0);
  for (const double top_p : {1.0, 0.9}) {
    EXPECT_EQ(sampled_tokens(logits, SamplingRule{.temperature = 1e-300, .top_p = top_p}, {0.9999})
                  .front(),
              1);
    EXPECT_LT(sampled_tokens(logits, SamplingRule{.temperature = 1e300, .top_p = top_p}, {0.9999})
                  .front(),
              3);
  }
}

}  // namespace
}  // namespace convoy::kernels
