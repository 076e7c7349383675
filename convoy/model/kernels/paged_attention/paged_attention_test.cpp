// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/paged_attention/paged_attention.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "convoy/core/base/error.h"
#include "kernel_checks/op_check.h"
#include "kernel_checks/reference_ops.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels {
namespace {

struct Heads {
  int64_t query = 4;
  int64_t kv = 2;
  int64_t features = 16;
};

// The queries, keys and values of all tokens of one row.
struct Row {
  at::Tensor q_THE;
  at::Tensor k_TKE;
  at::Tensor v_TKE;

  int64_t tokens() const { return q_THE.size(0); }
};

Row make_row(int64_t tokens, const Heads& heads, at::ScalarType dtype, uint64_t seed) {
  return {testing::sample({tokens, heads.query, heads.features}, dtype, seed),
          testing::sample({tokens, heads.kv, heads.features}, dtype, seed + 1),
          testing::sample({tokens, heads.kv, heads.features}, dtype, seed + 2)};
}

struct Layout {
  int64_t block_tokens = 32;
  CacheElement element = CacheElement::Model;
};

// Rows that share one cache. Its blocks are uninitialised at first and are assigned in random
// order.
class Rows {
 public:
  Rows(std::vector<Row> rows, const AttentionConfig& config, const Layout& layout = {},
       uint64_t seed = 1)
      : rows_(std::move(rows)), config_(config), blocks_(rows_.size()), done_(rows_.size()) {
    PagedShape shape{.num_blocks = 3,
                     .block_tokens = layout.block_tokens,
                     .num_kv_heads = rows_[0].k_TKE.size(1),
                     .head_dim = rows_[0].k_TKE.size(2)};
    for (const Row& row : rows_) shape.num_blocks += row.tokens() / layout.block_tokens + 1;
    cache_ = make_paged_cache(shape, rows_[0].q_THE.options(), layout.element);
    for (const at::Tensor& part :
         {cache_.keys, cache_.values, cache_.key_scales, cache_.value_scales}) {
      if (part.defined() && part.is_floating_point()) part.fill_(NAN);
    }
    free_.resize(shape.num_blocks);
    std::iota(free_.begin(), free_.end(), 0);
    std::mt19937_64 random(seed);
    std::shuffle(free_.begin(), free_.end(), random);
    for (const Row& row : rows_) found_.push_back(at::empty_like(row.q_THE));
  }

  // One step: each row takes its next tokens, at most `tokens[row]`.
  void step(const std::vector<int64_t>& tokens) {
    std::vector<PagedRow> paged;
    std::vector<at::Tensor> q, k, v;
    for (size_t row = 0; row < rows_.size(); ++row) {
      const int64_t begin = done_[row];
      const int64_t end = std::min(begin + tokens[row], rows_[row].tokens());
      done_[row] = end;
      forget_unseen(row, begin);
      while (static_cast<int64_t>(blocks_[row].size()) * cache_.shape.block_tokens < end) {
        blocks_[row].push_back(free_.back());
        free_.pop_back();
      }
      paged.push_back({.num_queries = end - begin, .num_keys = end, .blocks = blocks_[row]});
      q.push_back(rows_[row].q_THE.slice(0, begin, end));
      k.push_back(rows_[row].k_TKE.slice(0, begin, end));
      v.push_back(rows_[row].v_TKE.slice(0, begin, end));
    }
    const PagedRows step(paged, cache_.shape.block_tokens);
    store_paged(at::cat(k), at::cat(v), cache_, step);
    const at::Tensor out = paged_attention(at::cat(q), cache_, step, config_);
    for (size_t row = 0; row < rows_.size(); ++row) {
      const int64_t count = paged[row].num_queries;
      found_[row]
          .slice(0, done_[row] - count, done_[row])
          .copy_(out.narrow(0, step.queries().begin(static_cast<int64_t>(row)), count));
    }
  }

