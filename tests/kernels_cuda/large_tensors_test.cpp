// SPDX-License-Identifier: Apache-2.0
//
// Tests kernels on tensors of more than 2^32 elements. Only the block beyond that number runs, and
// only the last few elements of the tensor exist. An address without its upper bits would be in no
// allocation.
#include <gtest/gtest.h>

#include <cmath>

#include "convoy/model/kernels/adamw/adamw_launch.h"
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy_launch.h"
#include "convoy/model/kernels/cuda/block_shape.h"
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/dropout/dropout_launch.h"
#include "convoy/model/kernels/gated_activation/gated_activation_launch.h"
#include "convoy/model/kernels/rms_norm/rms_norm_launch.h"
#include "convoy/model/kernels/rope/rope_launch.h"
#include "fake_cuda/ptx_block.h"

namespace convoy::kernels {
namespace {

using testing::PtxAllocations;

// The last `count` numbers of a tensor, before which `before` numbers have no memory.
template <class Number>
class End {
 public:
  End(uint64_t before, size_t count, Number value, PtxAllocations& memory)
      : before_(before), numbers_(count, value) {
    memory[reinterpret_cast<uint64_t>(numbers_.data())] = count * sizeof(Number);
  }
  // The address that the tensor's first element would have.
  Number* begin() const {
    return reinterpret_cast<Number*>(reinterpret_cast<uint64_t>(numbers_.data()) -
                                     before_ * sizeof(Number));
  }
  const Number& operator[](size_t at) const { return numbers_[at]; }

 private:
  uint64_t before_;
  std::vector<Number> numbers_;
};

class LargeTensors : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernel_texts().empty()) GTEST_SKIP() << "built without clang++";
  }

  template <class Launch>
  void run_block(const char* kernel, uint64_t block, uint64_t num_blocks, const Launch& launch) {
    const auto entries = testing::read_ptx(nvidia::kernel_text_of(kernel_texts(), kernel),
                                           testing::PtxResults::WithinBounds);
    entries.at(kernel).run_block(static_cast<uint32_t>(block), static_cast<uint32_t>(num_blocks),
                                 gpu::kBlockThreads, &launch, memory_);
  }

  PtxAllocations memory_;
};

constexpr uint64_t kBefore = (uint64_t{1} << 33) + (uint64_t{1} << 18);

TEST_F(LargeTensors, OfDropout) {
  constexpr size_t kCount = gpu::kBlockThreads * 4;
  const End<float> x(kBefore, kCount, 1, memory_), y(kBefore, kCount, NAN, memory_);
  const gpu::DropoutLaunch launch = {
      .x = x.begin(),
      .y = y.begin(),
      .count = kBefore + kCount,
      .num_vectors = (kBefore + kCount) / 4,
      .rule = {.key_low = 3, .key_high = 5, .dropped_below = 1u << 31, .scale = 2}};
  run_block("dropout_fp32", kBefore / kCount, kBefore / kCount + 1, launch);
  for (size_t at = 0; at < kCount; ++at) {
    const uint32_t hash = drop_hash(launch.rule, static_cast<uint32_t>(kBefore + at), 2);
    EXPECT_EQ(y[at], hash < launch.rule.dropped_below ? 0.0f : 2.0f) << at;
  }
}

TEST_F(LargeTensors, OfGatedActivation) {
  constexpr size_t kCount = gpu::kBlockThreads * 4;
  const End<float> gate(kBefore, kCount, 1, memory_), up(kBefore, kCount, 3, memory_);
  const End<float> y(kBefore, kCount, NAN, memory_);
  run_block("gated_activation_fp32", kBefore / kCount, kBefore / kCount + 1,
            gpu::GatedActivationLaunch{.gate = gate.begin(),
                                       .up = up.begin(),
                                       .y = y.begin(),
                                       .count = kBefore + kCount,
                                       .num_vectors = (kBefore + kCount) / 4});
  for (size_t at = 0; at < kCount; ++at) EXPECT_NEAR(y[at], 3 / (1 + std::exp(-1.0)), 1e-5);
}

