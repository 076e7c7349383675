// SPDX-License-Identifier: Apache-2.0
//
// The PTX interpreter finds faults that are planted in Convoy's kernels: a missing barrier, memory
// that ends too early, a vector at a wrong address, threads that do not meet.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <numeric>

#include "convoy/model/kernels/cross_entropy/linear_cross_entropy_launch.h"
#include "convoy/model/kernels/cuda/block_shape.h"
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/frozen_linear/coded_product_launch.h"
#include "convoy/model/kernels/paged_attention/paged_attention_launch.h"
#include "convoy/model/kernels/rms_norm/rms_norm_launch.h"
#include "fake_cuda/ptx_program.h"

namespace convoy::kernels {
namespace {

using testing::PtxAllocations;
using testing::PtxError;
using testing::PtxResults;

class PlantedFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernel_texts().empty()) GTEST_SKIP() << "built without clang++";
  }
};

template <class Launch>
void run(const std::string& text, const std::string& kernel, const Launch& launch,
         const PtxAllocations& memory) {
  const auto entries = testing::read_ptx(text, PtxResults::WithinBounds);
  entries.at(kernel).run(1, gpu::kBlockThreads, &launch, memory);
}

std::string text_of(const char* kernel) { return nvidia::kernel_text_of(kernel_texts(), kernel); }

// Returns the positions of the barriers in the text.
std::vector<size_t> barriers_of(const std::string& text) {
  std::vector<size_t> places;
  for (size_t at = text.find("bar.sync"); at != std::string::npos;
       at = text.find("bar.sync", at + 1))
    places.push_back(at);
  return places;
}

std::string without_barrier(std::string text, size_t place) {
  return text.erase(place, text.find(';', place) + 1 - place);
}

// Numbers that a kernel sees as GPU memory.
struct Numbers {
  explicit Numbers(size_t count) : values(count) { std::iota(values.begin(), values.end(), 1.0f); }
  void add_to(PtxAllocations& memory, size_t bytes_missing = 0) {
    memory[reinterpret_cast<uint64_t>(values.data())] =
        values.size() * sizeof(float) - bytes_missing;
  }
  std::vector<float> values;
};

// A norm of three rows, each computed by one block.
class NormOnHost {
 public:
  NormOnHost() {
    for (Numbers* numbers : {&x_, &weight_, &grad_, &inverse_, &result_, &sums_})
      numbers->add_to(memory);
  }
  gpu::RmsNormLaunch launch(bool vectors) {
    return {.x = x_.values.data(),
            .weight = weight_.values.data(),
            .grad = grad_.values.data(),
            .inverse_rms = inverse_.values.data(),
            .result = result_.values.data(),
            .sums = sums_.values.data(),
            .rows = 3,
            .width = kWidth,
            .vectors = vectors};
  }
  const Numbers& x() const { return x_; }
  PtxAllocations memory;

 private:
  static constexpr size_t kWidth = 2048;
  Numbers x_{3 * kWidth}, weight_{kWidth}, grad_{3 * kWidth}, inverse_{3}, result_{3 * kWidth},
      sums_{kWidth};
};

// Each kernel has one path with vectors and one without, and every barrier belongs to one of the
// paths.
TEST_F(PlantedFaults, EveryMissingBarrierOfTheNormIsFound) {
  NormOnHost norm;
  for (const char* kernel :
       {"rms_norm_fp32", "rms_norm_backward_fp32", "rms_norm_weight_gradient_fp32"}) {
    const std::string text = text_of(kernel);
    for (const bool vectors : {true, false})
      EXPECT_NO_THROW(run(text, kernel, norm.launch(vectors), norm.memory)) << kernel;
    ASSERT_GE(barriers_of(text).size(), 4U) << kernel;
    for (const size_t place : barriers_of(text)) {
      int faults = 0;
      for (const bool vectors : {true, false}) try {
          run(without_barrier(text, place), kernel, norm.launch(vectors), norm.memory);
        } catch (const PtxError&) {
          ++faults;
        }
      EXPECT_EQ(faults, 1) << kernel << " at " << place;
    }
  }
}

