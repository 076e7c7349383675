// SPDX-License-Identifier: Apache-2.0
//
// Compares Convoy's CUDA kernels of paged attention with the same steps in LibTorch, on tables of
// blocks.
#include <gtest/gtest.h>

#include <random>

#include "kernels_cuda/own_kernels_test.h"

namespace convoy::kernels {
namespace {

struct PagedSample {
  int64_t heads, kv_heads, features;
  std::vector<PagedRow> rows;  // their blocks are assigned by PagedTables
  int64_t block_tokens = 32;
  int64_t window = 0;
};

// A cache of random numbers, with NaN where no row has a key, and the queries of all rows.
class PagedTables {
 public:
  PagedTables(const PagedSample& of, at::ScalarType type, CacheElement element)
      : config_{.scale = 0.2, .sliding_window = of.window} {
    std::vector<PagedRow> rows = of.rows;
    int64_t blocks = 3;
    for (const PagedRow& row : rows) blocks += row.num_keys / of.block_tokens + 1;
    std::vector<int32_t> free(static_cast<size_t>(blocks));
    std::iota(free.begin(), free.end(), 0);
    std::mt19937 random(static_cast<uint32_t>(of.heads + of.features));
    std::shuffle(free.begin(), free.end(), random);
    const auto window = of.window == 0 ? int64_t{1} << 40 : of.window;
    for (PagedRow& row : rows)
      for (int64_t key = 0; key < row.num_keys; key += of.block_tokens) {
        const bool is_seen = key + of.block_tokens > row.num_keys - row.num_queries - window + 1;
        row.blocks.push_back(is_seen ? free.back() : kNoBlock);
        if (is_seen) free.pop_back();
      }
    rows_ = PagedRows(rows, of.block_tokens);
    cache_ = aten().paged_attention.make_cache({blocks, of.block_tokens, of.kv_heads, of.features},
                                               type, element);
    for (at::Tensor* part : {&cache_.keys, &cache_.values})
      part->fill_(element == CacheElement::Int8 ? 77 : NAN);
    if (cache_.key_scales.defined())
      for (at::Tensor* part : {&cache_.key_scales, &cache_.value_scales}) part->fill_(NAN);
    fill(rows, of, type);
    q_ = sample({rows_.queries().num_tokens(), of.heads, of.features}, type, 3);
  }

  const PagedRows& rows() const { return rows_; }
  const PagedCache& cache() const { return cache_; }
  at::Tensor attend(const OpTable& table) const {
    return table.paged_attention.attend(q_, cache_, rows_, config_);
  }

 private:
  // Stores every held key by a step in which no row has an earlier query.
  void fill(std::vector<PagedRow> rows, const PagedSample& of, at::ScalarType type) {
    for (PagedRow& row : rows) {
      int64_t held = 0;
      while (held < std::ssize(row.blocks) && row.blocks[held] == kNoBlock) ++held;
      row.num_queries = row.num_keys - held * of.block_tokens;
    }
    const PagedRows all(rows, of.block_tokens);
    const std::vector<int64_t> sizes{all.queries().num_tokens(), of.kv_heads, of.features};
    aten().paged_attention.store(sample(sizes, type, 1), sample(sizes, type, 2), cache_, all);
  }