  // Computes all rows in steps of at most `chunk` tokens per row.
  const std::vector<at::Tensor>& run(int64_t chunk) {
    for (size_t row = 0; row < rows_.size();) {
      if (done_[row] == rows_[row].tokens())
        ++row;
      else
        step(std::vector<int64_t>(rows_.size(), chunk));
    }
    return found_;
  }

  const Row& row(size_t index) const { return rows_[index]; }
  const PagedCache& cache() const { return cache_; }

 private:
  void forget_unseen(size_t row, int64_t position) {
    if (config_.sliding_window == 0) return;
    const int64_t first = std::max<int64_t>(0, position - config_.sliding_window + 1);
    for (int64_t block = 0; block < first / cache_.shape.block_tokens; ++block) {
      if (blocks_[row][block] == kNoBlock) continue;
      free_.push_back(blocks_[row][block]);
      blocks_[row][block] = kNoBlock;
    }
  }

  std::vector<Row> rows_;
  AttentionConfig config_;
  PagedCache cache_;
  std::vector<std::vector<int32_t>> blocks_;
  std::vector<int64_t> done_;
  std::vector<int32_t> free_;
  std::vector<at::Tensor> found_;
};

// Returns the values that the cache stores, computed in another way.
at::Tensor as_stored(const at::Tensor& x_TKE, CacheElement element) {
  if (element == CacheElement::Model) return x_TKE.to(at::kDouble);
  const at::Tensor wide = x_TKE.to(at::kFloat);
  const at::Tensor scale = wide.abs().amax({-1}, true) / 127.0f;
  return (wide / scale).round().mul(scale).to(at::kDouble);
}

double error_of(const Rows& rows, size_t index, const at::Tensor& found, CacheElement element,
                const AttentionConfig& config) {
  const Row& row = rows.row(index);
  return testing::relative_error(
      found, reference::row_attention(row.q_THE.to(at::kDouble), as_stored(row.k_TKE, element),
                                      as_stored(row.v_TKE, element), config));
}

struct PagedCase {
  Heads heads;
  std::vector<int64_t> tokens;
  int64_t chunk;
  AttentionConfig config{.scale = 0.25, .sliding_window = 0};
  Layout layout;
};

const std::vector<PagedCase>& paged_cases() {
  static const std::vector<PagedCase> all{
      {.heads = {}, .tokens = {1}, .chunk = 1, .layout = {}},
      {.heads = {}, .tokens = {70, 5, 33}, .chunk = 1, .layout = {}},
      {.heads = {8, 8, 33}, .tokens = {40, 64, 31}, .chunk = 7, .layout = {64}},
      {.heads = {3, 1, 20}, .tokens = {129, 3}, .chunk = 48, .layout = {}},
      {.heads = {40, 1, 8}, .tokens = {65}, .chunk = 5, .layout = {}},
      {.heads = {8, 2, 64}, .tokens = {300, 64}, .chunk = 300, .config = {0.125, 0}, .layout = {}},
      {.heads = {14, 2, 64}, .tokens = {1, 277}, .chunk = 1, .config = {0.125, 0}, .layout = {}},
      {.heads = {9, 1, 128}, .tokens = {150, 40}, .chunk = 20, .config = {0.1, 37}, .layout = {96}},
      {.heads = {}, .tokens = {150, 20}, .chunk = 13, .config = {0.25, 7}, .layout = {}},
      {.heads = {}, .tokens = {200}, .chunk = 64, .config = {0.25, 70}, .layout = {96}},
      // These rows have several splits of their keys.
      {.heads = {2, 1, 16}, .tokens = {1200, 90}, .chunk = 500, .layout = {}},
      {.heads = {2, 1, 16}, .tokens = {1300}, .chunk = 400, .config = {0.25, 700}, .layout = {128}},
      // These cases have a soft cap on scores.
      {.heads = {}, .tokens = {70, 5, 33}, .chunk = 1, .config = {0.25, 0, 1.5}, .layout = {}},
      {.heads = {8, 2, 64},
       .tokens = {300, 64},
       .chunk = 130,
       .config = {0.125, 37, 0.8},
       .layout = {}},
      {.heads = {2, 1, 16}, .tokens = {1200}, .chunk = 500, .config = {0.25, 0, 1.0}, .layout = {}},
  };
  return all;
}

Rows make_rows(const PagedCase& of, at::ScalarType dtype, CacheElement element) {
  std::vector<Row> rows;
  for (size_t row = 0; row < of.tokens.size(); ++row)
    rows.push_back(make_row(of.tokens[row], of.heads, dtype, 10 * row + 1));
  return Rows(std::move(rows), of.config, {of.layout.block_tokens, element});
}

TEST(PagedAttention, EqualsReference) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto element : {CacheElement::Model, CacheElement::Int8}) {
      for (const PagedCase& of : paged_cases()) {
        Rows rows = make_rows(of, dtype, element);
        const std::vector<at::Tensor>& found = rows.run(of.chunk);
        for (size_t row = 0; row < found.size(); ++row)
          EXPECT_LT(error_of(rows, row, found[row], element, of.config),
                    testing::tolerance(dtype, 256))
              << dtype << " row of " << of.tokens[row] << " in chunks of " << of.chunk << " window "
              << of.config.sliding_window << " cap " << of.config.score_cap << " int8 "
              << (element == CacheElement::Int8);
      }
    }
  }
}