TEST_F(LargeTensors, OfRmsNorm) {
  constexpr size_t kWidth = 4096;
  constexpr uint64_t kRow = kBefore / kWidth;
  const End<float> x(kBefore, kWidth, 2, memory_), weight(0, kWidth, 3, memory_);
  const End<float> y(kBefore, kWidth, NAN, memory_), inverse(kRow, 1, NAN, memory_);
  const End<float> grad(kBefore, kWidth, 1, memory_), sums(0, kWidth, NAN, memory_);
  gpu::RmsNormLaunch launch = {.x = x.begin(),
                               .weight = weight.begin(),
                               .grad = grad.begin(),
                               .inverse_rms = inverse.begin(),
                               .result = y.begin(),
                               .rows = kRow + 1,
                               .width = kWidth,
                               .vectors = 1};
  run_block("rms_norm_fp32", kRow, kRow + 1, launch);
  EXPECT_FLOAT_EQ(inverse[0], 0.5f);
  for (size_t at = 0; at < kWidth; ++at) EXPECT_FLOAT_EQ(y[at], 3);
  run_block("rms_norm_backward_fp32", kRow, kRow + 1, launch);
  for (size_t at = 0; at < kWidth; ++at) EXPECT_NEAR(y[at], 0, 1e-5);

  // The last part has a single row, and its columns form tiles of 128.
  constexpr uint64_t kPart = kRow / gpu::kNormRowsPerPart, kTiles = kWidth / 128;
  static_assert(kRow % gpu::kNormRowsPerPart == 0);
  const End<float> parts(kPart * kWidth, kWidth, NAN, memory_);
  launch.sums = parts.begin();
  run_block("rms_norm_weight_gradient_fp32", kPart * kTiles, (kPart + 1) * kTiles, launch);
  for (size_t at = 0; at < 128; ++at) EXPECT_FLOAT_EQ(parts[at], 1);
}

TEST_F(LargeTensors, OfRope) {
  constexpr size_t kHeads = 8, kHalf = 128, kHeadFloats = 2 * kHalf;
  constexpr uint64_t kToken = kBefore / (kHeads * kHeadFloats);
  constexpr size_t kFloats = kHeads * kHeadFloats;
  static_assert(kFloats / 8 == gpu::kBlockThreads);
  const End<float> x(kBefore, kFloats, 1, memory_), y(kBefore, kFloats, NAN, memory_);
  const End<float> cos(0, kHalf, 0.5f, memory_), sin(0, kHalf, 0.25f, memory_);
  const End<int64_t> positions(kToken, 1, 0, memory_);
  run_block("rope_fp32", kToken, kToken + 1,
            gpu::RopeLaunch{.parts = {{.x = x.begin(),
                                       .y = y.begin(),
                                       .heads = kHeads,
                                       .token_stride = kFloats,
                                       .head_stride = kHeadFloats}},
                            .cos = cos.begin(),
                            .sin = sin.begin(),
                            .positions = positions.begin(),
                            .tokens = kToken + 1,
                            .half = kHalf,
                            .vectors = 1});
  for (size_t at = 0; at < kFloats; ++at)
    EXPECT_EQ(y[at], at % kHeadFloats < kHalf ? 0.25f : 0.75f) << at;
}

TEST_F(LargeTensors, OfTheLoss) {
  constexpr size_t kVocab = 151'936;
  constexpr uint64_t kRow = 60'000;
  const End<float> logits(kRow * kVocab, kVocab, 1, memory_), nll(kRow, 1, NAN, memory_);
  const End<int64_t> labels(kRow, 1, 7, memory_);
  run_block("cross_entropy_gradient_fp32", kRow, kRow + 1,
            gpu::CrossEntropyLaunch{.logits = logits.begin(),
                                    .labels = labels.begin(),
                                    .nll = nll.begin(),
                                    .rows = kRow + 1,
                                    .vocab = kVocab,
                                    .vectors = 1});
  EXPECT_NEAR(nll[0], std::log(static_cast<double>(kVocab)), 1e-4);
  for (const size_t at : {size_t{0}, kVocab - 1}) EXPECT_NEAR(logits[at] * kVocab, 1, 1e-4);
  EXPECT_NEAR(logits[7], -1, 1e-4);
}

TEST_F(LargeTensors, OfAdamW) {
  constexpr uint64_t kChunk = kBefore / gpu::kAdamWChunk;
  static_assert(kBefore % gpu::kAdamWChunk == 0);
  constexpr size_t kCount = 1003;
  const End<float> value(kBefore, kCount, 1, memory_), gradient(kBefore, kCount, 2, memory_);
  const End<float> mean(kBefore, kCount, 0, memory_), square(kBefore, kCount, 0, memory_);
  gpu::AdamWLaunch launch;
  launch.factors = {.beta1 = 0,
                    .one_minus_beta1 = 1,
                    .beta2 = 0,
                    .one_minus_beta2 = 1,
                    .keep = 1,
                    .step_size = 0.25f,
                    .root_bias_correction = 1,
                    .epsilon = 0,
                    .gradient_scale = 1};
  launch.num_parameters = 2;
  launch.first_chunk[1] = uint64_t{1} << 31;
  launch.first_chunk[2] = launch.first_chunk[1] + kChunk + 1;
  launch.parameters[1] = {.value = value.begin(),
                          .gradient = gradient.begin(),
                          .exp_avg = mean.begin(),
                          .exp_avg_sq = square.begin(),
                          .count = kBefore + kCount};
  run_block("adamw", launch.first_chunk[1] + kChunk, launch.first_chunk[2], launch);
  for (size_t at = 0; at < kCount; ++at) EXPECT_EQ(value[at], 0.75f) << at;
}

}  // namespace
}  // namespace convoy::kernels
