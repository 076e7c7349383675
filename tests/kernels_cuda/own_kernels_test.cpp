// SPDX-License-Identifier: Apache-2.0
//
// Compares Convoy's CUDA kernels with LibTorch, on shapes for each of their paths: rows of a warp
// and of a block, vectors and single elements, remainders, and empty tensors. Every access is
// checked to the byte.
#include "kernels_cuda/own_kernels_test.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/cuda/launch.h"

namespace convoy::kernels {
namespace {

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

// This test precedes the others, so that the first launches come at the same time.
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

TEST(OwnRope, IsThatOfLibTorch) {
  for (const at::ScalarType type : kTypes)
    for (const auto& [tokens, heads, half] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {5, 3, 4}, {7, 2, 5}, {9, 4, 32}, {3, 28, 64}, {0, 2, 8}})
      for (const bool transposed : {false, true}) {
        const std::string what = fmt::format("{} x {} x {}", tokens, heads, 2 * half);
        at::Tensor x = sample({tokens, heads, 2 * half}, type, 1);
        // x may be columns of a wider product, as q, k and v are.
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

// Gate and up are columns of one product. In bf16, a row of 1,100 numbers does not fill whole
// vectors.
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

TEST(OwnDropout, DropsWhatEveryDeviceDrops) {
  const DropRule rule{.key_low = 7, .key_high = 9, .dropped_below = 1u << 30, .scale = 4.0f / 3};
  for (const at::ScalarType type : kTypes)
    for (const int64_t count : {0, 1, 8, 30'001})
      for (const int64_t offset : {0, 1}) {
        const at::Tensor x = moved(sample({count}, type, 1), offset);
        EXPECT_TRUE(at::equal(own().dropout.drop(x, rule), aten().dropout.drop(x, rule))) << count;
      }
}

TEST(OwnScale, RoundsAsLibTorchDoes) {
  std::mt19937 random(5);
  at::Tensor bits = at::empty({70'001}, at::kInt);
  for (int64_t at = 0; at < bits.numel(); ++at)
    bits.mutable_data_ptr<int>()[at] = static_cast<int>(random());
  // Ties, infinity, NaN whose rounding would overflow, numbers that round to infinity, and the
  // smallest numbers.
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

}  // namespace
}  // namespace convoy::kernels