// Normalising and rotating queries and keys while they are stored gives the same values as doing so
// before.
TEST(PagedAttention, TransformsWhatItStores) {
  const PagedShape shape{.num_blocks = 2, .num_kv_heads = 2, .head_dim = 16};
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto element : {CacheElement::Model, CacheElement::Int8}) {
      const Row row = make_row(40, {}, dtype, 1);
      const at::Tensor angles = testing::sample({60, 8}, at::kFloat, 4);
      const HeadTransform transform{.query_norm_E = testing::sample({16}, dtype, 5),
                                    .key_norm_E = testing::sample({16}, dtype, 6),
                                    .norm_epsilon = 1e-6,
                                    .cos_PE = angles.cos(),
                                    .sin_PE = angles.sin(),
                                    .positions_T = at::arange(40, at::kLong) + 20};
      const auto transformed = [&](const at::Tensor& x, const at::Tensor& weight_E) {
        return reference::rope(reference::rms_norm(x.to(at::kDouble), weight_E.to(at::kDouble),
                                                   1e-6, NormOrder::CastThenScale),
                               transform.cos_PE, transform.sin_PE, transform.positions_T);
      };
      const PagedRows rows({{40, 40, {1, 0}}}, shape.block_tokens);
      const PagedCache cache = make_paged_cache(shape, dtype, element);
      const at::Tensor q =
          transform_and_store(row.q_THE, row.k_TKE, row.v_TKE, transform, cache, rows);
      const at::Tensor wanted_q = transformed(row.q_THE, transform.query_norm_E);
      EXPECT_LT(testing::relative_error(q, wanted_q), testing::tolerance(dtype, 16));
      const AttentionConfig config{.scale = 0.25};
      const at::Tensor wanted =
          reference::row_attention(wanted_q, transformed(row.k_TKE, transform.key_norm_E),
                                   row.v_TKE.to(at::kDouble), config);
      EXPECT_LT(testing::relative_error(paged_attention(q, cache, rows, config), wanted),
                element == CacheElement::Int8 ? 0.03 : testing::tolerance(dtype, 256));
    }
  }
}

TEST(PagedAttention, PlantedErrorsAreSeen) {
  const PagedCase of{.heads = {}, .tokens = {150}, .chunk = 50, .layout = {}};
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    Rows rows = make_rows(of, dtype, CacheElement::Model);
    const at::Tensor found = rows.run(50)[0];
    EXPECT_GT(error_of(rows, 0, found, CacheElement::Model, {0.25, 140}),
              testing::tolerance(dtype, 256));
    EXPECT_GT(error_of(rows, 0, found, CacheElement::Model, {0.28, 0}),
              testing::tolerance(dtype, 256));
    EXPECT_GT(error_of(rows, 0, found, CacheElement::Model, {0.25, 0, 3}),
              testing::tolerance(dtype, 256));
  }
}