// Without the barrier, gradients in bf16 overwrite logits that another thread has not read yet.
TEST_F(PlantedFaults, AMissingBarrierOfTheGradientInPlaceIsFound) {
  constexpr size_t kVocab = 8192;
  const auto gradient = [&](const std::string& text) {
    Numbers logits(kVocab), nll(1);
    for (float& value : logits.values) value /= 1e3f;
    std::array<int64_t, 1> labels = {5};
    PtxAllocations memory = {{reinterpret_cast<uint64_t>(labels.data()), sizeof labels}};
    logits.add_to(memory);
    nll.add_to(memory);
    run(text, "cross_entropy_gradient_bf16",
        gpu::CrossEntropyLaunch{.logits = logits.values.data(),
                                .labels = labels.data(),
                                .nll = nll.values.data(),
                                .rows = 1,
                                .vocab = kVocab,
                                .vectors = 1},
        memory);
    logits.values.resize(kVocab / 2);
    return logits.values;
  };
  const std::string text = text_of("cross_entropy_gradient_bf16");
  const auto wanted = gradient(text);
  int harmless = 0;
  for (const size_t place : barriers_of(text)) try {
      const auto found = gradient(without_barrier(text, place));
      harmless += std::memcmp(found.data(), wanted.data(), found.size() * sizeof(float)) == 0;
    } catch (const PtxError&) {
    }
  // Two kinds of barriers are harmless in this run: the barriers of the path with single elements,
  // and the barrier after the row's sum, because the next row has other barriers before it.
  EXPECT_EQ(static_cast<size_t>(harmless), barriers_of(text).size() / 2 + 1);
}

// Rows of `keys` keys each, with the same keys in all rows, and 8 query heads over one kv head of
// 128 features in bf16.
class DecodeOnHost {
 public:
  DecodeOnHost(const std::string& kernel, uint32_t keys, uint32_t num_rows = 1, uint32_t blocks = 1)
      : kernel_(kernel),
        blocks_(blocks),
        keys_(keys),
        table_(keys / 32 + 1),
        pool_(size_t{keys / 32 + 1} * 32 * kFeatures),
        values_(pool_.size(), 0x3c00),
        q_(num_rows * kHeads * kFeatures, 0x3c00),
        out_(q_.size()),
        parts_(num_rows) {
    for (uint32_t row = 0; row < num_rows; ++row)
      rows_.push_back({static_cast<int32_t>(row), 0, static_cast<int32_t>(keys)});
    for (size_t place = 0; place < table_.size(); ++place)
      table_[place] = static_cast<int32_t>(table_.size() - 1 - place);
    for (size_t at = 0; at < pool_.size(); ++at)
      pool_[at] = static_cast<uint16_t>(0x3c00 + at % 97);
    partial_.resize(2 * kShares * kHeads * (kFeatures + 2));
    for (const auto& [data, bytes] : std::vector<std::pair<const void*, uint64_t>>{
             {table_.data(), table_.size() * sizeof(int32_t)},
             {rows_.data(), rows_.size() * sizeof(gpu::DecodeRow)},
             {pool_.data(), pool_.size() * sizeof(uint16_t)},
             {values_.data(), values_.size() * sizeof(uint16_t)},
             {q_.data(), q_.size() * sizeof(uint16_t)},
             {out_.data(), out_.size() * sizeof(uint16_t)},
             {partial_.data(), partial_.size() * sizeof(float)},
             {parts_.data(), parts_.size() * sizeof(gpu::HeadParts)}})
      memory_[reinterpret_cast<uint64_t>(data)] = bytes;
  }

