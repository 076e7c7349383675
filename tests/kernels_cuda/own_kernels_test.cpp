// SPDX-License-Identifier: Apache-2.0
//
// Our CUDA kernels beside LibTorch's, on shapes that take each of their paths: rows of a warp and
// of a block, vectors and single elements, rests, nothing at all. Every access is checked to the
// byte.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/integer_weight/grouped_codes.h"
#include "convoy/model/kernels/ops/op_table.h"
#include "kernel_checks/host_kernels.h"
#include "kernel_checks/op_check.h"

namespace convoy::kernels {
namespace {

using testing::relative_error;
using testing::sample;
using testing::tolerance;

const std::array kTypes = {at::kFloat, at::kBFloat16};

class GpuOnHost : public ::testing::Environment {
  void SetUp() override {
    const char* const binaries = std::getenv("CONVOY_BIN_DIR");
    ASSERT_NE(binaries, nullptr) << "CONVOY_BIN_DIR names the folder of libfake_cuda.so";
    if (kernel_texts().empty()) GTEST_SKIP() << "built without clang++";
    kernels_ = testing::host_kernels(binaries);
  }
  void TearDown() override { kernels_.reset(); }
  std::unique_ptr<HostKernels> kernels_;
};
const auto* const on_host = ::testing::AddGlobalTestEnvironment(new GpuOnHost);

const OpTable& own() { return own_kernel_op_table(); }
const OpTable& aten() { return aten_op_table(); }

// The same numbers, `offset` elements into their block: then no vector may be read.
at::Tensor moved(const at::Tensor& tensor, int64_t offset) {
  at::Tensor block = at::empty({tensor.numel() + offset}, tensor.options());
  return block.narrow(0, offset, tensor.numel()).view(tensor.sizes()).copy_(tensor);
}

void expect_close(const at::Tensor& found, const at::Tensor& wanted, int64_t length,
                  const std::string& what) {
  EXPECT_EQ(found.sizes(), wanted.sizes()) << what;
  EXPECT_EQ(found.scalar_type(), wanted.scalar_type()) << what;
  EXPECT_LT(relative_error(found, wanted), tolerance(wanted.scalar_type(), length)) << what;
}

// Ahead of the others, so that first launches meet.
TEST(OwnKernels, ManyThreadsLaunchThemAtOnce) {
  constexpr int kThreads = 4;
  std::array<bool, kThreads> equal{};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([&, number] {
      bool all = true;
      for (const at::ScalarType type : kTypes) {
        const at::Tensor x = sample({9, 64}, type, number), weight = sample({64}, type, 20);
        const auto norm = [&](const OpTable& table) {
          return table.rms_norm.forward(x, weight, at::Tensor(), 1e-6, NormOrder::CastThenScale);
        };
        all = all && relative_error(norm(own()), norm(aten())) < tolerance(type, 64);
        const auto gated = [&](const OpTable& table) {
          return table.gated_activation.forward(x, x, Activation::Silu);
        };
        all = all && relative_error(gated(own()), gated(aten())) < tolerance(type, 1);
      }
      equal[static_cast<size_t>(number)] = all;
    });
  for (std::thread& thread : threads) thread.join();
  for (const bool all : equal) EXPECT_TRUE(all);
}

TEST(OwnRmsNorm, IsThatOfLibTorch) {
  for (const at::ScalarType type : kTypes)
    for (const NormOrder order : {NormOrder::CastThenScale, NormOrder::ScaleByOnePlusThenCast})
      for (const auto& [rows, width, offset] : std::vector<std::array<int64_t, 3>>{{1, 1, 0},
                                                                                   {9, 64, 0},
                                                                                   {9, 64, 1},
                                                                                   {70, 24, 0},
                                                                                   {3, 1024, 0},
                                                                                   {2, 1032, 0},
                                                                                   {2, 2056, 0},
                                                                                   {2, 1033, 0},
                                                                                   {19, 4096, 0},
                                                                                   {130, 40, 3},
                                                                                   {0, 16, 0}}) {
        const std::string what = fmt::format("{} x {} from {}", rows, width, offset);
        const at::Tensor x = moved(sample({rows, width}, type, 1), offset);
        const at::Tensor weight = sample({width}, type, 2);
        const at::Tensor grad = sample({rows, width}, type, 3);
        const at::Tensor inverse = at::empty({rows}), wanted_inverse = at::empty({rows});
        expect_close(own().rms_norm.forward(x, weight, inverse, 1e-6, order),
                     aten().rms_norm.forward(x, weight, wanted_inverse, 1e-6, order), width, what);
        expect_close(inverse, wanted_inverse, width, what);
        EXPECT_TRUE(at::equal(own().rms_norm.forward(x, weight, at::Tensor(), 1e-6, order),
                              own().rms_norm.forward(x, weight, inverse, 1e-6, order)));
        const at::Tensor added = moved(sample({rows, width}, type, 4), offset);
        const AddedNorm joined = own().rms_norm.add_forward(x, added, weight, inverse, 1e-6, order);
        EXPECT_TRUE(at::equal(joined.sum, x + added)) << what;
        const at::Tensor sum = moved(joined.sum, offset);
        aten().rms_norm.forward(sum, weight, wanted_inverse, 1e-6, order);
        expect_close(inverse, wanted_inverse, width, what);
        aten().rms_norm.forward(x, weight, wanted_inverse, 1e-6, order);
        EXPECT_TRUE(
            at::equal(joined.norm, own().rms_norm.forward(sum, weight, at::Tensor(), 1e-6, order)))
            << what;
        const auto gradients = [&](const OpTable& table, const at::Tensor& grad_x, bool all) {
          return table.rms_norm.backward(grad, x, weight, wanted_inverse, grad_x, order, all);
        };
        const NormGradients found = gradients(own(), {}, true);
        const NormGradients wanted = gradients(aten(), {}, true);
        expect_close(found.x, wanted.x, width, what);
        const NormGradients more = gradients(own(), added, true);
        expect_close(more.x, gradients(aten(), added, true).x, width, what);
        EXPECT_TRUE(at::equal(more.weight_D, found.weight_D)) << what;
        expect_close(found.weight_D, wanted.weight_D, rows, what);
        EXPECT_FALSE(gradients(own(), {}, false).weight_D.defined());
        const NormGradients again = gradients(own(), {}, true);
        EXPECT_TRUE(at::equal(again.weight_D, found.weight_D) && at::equal(again.x, found.x));
      }
}

TEST(OwnRmsNorm, KeepsNaNInItsRow) {
  for (const at::ScalarType type : kTypes) {
    at::Tensor x = sample({3, 1100}, type, 1);
    x[1][700] = NAN;
    const at::Tensor y = own().rms_norm.forward(x, at::ones({1100}, x.options()), at::Tensor(),
                                                1e-6, NormOrder::CastThenScale);
    EXPECT_TRUE(y[1].isnan().all().item<bool>());
    EXPECT_FALSE(y[0].isnan().any().item<bool>() || y[2].isnan().any().item<bool>());
  }
}

struct PagedSample {
  int64_t heads, kv_heads, features;
  std::vector<PagedRow> rows;  // blocks are dealt out here
  int64_t block_tokens = 32;
  int64_t window = 0;
};

// A cache of random numbers, NaN where no row's key lies, and queries of all rows.
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
  // Every held key is stored, by a step whose rows have no query before it.
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
      // Pieces of prompts before, between and after.
      {4, 2, 32, {{5, 40, {}}, {1, 90, {}}, {3, 3, {}}, {1, 1, {}}, {0, 12, {}}}},
      {4, 2, 32, {{1, 90, {}}, {9, 600, {}}, {4, 31, {}}}, 32, 40},
      {4, 2, 20, {{1, 90, {}}, {9, 60, {}}}},  // 8 does not divide 20
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
        // Columns of a wider product.
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

// q, k and v are columns of one product. The steps are those of other devices, one kernel each.
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
               {3, 1, 72, true, true},    // a half is no whole number of lanes
               {3, 1, 20, true, true},    // 8 does not divide it
               {3, 1, 64, false, false},  // nothing to do
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

TEST(OwnRope, IsThatOfLibTorch) {
  for (const at::ScalarType type : kTypes)
    for (const auto& [tokens, heads, half] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {5, 3, 4}, {7, 2, 5}, {9, 4, 32}, {3, 28, 64}, {0, 2, 8}})
      for (const bool transposed : {false, true}) {
        const std::string what = fmt::format("{} x {} x {}", tokens, heads, 2 * half);
        at::Tensor x = sample({tokens, heads, 2 * half}, type, 1);
        // Columns of a wider product, as q, k and v may be.
        if (transposed) x = sample({tokens, heads + 2, 2 * half}, type, 1).narrow(1, 1, heads);
        const at::Tensor angles = sample({50, half}, at::kFloat, 2) * 3;
        const at::Tensor positions = (at::arange(tokens, at::kLong) * 17).remainder(50);
        for (const float direction : {1.0f, -1.0f}) {
          const at::Tensor found =
              own().rope.rotate(x, angles.cos(), angles.sin(), positions, direction);
          expect_close(found,
                       aten().rope.rotate(x, angles.cos(), angles.sin(), positions, direction), 1,
                       what);
          const at::Tensor fewer = x.narrow(1, 0, (heads + 1) / 2);
          const RotatedHeads both =
              own().rope.rotate_both({x, fewer}, angles.cos(), angles.sin(), positions, direction);
          EXPECT_TRUE(at::equal(both.q_THE, found)) << what;
          EXPECT_TRUE(at::equal(both.k_TKE, found.narrow(1, 0, (heads + 1) / 2))) << what;
        }
      }
}

TEST(OwnGatedActivation, IsThatOfLibTorch) {
  for (const at::ScalarType type : kTypes)
    for (const Activation activation : {Activation::Silu, Activation::GeluTanh})
      for (const int64_t count : {0, 1, 7, 8, 9, 1000, 20'003})
        for (const int64_t offset : {0, 1}) {
          const std::string what = fmt::format("{} from {}", count, offset);
          const at::Tensor gate = moved(sample({count, 1}, type, 1) * 4, offset);
          const at::Tensor up = sample({count, 1}, type, 2), grad = sample({count, 1}, type, 3);
          expect_close(own().gated_activation.forward(gate, up, activation),
                       aten().gated_activation.forward(gate, up, activation), 1, what);
          const auto found = own().gated_activation.backward(grad, gate, up, activation);
          const auto wanted = aten().gated_activation.backward(grad, gate, up, activation);
          expect_close(found.gate_TF, wanted.gate_TF, 16, what);
          expect_close(found.up_TF, wanted.up_TF, 1, what);
        }
}

// Columns of one product. Of 1,100 a part is no whole number of vectors in bf16.
TEST(OwnGatedActivation, ReadsRowsThatLieApart) {
  for (const at::ScalarType type : kTypes)
    for (const int64_t width : {1, 8, 72, 1100})
      for (const int64_t offset : {0, 1}) {
        const at::Tensor both = moved(sample({5, 2 * width}, type, 1) * 4, offset);
        const at::Tensor gate = both.narrow(1, 0, width), up = both.narrow(1, width, width);
        const at::Tensor wide = sample({5, 3 * width}, type, 2).narrow(1, 1, width);
        for (const at::Tensor& other : {up, wide})
          EXPECT_TRUE(at::equal(own().gated_activation.forward(gate, other, Activation::Silu),
                                own().gated_activation.forward(
                                    gate.contiguous(), other.contiguous(), Activation::Silu)))
              << width << " from " << offset;
      }
}

TEST(OwnDecoding, HasTheBitsOfLibTorch) {
  for (const at::ScalarType type : kTypes)
    for (const BitsandbytesFormat& format :
         std::vector<BitsandbytesFormat>{{CodeType::Nf4, 64, false},
                                         {CodeType::Nf4, 32, true},
                                         {CodeType::Fp4, 128, false},
                                         {CodeType::Fp4, 64, true},
                                         {CodeType::Int8, 64, false}})
      for (const std::vector<int64_t>& shape :
           std::vector<std::vector<int64_t>>{{1, 1}, {7, 9}, {33, 64}, {300, 72}, {5, 1000}}) {
        const BitsandbytesWeight weight = encode_weight(sample(shape, at::kFloat, 2), format);
        EXPECT_TRUE(at::equal(own().bitsandbytes_weight.decode(weight, type),
                              aten().bitsandbytes_weight.decode(weight, type)))
            << code_type_name(format.type) << " " << format.block << " " << at::IntArrayRef(shape);
      }
}

TEST(OwnDecoding, HasTheBitsOfGroupsOfWholeNumbers) {
  for (const at::ScalarType type : kTypes)
    for (const IntegerFormat& format : std::vector<IntegerFormat>{
             {WeightFormat::Int4, 32}, {WeightFormat::Int4Zero, 64}, {WeightFormat::Int4Zero, 128}})
      for (const std::vector<int64_t>& shape :
           std::vector<std::vector<int64_t>>{{1, 1}, {7, 9}, {33, 64}, {300, 72}, {5, 1000}}) {
        const IntegerWeight weight = quantize_weight(sample(shape, at::kFloat, 2), format);
        EXPECT_TRUE(at::equal(GroupedCodes(weight).decode(type), weight.values().to(type)))
            << format.group_inputs << " " << at::IntArrayRef(shape);
      }
}

// A weight of few bits with its values.
struct CodedSample {
  std::string what;
  std::function<std::shared_ptr<PackedLinear>(const FrozenLinearOps&, const at::Tensor&)> pack;
  at::Tensor values_OI;
};

std::vector<CodedSample> coded_samples(at::IntArrayRef shape) {
  std::vector<CodedSample> all;
  const at::Tensor weight = sample(shape, at::kBFloat16, 2);
  for (const IntegerFormat& format : std::vector<IntegerFormat>{{WeightFormat::Int8},
                                                                {WeightFormat::Int4, 64},
                                                                {WeightFormat::Int4Zero, 32},
                                                                {WeightFormat::Int4Zero, 128}}) {
    const IntegerWeight coded = quantize_weight(weight, format);
    all.push_back(
        {fmt::format("format {} of {}", static_cast<int>(format.weight), format.group_inputs),
         [coded](const FrozenLinearOps& ops, const at::Tensor& bias) {
           return ops.pack_integer(coded, bias);
         },
         coded.values()});
  }
  for (const BitsandbytesFormat& format :
       std::vector<BitsandbytesFormat>{{CodeType::Nf4, 64, false},
                                       {CodeType::Nf4, 32, true},
                                       {CodeType::Fp4, 128, false},
                                       {CodeType::Fp4, 64, true},
                                       {CodeType::Int8, 64, false}}) {
    const BitsandbytesWeight coded = encode_weight(weight, format);
    all.push_back({fmt::format("{} of {}", code_type_name(format.type), format.block),
                   [coded](const FrozenLinearOps& ops, const at::Tensor& bias) {
                     return ops.pack_bitsandbytes(coded, bias);
                   },
                   aten().bitsandbytes_weight.decode(coded, at::kFloat)});
  }
  return all;
}

// Shapes with whole vectors of codes, whose last chunk is short, whose outputs end within a tile;
// those of which no vector can be read; rows of each number of tiles, of several passes, and too
// many.
TEST(OwnCodedLinear, IsThatOfLibTorch) {
  for (const auto& [outputs, inputs, row_counts] :
       std::vector<std::tuple<int64_t, int64_t, std::vector<int64_t>>>{{1, 32, {1, 3}},
                                                                       {35, 96, {1, 8, 9, 33}},
                                                                       {100, 160, {16, 128, 129}},
                                                                       {40, 2080, {1, 12, 31}},
                                                                       {70, 48, {2, 20}},
                                                                       {9, 50, {0, 2}},
                                                                       {3, 1, {1}}})
    for (const CodedSample& of : coded_samples({outputs, inputs}))
      for (const int64_t rows : row_counts) {
        const std::string what = fmt::format("{}: {} x {} x {}", of.what, rows, inputs, outputs);
        const at::Tensor x = sample({rows, inputs}, at::kBFloat16, 1);
        const at::Tensor bias = rows % 2 == 0 ? sample({outputs}, at::kBFloat16, 3) : at::Tensor();
        ProductTerm added;
        if (rows % 3 == 0)
          added = {sample({rows, 4}, at::kBFloat16, 4), sample({4, outputs}, at::kBFloat16, 5)};
        const auto found = of.pack(own().frozen_linear, bias);
        const auto wanted = of.pack(aten().frozen_linear, bias);
        expect_close(found->forward(x, added), wanted->forward(x, added), inputs, what);
        const at::Tensor grad = sample({rows, outputs}, at::kBFloat16, 6);
        for (const bool sums : {false, true}) {
          const auto gradient = [&](PackedLinear& linear) {
            return linear.input_gradient(grad, {}, sums ? x.clone() : at::Tensor());
          };
          expect_close(gradient(*found), gradient(*wanted), outputs, what);
        }
      }
}

// Rows that are 1 at one input each give the weights, each rounded at most twice.
TEST(OwnCodedLinear, EveryWeightIsInItsPlace) {
  for (const CodedSample& of : coded_samples({67, 192}))
    for (const int64_t together : {8, 16, 96}) {
      const at::Tensor unit = at::eye(192, at::kBFloat16);
      const auto linear = of.pack(own().frozen_linear, {});
      for (int64_t first = 0; first < 192; first += together) {
        const at::Tensor found =
            linear->forward(unit.narrow(0, first, together), {}).t().to(at::kFloat);
        const at::Tensor wanted = of.values_OI.narrow(1, first, together);
        EXPECT_TRUE(
            ((found - wanted).abs() <= wanted.abs() * std::ldexp(1.0, -8)).all().item<bool>())
            << of.what << " from " << first;
      }
    }
}

TEST(OwnCodedLinear, KeepsNaNInItsRow) {
  for (const CodedSample& of : coded_samples({40, 96})) {
    at::Tensor x = sample({11, 96}, at::kBFloat16, 1);
    x[4][70] = NAN;
    const at::Tensor broken = of.pack(own().frozen_linear, {})->forward(x, {}).isnan();
    EXPECT_TRUE(broken[4].all().item<bool>()) << of.what;
    EXPECT_EQ(broken.sum().item<int64_t>(), 40) << of.what;
  }
}

TEST(OwnDropout, DropsWhatEveryDeviceDrops) {
  const DropRule rule{.key_low = 7, .key_high = 9, .dropped_below = 1u << 30, .scale = 4.0f / 3};
  for (const at::ScalarType type : kTypes)
    for (const int64_t count : {0, 1, 8, 30'001})
      for (const int64_t offset : {0, 1}) {
        const at::Tensor x = moved(sample({count}, type, 1), offset);
        EXPECT_TRUE(at::equal(own().dropout.drop(x, rule), aten().dropout.drop(x, rule))) << count;
      }
}

struct HeadSample {
  at::Tensor hidden_ND, weight_VD, labels_N;
};

HeadSample head_sample(int64_t rows, int64_t vocab, at::ScalarType type) {
  return {sample({rows, 24}, type, 1), sample({vocab, 24}, type, 2),
          (at::arange(rows, at::kLong) * 37 + 3).remainder(vocab)};
}

TEST(OwnCrossEntropy, IsThatOfLibTorch) {
  for (const at::ScalarType type : kTypes)
    for (const auto& [rows, vocab] : std::vector<std::array<int64_t, 2>>{
             {0, 8}, {2, 2}, {3, 7}, {20, 64}, {5, 2048}, {3, 2056}, {3, 4104}, {4, 2051}}) {
      const std::string what = fmt::format("{} x {}", rows, vocab);
      const auto [hidden, weight, labels] = head_sample(rows, vocab, type);
      const WantedGradients both{.hidden = true, .weight = true};
      const HeadLoss found = own().cross_entropy.loss(hidden, weight, labels, both);
      const HeadLoss wanted = aten().cross_entropy.loss(hidden, weight, labels, both);
      expect_close(found.loss, wanted.loss, vocab, what);
      expect_close(found.hidden_ND, wanted.hidden_ND, vocab, what);
      // Products of p, which is rounded to `type`.
      EXPECT_LT(relative_error(found.weight_VD, wanted.weight_VD), tolerance(type, rows)) << what;
      const HeadLoss alone = own().cross_entropy.loss(hidden, weight, labels, {});
      EXPECT_TRUE(at::equal(alone.loss, found.loss)) << what;
      const LabelLosses judged = own().cross_entropy.label_losses(hidden, weight, labels);
      const LabelLosses wanted_judged = aten().cross_entropy.label_losses(hidden, weight, labels);
      expect_close(judged.nll_N, wanted_judged.nll_N, vocab, what);
      EXPECT_TRUE(at::equal(judged.correct_N, wanted_judged.correct_N)) << what;
    }
}

// Weights of one column over hidden values of one: the logits are the weights.
TEST(OwnCrossEntropy, TakesTheFirstOfEqualLogitsAndHugeOnes) {
  for (const int64_t vocab : {2304, 2305}) {
    at::Tensor weight = at::zeros({vocab, 1});
    for (const int64_t place : {2303, 300, 1200}) weight[place] = 5;
    const at::Tensor labels = at::tensor({300, 1200, 2303}, at::kLong);
    const LabelLosses judged = own().cross_entropy.label_losses(at::ones({3, 1}), weight, labels);
    EXPECT_TRUE(at::equal(judged.correct_N, labels.eq(300)));
    weight[7] = 3e38f;
    weight[8] = -3e38f;
    weight[9] = -INFINITY;
    const at::Tensor huge =
        own()
            .cross_entropy.label_losses(at::ones({2, 1}), weight, at::tensor({7, 8}, at::kLong))
            .nll_N;
    EXPECT_NEAR(huge[0].item<float>(), 0.0, 1e-6);
    EXPECT_GT(huge[1].item<float>(), 3e38f);
    weight[7] = NAN;
    EXPECT_TRUE(std::isnan(
        own()
            .cross_entropy.label_losses(at::ones({1, 1}), weight, at::tensor({8}, at::kLong))
            .nll_N.item<float>()));
  }
}

TEST(OwnScale, RoundsAsLibTorchDoes) {
  std::mt19937 random(5);
  at::Tensor bits = at::empty({70'001}, at::kInt);
  for (int64_t at = 0; at < bits.numel(); ++at)
    bits.mutable_data_ptr<int>()[at] = static_cast<int>(random());
  // Ties, infinity, NaN that rounding would carry over, numbers that become infinity, the smallest
  // ones.
  const std::array<uint32_t, 8> special = {0x3f808000, 0x3f818000, 0x7f800000, 0x7fffffff,
                                           0xffffffff, 0x7f7fffff, 0x00000001, 0x80008000};
  for (size_t at = 0; at < special.size(); ++at)
    bits.mutable_data_ptr<int>()[at] = static_cast<int>(special[at]);
  const at::Tensor wide = bits.view(at::kFloat), one = at::ones({});
  const at::Tensor found = own().cross_entropy.scaled(wide, one, at::kBFloat16);
  EXPECT_TRUE(
      at::equal(found.view(at::kShort).masked_select(wide.isnan().logical_not()),
                wide.to(at::kBFloat16).view(at::kShort).masked_select(wide.isnan().logical_not())));
  EXPECT_TRUE(at::equal(found.isnan(), wide.isnan()));
  const at::Tensor factor = at::scalar_tensor(0.3f), numbers = sample({1003}, at::kFloat, 1);
  for (const at::ScalarType from : kTypes)
    for (const at::ScalarType to : kTypes)
      EXPECT_TRUE(at::equal(own().cross_entropy.scaled(numbers.to(from), factor, to),
                            aten().cross_entropy.scaled(numbers.to(from), factor, to)));
}

// Every second pair of gradients in bf16.
std::vector<AdamWTensors> adamw_sample(int64_t count, bool rounds) {
  std::vector<AdamWTensors> all;
  for (int64_t number = 0; number < count; ++number) {
    const int64_t size = number % 7 == 3 ? 0 : number == 1 ? 17'000 : 1 + number * 5;
    const auto seed = static_cast<uint64_t>(number);
    const auto fresh = [&](uint64_t of) {
      return moved(sample({size}, at::kFloat, 4 * seed + of), number % 3 == 2 ? 1 : 0);
    };
    all.push_back(
        {.value = fresh(0),
         .gradient = number / 2 % 2 == 0 ? fresh(1) : fresh(1).to(at::kBFloat16),
         .exp_avg = fresh(2),
         .exp_avg_sq = fresh(3).square_(),
         .rounded = rounds && number % 2 == 0 ? at::zeros({size}, at::kBFloat16) : at::Tensor()});
  }
  return all;
}

TEST(OwnAdamW, UpdatesAllParametersAsLibTorchDoes) {
  const AdamWStep step{
      .learning_rate = 0.01, .weight_decay = 0.1, .gradient_scale = 0.37, .step = 3};
  for (const int64_t count : {1, 64, 65, 150})
    for (const bool rounds : {false, true}) {
      const auto found = adamw_sample(count, rounds), wanted = adamw_sample(count, rounds);
      own().adamw.update(found, step);
      aten().adamw.update(wanted, step);
      for (int64_t number = 0; number < count; ++number) {
        const std::string what = fmt::format("{} of {}", number, count);
        expect_close(found[number].value, wanted[number].value, 1, what);
        expect_close(found[number].exp_avg, wanted[number].exp_avg, 1, what);
        expect_close(found[number].exp_avg_sq, wanted[number].exp_avg_sq, 1, what);
        EXPECT_TRUE(at::equal(found[number].gradient, wanted[number].gradient)) << what;
        if (!found[number].rounded.defined()) continue;
        EXPECT_TRUE(at::equal(found[number].rounded, found[number].value.to(at::kBFloat16)));
      }
    }
}

// Each form in turn: moments as codes, in bf16, in fp32; a value in fp32, with a copy, or in bf16.
std::vector<AdamWTensors> narrow_sample(int64_t count) {
  std::vector<AdamWTensors> all = adamw_sample(count, false);
  for (int64_t number = 0; number < count; ++number) {
    AdamWTensors& of = all[number];
    const int64_t numel = of.value.numel(), form = number % 5;
    const at::ScalarType moments = form < 2 ? at::kByte : form < 4 ? at::kBFloat16 : at::kFloat;
    of.exp_avg = at::zeros({numel}, moments);
    of.exp_avg_sq = at::zeros({numel}, moments);
    if (moments == at::kByte) {
      of.exp_avg_scale = at::zeros({(numel + kMomentBlock - 1) / kMomentBlock});
      of.exp_avg_sq_scale = at::zeros_like(of.exp_avg_scale);
    }
    if (form == 1 || form == 3 || form == 4) of.value = of.value.to(at::kBFloat16);
    if (form == 0) of.rounded = at::zeros({numel}, at::kBFloat16);
    of.draw_key = 99 + static_cast<uint64_t>(number);
    of.first_element = form == 2 ? (int64_t{1} << 32) - kMomentBlock : 0;
  }
  return all;
}

TEST(OwnAdamW, NarrowFormsFollowLibTorchs) {
  for (const int64_t count : {1, 5, 33, 70}) {
    const auto found = narrow_sample(count), wanted = narrow_sample(count);
    for (int64_t number = 1; number <= 3; ++number) {
      const AdamWStep step{
          .learning_rate = 0.01, .weight_decay = 0.1, .gradient_scale = 0.37, .step = number};
      own().adamw.update_narrow(found, step);
      aten().adamw.update_narrow(wanted, step);
    }
    for (int64_t number = 0; number < count; ++number) {
      const auto few = [&](const at::Tensor& left, const at::Tensor& right, double apart) {
        if (!left.defined()) return;
        const at::Tensor far = (left.to(at::kDouble) - right.to(at::kDouble)).abs().gt(apart);
        // A last bit in fp32 may turn a code or a draw.
        EXPECT_LE(far.sum().item<int64_t>(), left.numel() / 200) << number << " of " << count;
      };
      few(found[number].value, wanted[number].value, 1e-5);
      few(found[number].exp_avg, wanted[number].exp_avg, 1e-6);
      few(found[number].exp_avg_sq, wanted[number].exp_avg_sq, 1e-6);
      few(found[number].exp_avg_scale, wanted[number].exp_avg_scale, 1e-5);
      few(found[number].exp_avg_sq_scale, wanted[number].exp_avg_sq_scale, 1e-5);
      if (!found[number].rounded.defined()) continue;
      EXPECT_TRUE(at::equal(found[number].rounded, found[number].value.to(at::kBFloat16)));
    }
  }
}

TEST(OwnSumOfSquares, AddsAllTensorsAsTheCpuDoes) {
  for (const int64_t count : {1, 2, 161, 330}) {
    std::vector<at::Tensor> tensors;
    for (int64_t number = 0; number < count; ++number) {
      const int64_t size = number % 7 == 3 ? 0 : number == 1 ? 70'001 : 1 + number * 5;
      tensors.push_back(moved(sample({size}, kTypes[static_cast<size_t>(number / 3 % 2)], number),
                              number % 3 == 2 ? 1 : 0));
    }
    const auto found = own().sum_of_squares.sum(tensors);
    EXPECT_EQ(found.scalar_type(), at::kDouble);
    const double wanted = kSumOfSquaresCpu.sum(tensors).item<double>();
    EXPECT_NEAR(found.item<double>() / wanted, 1, 1e-12) << count;
    EXPECT_NEAR(aten().sum_of_squares.sum(tensors).item<double>() / wanted, 1, 1e-5) << count;
    tensors.back() = sample({9}, at::kFloat, 1).mul_(1e25f);
    EXPECT_TRUE(std::isfinite(own().sum_of_squares.sum(tensors).item<double>()));
    tensors.back().view({-1})[8] = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isinf(own().sum_of_squares.sum(tensors).item<double>()));
  }
  EXPECT_EQ(own().sum_of_squares.sum({at::zeros({0})}).item<double>(), 0);
}

}  // namespace
}  // namespace convoy::kernels