// A query that sees only one key returns that key's value. Stored as int8, it is at most half a
// step away.
TEST(PagedAttention, Int8KeepsValuesWithinHalfAStep) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    Rows rows({make_row(40, {2, 2, 64}, dtype, 3)}, {.scale = 1.0, .sliding_window = 1},
              {.element = CacheElement::Int8});
    const at::Tensor found = rows.run(40)[0].to(at::kDouble);
    const at::Tensor value = rows.row(0).v_TKE.to(at::kDouble);
    const at::Tensor largest = value.abs().amax({-1}, true);
    const double rounding = dtype == at::kBFloat16 ? std::ldexp(1.0, -8) : std::ldexp(1.0, -22);
    EXPECT_TRUE((found - value).abs().le(largest * (0.5 / 127 + 2 * rounding)).all().item<bool>());
    EXPECT_FALSE(at::equal(found, value));
  }
}

TEST(PagedAttention, ZerosAndHugeNumbersSurviveInt8) {
  std::vector<Row> tokens;
  for (const float value : {0.0f, 3e38f, INFINITY}) {
    tokens.push_back(make_row(1, {1, 1, 8}, at::kFloat, 3));
    tokens.back().v_TKE.fill_(value);
  }
  Rows rows(tokens, {.scale = 1.0}, {.element = CacheElement::Int8});
  const std::vector<at::Tensor> found = rows.run(1);
  EXPECT_EQ(found[0].abs().max().item<float>(), 0.0f);
  EXPECT_NEAR(found[1].max().item<double>(), 3e38, 3e36);
  EXPECT_TRUE(found[2].isnan().all().item<bool>());
}

TEST(PagedAttention, BitsDependOnTheRowAlone) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
  const int threads_before = at::get_num_threads();
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto element : {CacheElement::Model, CacheElement::Int8}) {
      for (const auto& [window, cap] :
           std::vector<std::pair<int64_t, double>>{{0, 0.0}, {45, 0.0}, {600, 0.0}, {45, 1.5}}) {
        const AttentionConfig config{.scale = 0.25, .sliding_window = window, .score_cap = cap};
        const Heads heads{6, 2, 24};
        const Row row = make_row(1100, heads, dtype, 1);
        const at::Tensor alone = Rows({row}, config, {.element = element}).run(1)[0];
        for (const int64_t chunk : {1100, 512, 97}) {
          at::set_num_threads(chunk == 97 ? 4 : 2);
          std::vector<Row> crowd{make_row(5, heads, dtype, 7), row};
          for (int64_t other = 0; other < 9; ++other)
            crowd.push_back(make_row(1 + 20 * other, heads, dtype, 50 + other));
          Rows rows(crowd, config, {.element = element}, /*seed=*/chunk);
          const at::Tensor found = rows.run(chunk)[1];
          EXPECT_TRUE(at::equal(found, alone))
              << dtype << " window " << window << " chunk " << chunk << " int8 "
              << (element == CacheElement::Int8);
        }
        at::set_num_threads(threads_before);
      }
    }
  }
}

// A token has the same bits in training and in generation, with any rows beside it.
TEST(PagedAttention, HasTheBitsOfPackedAttention) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
  const Heads heads{6, 2, 24};
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    std::vector<Row> rows;
    std::vector<int64_t> starts{0};
    std::vector<at::Tensor> q, k, v;
    for (const int64_t tokens : {1, 3, 8, 9, 40, 512, 513, 1100}) {
      rows.push_back(make_row(tokens, heads, dtype, tokens));
      q.push_back(rows.back().q_THE);
      k.push_back(rows.back().k_TKE);
      v.push_back(rows.back().v_TKE);
      starts.push_back(starts.back() + tokens);
    }
    for (const auto& [window, cap] :
         std::vector<std::pair<int64_t, double>>{{0, 0.0}, {45, 0.0}, {600, 0.0}, {0, 1.5}}) {
      const AttentionConfig config{.scale = 0.25, .sliding_window = window, .score_cap = cap};
      const at::Tensor packed =
          packed_attention(at::cat(q), at::cat(k), at::cat(v), RowIndex(starts), config);
      for (const int64_t chunk : {1, 97}) {
        Rows paged(rows, config);
        const std::vector<at::Tensor>& found = paged.run(chunk);
        for (size_t row = 0; row < rows.size(); ++row)
          EXPECT_TRUE(at::equal(found[row], packed.slice(0, starts[row], starts[row + 1])))
              << dtype << " row of " << rows[row].tokens() << " window " << window << " cap " << cap
              << " chunk " << chunk;
      }
    }
  }
}