  testing::PtxTraffic run(const std::string& text) { return run(text, kernel_); }
  testing::PtxTraffic run(const std::string& text, const std::string& kernel) {
    float* const tops = partial_.data() + 2 * kShares * kHeads * kFeatures;
    const gpu::PagedDecodeLaunch launch{.pool = {.keys = pool_.data(),
                                                 .values = values_.data(),
                                                 .block_tokens = 32,
                                                 .kv_heads = 1,
                                                 .head_dim = kFeatures},
                                        .q = q_.data(),
                                        .out = out_.data(),
                                        .partial_sums = partial_.data(),
                                        .partial_tops = tops,
                                        .partial_divisors = tops + 2 * kShares * kHeads,
                                        .parts = parts_.data(),
                                        .block_table = table_.data(),
                                        .rows = rows_.data(),
                                        .q_token_stride = kHeads * kFeatures,
                                        .q_head_stride = kFeatures,
                                        .num_rows = static_cast<uint32_t>(rows_.size()),
                                        .table_width = static_cast<uint32_t>(table_.size()),
                                        .heads = kHeads,
                                        .task_heads = kHeads,
                                        .shares = kShares,
                                        .scale_for_base_2 = 0.1f};
    const auto entries = testing::read_ptx(text, PtxResults::WithinBounds);
    return entries.at(kernel).measure(blocks_, gpu::kBlockThreads, &launch, memory_);
  }
  // The bytes of the keys and values that the row sees.
  uint64_t visible_bytes() const { return 2 * uint64_t{keys_} * kFeatures * sizeof(uint16_t); }

  uint64_t query_bytes() const {
    return uint64_t{kShares} * gpu::kBlockWarps * q_.size() * sizeof(uint16_t);
  }

  static constexpr uint32_t kShares = 3;

 private:
  static constexpr uint32_t kHeads = 8, kFeatures = 128;
  std::string kernel_;
  uint32_t blocks_;  // each block takes several shares in turn
  uint32_t keys_;
  std::vector<int32_t> table_;
  std::vector<gpu::DecodeRow> rows_;
  std::vector<uint16_t> pool_, values_, q_, out_;
  std::vector<float> partial_;
  std::vector<gpu::HeadParts> parts_;
  PtxAllocations memory_;
};

constexpr const char* kDecodeKernels[] = {"paged_decode_8_bf16", "paged_group_128_bf16"};

TEST_F(PlantedFaults, DecodingReadsEachKeyAndValueOnce) {
  for (const char* const kernel : kDecodeKernels) {
    DecodeOnHost decode(kernel, 1500);
    const testing::PtxTraffic split = decode.run(text_of(kernel));
    const testing::PtxTraffic join = decode.run(text_of("paged_join_bf16"), "paged_join_bf16");
    EXPECT_GE(split.read_bytes, decode.visible_bytes());
    // Queries are few bytes. Each warp of a share reads them, from a cache.
    const uint64_t others = split.read_bytes - decode.query_bytes() + join.read_bytes;
    EXPECT_LE(100 * others, 105 * decode.visible_bytes()) << kernel;
    EXPECT_LE(100 * (split.written_bytes + join.written_bytes), 5 * decode.visible_bytes())
        << kernel;
  }
}

TEST_F(PlantedFaults, EveryMissingBarrierOfDecodingIsFound) {
  for (const char* const kernel : kDecodeKernels) {
    const std::string text = text_of(kernel);
    // There are more rows than a block has threads: the second block begins beyond that number of
    // rows, and the first block has a second share.
    const auto run = [&](const std::string& of) { DecodeOnHost(kernel, 9, 800, 2).run(of); };
    EXPECT_NO_THROW(run(text));
    ASSERT_GE(barriers_of(text).size(), 3U);
    for (const size_t place : barriers_of(text))
      EXPECT_THROW(run(without_barrier(text, place)), PtxError) << kernel << place;
  }
}