  AttentionConfig config_;
  PagedRows rows_;
  PagedCache cache_;
  at::Tensor q_;
};

// More rows than a block has threads; one row beyond that number is long.
PagedSample many_rows(int64_t window) {
  PagedSample sample{.heads = 4, .kv_heads = 2, .features = 16, .rows = {}, .window = window};
  for (int64_t row = 0; row < 300; ++row)
    sample.rows.push_back({1, row == 280 ? 2000 : 1 + row * 37 % 60, {}});
  return sample;
}

const std::vector<PagedSample>& paged_samples() {
  static const std::vector<PagedSample> all{
      {1, 1, 8, {{1, 1, {}}}},
      {7, 1, 64, {{1, 33, {}}, {1, 600, {}}, {1, 512, {}}}},
      {8, 4, 128, {{1, 513, {}}, {1, 5, {}}}, 64},
      {12, 3, 80, {{1, 70, {}}, {1, 1100, {}}}, 96},
      {5, 1, 16, {{1, 40, {}}}},
      {19, 1, 40, {{1, 97, {}}}},  // three chunks of heads
      {4, 4, 256, {{1, 530, {}}}},
      {14, 2, 64, {{1, 2000, {}}, {1, 33, {}}, {1, 700, {}}}, 32, 600},
      {9, 1, 128, {{1, 1, {}}, {1, 430, {}}, {3, 60, {}}}, 96},
      {4, 2, 24, {{1, 1300, {}}, {1, 20, {}}, {1, 600, {}}}, 32, 70},
      {2, 1, 32, {{1, 1300, {}}, {1, 513, {}}}, 32, 513},
      {2, 1, 32, {{1, 1536, {}}, {1, 1537, {}}}, 32, 1},
      // Pieces of prompts stand before, between and after single tokens.
      {4, 2, 32, {{5, 40, {}}, {1, 90, {}}, {3, 3, {}}, {1, 1, {}}, {0, 12, {}}}},
      {4, 2, 32, {{1, 90, {}}, {9, 600, {}}, {4, 31, {}}}, 32, 40},
      {4, 2, 20, {{1, 90, {}}, {9, 60, {}}}},  // 8 does not divide 20
      many_rows(0),
      many_rows(700),
  };
  return all;
}

TEST(OwnPagedAttention, IsThatOfLibTorch) {
  for (const at::ScalarType type : kTypes)
    for (const CacheElement element : {CacheElement::Model, CacheElement::Int8})
      for (const PagedSample& of : paged_samples()) {
        const PagedTables tables(of, type, element);
        expect_close(tables.attend(own()), tables.attend(aten()), 256,
                     fmt::format("{} heads of {}, {} keys in the first row, window {}", of.heads,
                                 of.features, of.rows[0].num_keys, of.window));
      }
}

TEST(OwnPagedAttention, StoresTheBitsOfLibTorch) {
  for (const at::ScalarType type : kTypes)
    for (const CacheElement element : {CacheElement::Model, CacheElement::Int8})
      for (const int64_t features : {8, 64, 72, 128, 256, 20}) {
        const PagedShape shape{.num_blocks = 3, .num_kv_heads = 2, .head_dim = features};
        const PagedRows rows({{5, 40, {2, 0}}, {1, 1, {1}}}, shape.block_tokens);
        // k and v are columns of a wider product.
        at::Tensor k = sample({6, 5, features}, type, 1).narrow(1, 1, 2);
        at::Tensor v = sample({6, 5, features}, type, 2).narrow(1, 3, 2);
        k[1].fill_(0);
        k[2][1][3] = INFINITY;
        v[3][0][5] = NAN;
        std::vector<PagedCache> caches;
        for (const OpTable* table : {&own(), &aten()}) {
          caches.push_back(aten().paged_attention.make_cache(shape, type, element));
          for (at::Tensor* part : {&caches.back().keys, &caches.back().values,
                                   &caches.back().key_scales, &caches.back().value_scales})
            if (part->defined()) part->zero_();
          table->paged_attention.store(k, v, caches.back(), rows);
        }
        for (const auto& part : {&PagedCache::keys, &PagedCache::values, &PagedCache::key_scales,
                                 &PagedCache::value_scales}) {
          const at::Tensor &found = caches[0].*part, &wanted = caches[1].*part;
          if (!wanted.defined()) continue;
          EXPECT_TRUE(at::equal(found.nan_to_num(12345.0), wanted.nan_to_num(12345.0)))
              << type << " of " << features;
        }
      }
}

struct TransformSample {
  int64_t heads, kv_heads, features;
  bool norms, rotates;
  NormOrder order = NormOrder::CastThenScale;
};

// q, k and v are columns of one product. The separate steps are one kernel each, as on other
// devices.
TEST(OwnPagedAttention, TransformsAndStoresAsInSteps) {
  const at::NoGradGuard no_grad;
  for (const at::ScalarType type : kTypes)
    for (const CacheElement element : {CacheElement::Model, CacheElement::Int8})
      for (const TransformSample& of : std::vector<TransformSample>{
               {2, 2, 16, false, true},
               {7, 1, 64, false, true},
               {4, 2, 80, true, true},
               {6, 3, 128, true, true, NormOrder::ScaleByOnePlusThenCast},
               {3, 1, 256, true, true},
               {3, 1, 64, true, false},
               {3, 1, 72, true, true},    // half a head does not fill whole lanes
               {3, 1, 20, true, true},    // 8 does not divide 20
               {3, 1, 64, false, false},  // neither norm nor rotation
           }) {
        const std::string what =
            fmt::format("{} and {} heads of {}, norms {}, rotation {}", of.heads, of.kv_heads,
                        of.features, of.norms, of.rotates);
        const PagedShape shape{
            .num_blocks = 3, .num_kv_heads = of.kv_heads, .head_dim = of.features};
        const PagedRows rows({{5, 40, {2, 0}}, {1, 1, {1}}}, shape.block_tokens);
        const at::Tensor all = sample({6, of.heads + 2 * of.kv_heads, of.features}, type, 1);
        const at::Tensor q = all.narrow(1, 0, of.heads), k = all.narrow(1, of.heads, of.kv_heads),
                         v = all.narrow(1, of.heads + of.kv_heads, of.kv_heads);
        HeadTransform transform{.norm_epsilon = 1e-6, .norm_order = of.order};
        if (of.norms) {
          transform.query_norm_E = sample({of.features}, type, 2);
          transform.key_norm_E = sample({of.features}, type, 3);
        }
        if (of.rotates) {
          const at::Tensor angles = sample({50, of.features / 2}, at::kFloat, 4) * 3;
          transform.cos_PE = angles.cos();
          transform.sin_PE = angles.sin();
          transform.positions_T = (at::arange(6, at::kLong) * 17).remainder(50);
        }
        std::vector<PagedCache> caches;
        std::vector<at::Tensor> queries;
        for (const OpTable* table : {&own(), &aten()}) {
          const CpuTableOverride in_steps(*table);
          caches.push_back(aten().paged_attention.make_cache(shape, type, element));
          for (at::Tensor* part : {&caches.back().keys, &caches.back().values,
                                   &caches.back().key_scales, &caches.back().value_scales})
            if (part->defined()) part->zero_();
          queries.push_back(
              table->paged_attention.transform_and_store(q, k, v, transform, caches.back(), rows));
        }
        expect_close(queries[0], queries[1], of.features, what);
        for (const auto& part : {&PagedCache::values, &PagedCache::value_scales}) {
          if ((caches[1].*part).defined()) {
            EXPECT_TRUE(at::equal(caches[0].*part, caches[1].*part)) << what;
          }
        }
        const auto keys = [](const PagedCache& cache) {
          const at::Tensor wide = cache.keys.to(at::kFloat);
          return cache.key_scales.defined() ? wide * cache.key_scales.unsqueeze(-1) : wide;
        };
        // A step of int8 is 1/127 of the largest key.
        const double bound = element == CacheElement::Int8 ? 0.02 : tolerance(type, of.features);
        EXPECT_LT(relative_error(keys(caches[0]), keys(caches[1])), bound) << what;
        if (!of.norms && of.rotates) {
          EXPECT_TRUE(at::equal(queries[0], queries[1])) << what;
          EXPECT_TRUE(at::equal(caches[0].keys, caches[1].keys)) << what;
        }
      }
}

}  // namespace
}  // namespace convoy::kernels