// A single row has many keys, so the threads share its splits.
TEST(PagedAttention, ThreadsDoNotChangeALongRow) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
  const int threads_before = at::get_num_threads();
  const Row row = make_row(5001, {4, 1, 64}, at::kBFloat16, 1);
  std::vector<at::Tensor> found;
  for (const int threads : {1, 4}) {
    at::set_num_threads(threads);
    Rows rows({row}, {.scale = 0.125});
    rows.step({5000});
    rows.step({1});
    found.push_back(rows.run(1)[0]);
  }
  at::set_num_threads(threads_before);
  EXPECT_TRUE(at::equal(found[0], found[1]));
}

TEST(PagedAttention, WhatAnEarlierOwnerLeftDoesNotCount) {
  for (const auto element : {CacheElement::Model, CacheElement::Int8}) {
    const PagedShape shape{.num_blocks = 1, .num_kv_heads = 2, .head_dim = 16};
    const PagedCache cache = make_paged_cache(shape, at::kBFloat16, element);
    const auto attend = [&](const Row& row) {
      const PagedRows rows({{row.tokens(), row.tokens(), {0}}}, shape.block_tokens);
      store_paged(row.k_TKE, row.v_TKE, cache, rows);
      return paged_attention(row.q_THE, cache, rows, {.scale = 0.25});
    };
    const Row row = make_row(5, {}, at::kBFloat16, 1);
    const at::Tensor before = attend(row);
    Row broken = make_row(32, {}, at::kBFloat16, 2);
    broken.k_TKE.fill_(NAN);
    broken.v_TKE.fill_(INFINITY);
    EXPECT_TRUE(attend(broken).isnan().any().item<bool>());
    EXPECT_TRUE(at::equal(attend(row), before));
  }
}

TEST(PagedAttention, RowsShareBlocks) {
  const PagedShape shape{.num_blocks = 4, .num_kv_heads = 2, .head_dim = 16};
  for (const auto element : {CacheElement::Model, CacheElement::Int8}) {
    const PagedCache cache = make_paged_cache(shape, at::kFloat, element);
    const Row row = make_row(40, {}, at::kFloat, 1);
    const PagedRows stored({{40, 40, {3, 1}}}, 32);
    store_paged(row.k_TKE, row.v_TKE, cache, stored);
    const at::Tensor q = row.q_THE.slice(0, 39);
    const PagedRows both({{1, 40, {3, 1}}, {1, 40, {3, 1}}}, 32);
    const at::Tensor found = paged_attention(at::cat({q, q}), cache, both, {.scale = 0.25});
    EXPECT_TRUE(at::equal(found[0], found[1]));
    const at::Tensor wanted = paged_attention(row.q_THE, cache, stored, {.scale = 0.25});
    EXPECT_LT(testing::relative_error(found[0], wanted[39]), 1e-5);
  }
}