// A product of few rows with codes. The outputs and the rows end within a tile, and the inputs end
// within a chunk.
class CodedProductOnHost {
 public:
  CodedProductOnHost(const std::string& form, uint32_t rows, uint32_t inputs = 37 * kGroup,
                     uint32_t outputs = 70)
      : form_(form),
        rows_(rows),
        inputs_(inputs),
        outputs_(outputs),
        codes_(form == "bytes" ? outputs * inputs : outputs * inputs / 2, 0x57),
        scales_(form == "bytes"    ? outputs * sizeof(float)
                : form == "nested" ? (outputs * inputs / kGroup + 3) / 4 * 4
                                   : outputs * inputs / kGroup * sizeof(float)),
        nested_(256 + outputs * inputs / kGroup / 256 + 2),
        x_(rows * inputs, 0x3c00),
        y_(rows * outputs_) {
    add(codes_);
    add(scales_);
    add(nested_);
    add(x_);
    add(y_);
  }

  // One block of threads computes all outputs in turn.
  testing::PtxTraffic run(const std::string& text, uint32_t tiles) {
    gpu::CodedProductLaunch launch{.x = x_.data(),
                                   .codes = codes_.data(),
                                   .scales = scales_.data(),
                                   .nested_absmax = nested_.data() + 257,
                                   .nested_offset = nested_.data() + 256,
                                   .nested_table = nested_.data(),
                                   .y = y_.data(),
                                   .inputs = inputs_,
                                   .outputs = outputs_,
                                   .rows = rows_,
                                   .group_bits = 5,
                                   .groups = inputs_ / kGroup,
                                   .output_warp_bits = kWarpBits};
    return testing::read_ptx(text, PtxResults::WithinBounds)
        .at(kernel(tiles))
        .measure(1, gpu::kBlockThreads, &launch, memory_);
  }
  testing::PtxTraffic run(uint32_t tiles) { return run(text_of(kernel(tiles).c_str()), tiles); }
  std::string kernel(uint32_t tiles) const {
    return "coded_product_" + form_ + "_" + std::to_string(tiles);
  }
  uint64_t weight_bytes() const { return codes_.size() + scales_.size(); }
  // The warps for a group of outputs read the rows once, from a cache.
  uint64_t x_bytes(uint32_t tiles) const {
    const uint32_t outputs = gpu::outputs_of_warp(tiles) << kWarpBits;
    const uint64_t times = (outputs_ + outputs - 1) / outputs << kWarpBits;
    return times * x_.size() * sizeof(uint16_t);
  }
  uint64_t y_bytes() const { return y_.size() * sizeof(uint16_t); }

  static constexpr uint32_t kGroup = 32;

 private:
  static constexpr uint32_t kWarpBits = 1;

  template <class Number>
  void add(const std::vector<Number>& numbers) {
    memory_[reinterpret_cast<uint64_t>(numbers.data())] = numbers.size() * sizeof(Number);
  }

  std::string form_;
  uint32_t rows_, inputs_, outputs_;
  std::vector<uint8_t> codes_, scales_;
  std::vector<float> nested_;  // a table, an offset, absmax
  std::vector<uint16_t> x_, y_;
  PtxAllocations memory_;
};

const std::array kCodedForms = {"bytes", "groups", "table", "nested"};

TEST_F(PlantedFaults, AProductOfFewRowsReadsEachCodeOnce) {
  for (const char* form : kCodedForms)
    for (const auto& [rows, tiles] :
         std::vector<std::pair<uint32_t, uint32_t>>{{1, 1}, {13, 2}, {30, 4}}) {
      CodedProductOnHost product(form, rows);
      const testing::PtxTraffic moved = product.run(tiles);
      const uint64_t of_weight = moved.read_bytes - product.x_bytes(tiles);
      EXPECT_GE(of_weight, product.weight_bytes()) << form;
      // 11 % more: a warp with too few outputs reads the last one again, every warp reads the
      // tables, and nested scales are read as whole words.
      EXPECT_LE(100 * of_weight, 111 * product.weight_bytes()) << form << " " << tiles;
      EXPECT_EQ(moved.written_bytes, product.y_bytes()) << form << " " << tiles;
    }
}

TEST_F(PlantedFaults, EveryMissingBarrierOfACodedProductIsFound) {
  for (const char* form : kCodedForms)
    for (const uint32_t tiles : {1, 4}) {
      CodedProductOnHost product(form, 5);
      const std::string text = text_of(product.kernel(tiles).c_str());
      ASSERT_GE(barriers_of(text).size(), 2U);
      for (const size_t place : barriers_of(text))
        EXPECT_THROW(product.run(without_barrier(text, place), tiles), PtxError)
            << form << " " << tiles << " at " << place;
    }
}

// min.u32 keeps an index within the outputs, rows or inputs, both in a warp's first copies and in
// later ones.
TEST_F(PlantedFaults, EveryMissingBoundOfACodedProductIsFound) {
  const std::string text = text_of("coded_product_groups_1");
  int bounds = 0;
  for (size_t at = text.find("min.u32"); at != std::string::npos;
       at = text.find("min.u32", at + 1)) {
    std::string unbound = text;
    const size_t end = text.find(';', at), last = text.rfind(',', end);
    unbound.erase(last, end - last).replace(at, 7, "mov.u32");
    int faults = 0;
    for (const uint32_t vectors : {5, 21, 37, 53})
      for (const uint32_t outputs : {5, 70}) try {
          CodedProductOnHost("groups", 5, vectors * CodedProductOnHost::kGroup, outputs)
              .run(unbound, 1);
        } catch (const PtxError&) {
          ++faults;
        }
    EXPECT_GE(faults, 1) << text.substr(at, end - at);
    ++bounds;
  }
  EXPECT_GE(bounds, 4);
}

TEST_F(PlantedFaults, AnAccessBeyondMemoryIsFound) {
  for (const bool vectors : {true, false}) {
    NormOnHost norm;
    norm.memory[reinterpret_cast<uint64_t>(norm.x().values.data())] -= 1;
    EXPECT_THROW(run(text_of("rms_norm_fp32"), "rms_norm_fp32", norm.launch(vectors), norm.memory),
                 PtxError);
  }
}

TEST_F(PlantedFaults, AVectorAtAWrongAddressIsFound) {
  NormOnHost norm;
  gpu::RmsNormLaunch launch = norm.launch(true);
  launch.x = norm.x().values.data() + 1;
  launch.rows = 1;
  EXPECT_THROW(run(text_of("rms_norm_fp32"), "rms_norm_fp32", launch, norm.memory), PtxError);
}

TEST_F(PlantedFaults, ApproximateOperationsAreKnownOnlyWhereTheyAreAllowed) {
  for (const std::string_view text : kernel_texts())
    EXPECT_NO_THROW(testing::read_ptx(std::string(text), PtxResults::WithinBounds));
  EXPECT_THROW(testing::read_ptx(text_of("gated_activation_fp32"), PtxResults::Exact), PtxError);
}