TEST(PagedAttention, SaysWhatDoesNotFit) {
  const PagedShape shape{.num_blocks = 2, .num_kv_heads = 2, .head_dim = 16};
  const PagedCache cache = make_paged_cache(shape, at::kFloat);
  const Row row = make_row(40, {}, at::kFloat, 1);
  EXPECT_THROW(PagedRows({{40, 40, {0}}}, 32), StateError);
  EXPECT_THROW(PagedRows({{40, 40, {0, kNoBlock}}}, 32), StateError);
  EXPECT_THROW(PagedRows({{41, 40, {0, 1}}}, 32), StateError);
  EXPECT_NO_THROW(PagedRows({{8, 40, {kNoBlock, 1}}}, 32));
  const PagedRows one({{8, 40, {kNoBlock, 1}}}, 32);
  const at::Tensor q = row.q_THE.slice(0, 0, 8);
  EXPECT_THROW(paged_attention(q, cache, one, {.scale = 1.0}), StateError);
  EXPECT_NO_THROW(paged_attention(q, cache, one, {.scale = 1.0, .sliding_window = 1}));
  EXPECT_THROW(paged_attention(row.q_THE, cache, one, {.scale = 1.0}), StateError);
  EXPECT_THROW(paged_attention(q, cache, PagedRows({{8, 8, {2}}}, 32), {.scale = 1.0}), StateError);
  EXPECT_THROW(paged_attention(q.to(at::kBFloat16), cache, one, {.scale = 1.0}), StateError);
  EXPECT_THROW(
      make_paged_cache({.num_blocks = 1, .block_tokens = 16, .num_kv_heads = 1, .head_dim = 8},
                       at::kFloat),
      StateError);
}

// PagedRows computes these facts once, because dozens of layers read them.
TEST(PagedAttention, RowsAreCheckedWhenTheyAreMade) {
  const auto made = [](std::vector<PagedRow> rows) { return PagedRows(std::move(rows), 32); };
  EXPECT_EQ(made({}).end_block(), 0);
  EXPECT_EQ(made({}).widest_window(), INT64_MAX);
  const PagedRow whole{8, 40, {3, 1}};
  EXPECT_EQ(made({whole}).end_block(), 4);
  EXPECT_EQ(made({whole}).widest_window(), INT64_MAX);
  // There are 90 keys before the new ones, and the first block that is present begins at key 64.
  const PagedRow windowed{10, 100, {kNoBlock, kNoBlock, 7, 2}};
  EXPECT_EQ(made({windowed, whole}).end_block(), 8);
  EXPECT_EQ(made({whole, windowed}).widest_window(), 90 - 64 + 1);
  // A missing block bounds the window even if blocks below it are present. A row without new tokens
  // has no bound.
  EXPECT_EQ(made({{1, 96, {4, kNoBlock, 7}}}).widest_window(), 95 - 64 + 1);
  EXPECT_EQ(made({{0, 96, {kNoBlock, kNoBlock, kNoBlock}}}).widest_window(), INT64_MAX);
  const PagedCache cache =
      make_paged_cache({.num_blocks = 8, .num_kv_heads = 2, .head_dim = 16}, at::kFloat);
  const at::Tensor q = at::zeros({10, 2, 16});
  EXPECT_NO_THROW(paged_attention(q, cache, made({windowed}), {.sliding_window = 27}));
  EXPECT_THROW(paged_attention(q, cache, made({windowed}), {.sliding_window = 28}), StateError);
}

TEST(PagedAttention, BlockBytesAreThoseOfTheCache) {
  const PagedShape shape{.num_blocks = 5, .num_kv_heads = 2, .head_dim = 64};
  EXPECT_EQ(paged_block_bytes(shape, at::kBFloat16), 2 * 32 * 2 * 64 * 2);
  EXPECT_EQ(paged_block_bytes(shape, at::kFloat), 2 * 32 * 2 * 64 * 4);
  EXPECT_EQ(paged_block_bytes(shape, at::kBFloat16, CacheElement::Int8), 2 * 32 * 2 * (64 + 4));
}

TEST(PagedAttention, NoRows) {
  const PagedShape shape{.num_blocks = 2, .num_kv_heads = 2, .head_dim = 16};
  const PagedCache cache = make_paged_cache(shape, at::kFloat);
  const at::Tensor none = at::empty({0, 2, 16});
  store_paged(none, none, cache, PagedRows({}, 32));
  EXPECT_EQ(paged_attention(none, cache, PagedRows({}, 32), {}).numel(), 0);
}

}  // namespace
}  // namespace convoy::kernels