std::string program(const std::string& body) {
  return ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry f(\n.param .b8 "
         "f_param_0[8]\n)\n{\n" +
         body + "\n}\n";
}

TEST_F(PlantedFaults, ThreadsThatDoNotMeetAreFound) {
  const uint64_t none = 0;
  const auto says = [&](const std::string& body) -> std::string {
    try {
      run(program(body), "f", none, {});
    } catch (const PtxError& error) {
      return error.what();
    }
    return "";
  };
  const std::string lane = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 5;\n";
  EXPECT_EQ(says(lane + "bar.sync 0;\nret;"), "");
  EXPECT_NE(says(lane + "@%p1 bra END;\nbar.sync 0;\nEND:\nret;").find("do not meet"),
            std::string::npos);
  EXPECT_EQ(says(lane + "shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;\nret;"), "");
  EXPECT_NE(says(lane + "@%p1 bra END;\nshfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;\nEND:\nret;")
                .find("do not meet"),
            std::string::npos);
  EXPECT_NE(
      says(lane + "shfl.sync.bfly.b32 %r2, %r1, 16, 31, 255;\nret;").find("all threads of a warp"),
      std::string::npos);
  const std::string shared = ".shared .align 4 .b8 s[4];\n" + lane;
  EXPECT_NE(says(shared + "ld.shared.u32 %r2, [s];\nret;").find("before it is written"),
            std::string::npos);
  EXPECT_NE(says(shared + "st.shared.u32 [s], %r1;\nret;").find("no barrier between"),
            std::string::npos);
  EXPECT_NE(says(shared + "@%p1 st.shared.u32 [s+4], %r1;\nret;").find("not of shared memory"),
            std::string::npos);
  EXPECT_EQ(
      says(shared + "@%p1 st.shared.u32 [s], %r1;\nbar.sync 0;\nld.shared.u32 %r2, [s];\nret;"),
      "");
}

// A thread that has waited for the older of two groups of copies may not read the bytes of the
// newer group.
TEST_F(PlantedFaults, CopiesThatAThreadDoesNotWaitForAreFound) {
  const std::vector<uint32_t> numbers = {7, 8};
  const auto* const from = numbers.data();
  PtxAllocations memory{{reinterpret_cast<uint64_t>(from), 2 * sizeof(uint32_t)}};
  const auto says = [&](const std::string& waits, const char* read) -> std::string {
    const std::string body =
        ".shared .align 4 .b8 s[8];\nmov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 5;\n@%p1 bra "
        "END;\n"
        "ld.param.u64 %rd1, [f_param_0];\nadd.s64 %rd2, %rd1, 4;\nmov.u32 %r2, s;\n"
        "add.s32 %r3, %r2, 4;\ncp.async.ca.shared.global [%r2], [%rd1], 4;\n"
        "cp.async.commit_group;\ncp.async.ca.shared.global [%r3], [%rd2], 4;\n"
        "cp.async.commit_group;\n" +
        waits + "ld.shared.u32 %r4, " + read + ";\nst.global.u32 [%rd1], %r4;\nEND:\nret;";
    try {
      run(program(body), "f", from, memory);
    } catch (const PtxError& error) {
      return error.what();
    }
    return "";
  };
  const std::string early = "is read before it is written";
  EXPECT_NE(says("", "[s]").find(early), std::string::npos);
  EXPECT_NE(says("cp.async.wait_group 1;\n", "[s+4]").find(early), std::string::npos);
  EXPECT_EQ(says("cp.async.wait_group 1;\n", "[s]"), "");
  EXPECT_EQ(numbers[0], 7U);
  EXPECT_EQ(says("cp.async.wait_group 0;\n", "[s+4]"), "");
  EXPECT_EQ(numbers[0], 8U);
  memory.begin()->second = sizeof(uint32_t);
  EXPECT_NE(says("cp.async.wait_group 0;\n", "[s]").find("not of any allocation"),
            std::string::npos);
}

// The product waits for the copies whose bytes it reads next.
TEST_F(PlantedFaults, EveryMissingWaitOfACodedProductIsFound) {
  for (const char* form : kCodedForms)
    for (const uint32_t tiles : {1, 4}) {
      CodedProductOnHost product(form, 5);
      std::string text = text_of(product.kernel(tiles).c_str());
      const size_t at = text.find("cp.async.wait_group");
      ASSERT_NE(at, std::string::npos);
      text.replace(at, text.find(';', at) - at, "cp.async.wait_group 9");
      EXPECT_THROW(product.run(text, tiles), PtxError) << form << " " << tiles;
    }
}

}  // namespace
}  // namespace convoy::kernels
