// SPDX-License-Identifier: Apache-2.0
//
// y = x W^T + bias of few rows in bf16, where W is codes: each is read from memory once for up to
// 32 rows and becomes bf16 in registers, on its way to the matrix units (mma.sync, fp32 sums). A
// thread loads 16 bytes of codes of one output: neighbouring inputs, of one scale. The units add
// products over k in any order, so a thread's k are the inputs of its own codes, for W and for x,
// and nothing is exchanged between threads. Reference: frozen_linear_aten.cpp.
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"
#include "convoy/model/kernels/frozen_linear/coded_product_launch.h"

namespace convoy::kernels::gpu {
namespace {

constexpr int kOutputTiles = kWarpOutputs / 16;

CONVOY_SHARED float number_table[16];
CONVOY_SHARED float absmax_table[256];

CONVOY_DEVICE uint32_t bf16_pair(float lower, float upper) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(upper), "f"(lower));
  return both;
}

// a * b + c of two bf16 at once, each rounded once.
CONVOY_DEVICE uint32_t multiply_add_pair(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t both;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(a), "r"(b), "r"(c));
  return both;
}

CONVOY_DEVICE uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Sums of 16 outputs and 8 rows, 16 inputs more.
CONVOY_DEVICE void multiply_add_tile(float (&sums)[4], const uint32_t (&w)[4], uint32_t x_low,
                                     uint32_t x_high) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(x_low), "r"(x_high));
}

CONVOY_DEVICE void load_vector(const void* from, uint32_t vector, uint32_t (&words)[4]) {
  load_words<Words4>(static_cast<const Words4*>(from) + vector, words);
}

// The forms of codes. Each is what a thread holds of one output: a vector of 16 bytes, which are
// kInputs codes; an output has launch.inputs / kInputs of them, one after another. read() asks for
// them, open() waits for what all pairs need, pair(n) is the values 2n and 2n + 1 in bf16, all 0
// unless `is_real`; sums are multiplied by factor().
struct ByteCodes {
  static constexpr int kInputs = 16;
  uint32_t words[4];

  CONVOY_DEVICE static void prepare(const CodedProductLaunch&) {}
  CONVOY_DEVICE void read(const CodedProductLaunch& launch, uint32_t output, uint32_t vector) {
    load_vector(launch.codes, output * (launch.inputs / kInputs) + vector, words);
  }
  CONVOY_DEVICE void open(const CodedProductLaunch&, bool is_real) {
#pragma unroll
    for (uint32_t& word : words) word = is_real ? word : 0;
  }
  CONVOY_DEVICE uint32_t pair(int number) const {
    const uint32_t both = words[number / 2] >> number % 2 * 16;
    return bf16_pair(whole_number(both & 0xff), whole_number(both >> 8 & 0xff));
  }
  CONVOY_DEVICE static float factor(const CodedProductLaunch& launch, uint32_t output) {
    return static_cast<const float*>(launch.scales)[output] * launch.step;
  }
};

// Codes 0 to 15 stand for -8 to 7; in a word of eight, the two of a pair lie 16 bits apart.
struct GroupCodes {
  static constexpr int kInputs = 32;
  uint32_t words[4];
  uint32_t scale, offset;  // twice each; before open() `scale` holds both

  CONVOY_DEVICE static void prepare(const CodedProductLaunch&) {}
  CONVOY_DEVICE void read(const CodedProductLaunch& launch, uint32_t output, uint32_t vector) {
    load_vector(launch.codes, output * (launch.inputs / kInputs) + vector, words);
    scale = static_cast<const uint32_t*>(
        launch.scales)[output * launch.groups + (vector * kInputs >> launch.group_bits)];
  }
  CONVOY_DEVICE void open(const CodedProductLaunch&, bool is_real) {
    const uint32_t both = is_real ? scale : 0;
    scale = (both & 0xffffu) | both << 16;
    offset = (both & 0xffff0000u) | both >> 16;
  }
  CONVOY_DEVICE uint32_t pair(int number) const {
    constexpr uint32_t k128 = 0x43004300u, kMinus136 = 0xc308c308u, k1 = 0x3f803f80u;
    const uint32_t raised = (words[number / 4] >> number % 4 * 4 & 0x000f000fu) | k128;
    return multiply_add_pair(multiply_add_pair(raised, k1, kMinus136), scale, offset);
  }
  CONVOY_DEVICE static float factor(const CodedProductLaunch&, uint32_t) { return 1; }
};

// The even input of a byte is its upper half.
struct TableCodes {
  static constexpr int kInputs = 32;
  uint32_t words[4];
  float absmax;

  CONVOY_DEVICE static void prepare(const CodedProductLaunch& launch) {
    if (thread_of_block() == 0)
      for (int code = 0; code < 16; ++code) number_table[code] = launch.table[code];
    wait_for_block();
  }
  CONVOY_DEVICE uint32_t read_words(const CodedProductLaunch& launch, uint32_t output,
                                    uint32_t vector) {
    constexpr int kVectorBits = 5;
    const uint32_t of_all = output * (launch.inputs / kInputs) + vector;
    load_vector(launch.codes, of_all, words);
    return of_all >> (launch.group_bits - kVectorBits);  // the block
  }
  CONVOY_DEVICE void read(const CodedProductLaunch& launch, uint32_t output, uint32_t vector) {
    absmax = static_cast<const float*>(launch.scales)[read_words(launch, output, vector)];
  }
  CONVOY_DEVICE void open(const CodedProductLaunch&, bool is_real) {
    absmax = is_real ? absmax : 0;
  }
  CONVOY_DEVICE uint32_t pair(int number) const {
    const uint32_t byte = words[number / 4] >> number % 4 * 8;
    return bf16_pair(number_table[byte >> 4 & 15] * absmax, number_table[byte & 15] * absmax);
  }
  CONVOY_DEVICE static float factor(const CodedProductLaunch&, uint32_t) { return 1; }
};

struct NestedCodes : TableCodes {
  uint32_t absmax_code;  // of the block; before open() `absmax` is that of the nested block

  CONVOY_DEVICE static void prepare(const CodedProductLaunch& launch) {
    absmax_table[thread_of_block()] = launch.nested_table[thread_of_block()];
    TableCodes::prepare(launch);
  }
  CONVOY_DEVICE void read(const CodedProductLaunch& launch, uint32_t output, uint32_t vector) {
    constexpr int kNestedBits = 8;
    const uint32_t block = read_words(launch, output, vector);
    absmax_code = static_cast<const uint8_t*>(launch.scales)[block];
    absmax = launch.nested_absmax[block >> kNestedBits];
  }
  CONVOY_DEVICE void open(const CodedProductLaunch& launch, bool is_real) {
    absmax = is_real ? absmax_table[absmax_code] * absmax + *launch.nested_offset : 0;
  }
};

// One warp's sums over a part of the inputs, of kWarpOutputs outputs and kRowTiles * 8 rows. Of
// each tile lane l holds the outputs l / 4 and 8 more, the rows l % 4 * 2 and one more.
template <class Codes, int kRowTiles>
struct WarpProduct {
  struct Pieces {
    Codes of[kOutputTiles][2];
  };
  const CodedProductLaunch& launch;
  uint32_t first_output, first_row, lane;
  float sums[kOutputTiles][kRowTiles][4];

  // The lane's vector of the four that a warp takes at once, and the one that it reads.
  CONVOY_DEVICE uint32_t wanted_vector(uint32_t chunk) const { return 4 * chunk + lane % 4; }
  CONVOY_DEVICE uint32_t vector_of(uint32_t chunk) const {
    return smaller(wanted_vector(chunk), launch.inputs / Codes::kInputs - 1);
  }

  // Beyond the last output, row or vector the last ones are read again: sums of such outputs and
  // rows are dropped, weights of such vectors are 0.
  CONVOY_DEVICE void read(uint32_t chunk, Pieces& pieces) const {
#pragma unroll
    for (int tile = 0; tile < kOutputTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        pieces.of[tile][half].read(
            launch, smaller(first_output + tile * 16 + half * 8 + lane / 4, launch.outputs - 1),
            vector_of(chunk));
    }
  }

  // 8 inputs of each of the rows.
  CONVOY_DEVICE void read_x(uint32_t eight, uint32_t (&x)[kRowTiles][4]) const {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      const uint32_t row = smaller(first_row + tile * kTileRows + lane / 4, launch.rows - 1);
      load_vector(launch.x, row * (launch.inputs / 8) + eight, x[tile]);
    }
  }

  CONVOY_DEVICE void multiply(uint32_t chunk, Pieces& pieces) {
    const uint32_t vector = vector_of(chunk);
#pragma unroll
    for (int tile = 0; tile < kOutputTiles; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        pieces.of[tile][half].open(launch, vector == wanted_vector(chunk));
#pragma unroll
    for (int eight = 0; eight < Codes::kInputs / 8; ++eight) {
      uint32_t x[kRowTiles][4];
      read_x(vector * (Codes::kInputs / 8) + eight, x);
#pragma unroll
      for (int tile = 0; tile < kOutputTiles; ++tile) {
        const Codes &upper = pieces.of[tile][0], &lower = pieces.of[tile][1];
#pragma unroll
        for (int four = 0; four < 2; ++four) {
          const int pair = eight * 4 + four * 2;
          const uint32_t w[4] = {upper.pair(pair), lower.pair(pair), upper.pair(pair + 1),
                                 lower.pair(pair + 1)};
#pragma unroll
          for (int rows = 0; rows < kRowTiles; ++rows)
            multiply_add_tile(sums[tile][rows], w, x[rows][four * 2], x[rows][four * 2 + 1]);
        }
      }
    }
  }
};

// The outputs of one block of threads for the rows of one pass.
template <class Codes, int kRowTiles>
CONVOY_DEVICE void multiply_outputs(const CodedProductLaunch& launch, uint32_t block,
                                    uint32_t pass) {
  constexpr uint32_t kOutputWarps = outputs_of_block(kRowTiles) / kWarpOutputs;
  constexpr uint32_t kInputWarps = kBlockWarps / kOutputWarps;
  constexpr int kSums = kOutputTiles * kRowTiles * 4;
  // The next codes are under way while these are multiplied, where registers are left for them.
  constexpr bool kReadsAhead = kRowTiles < 4;
  CONVOY_SHARED float parts[kBlockWarps][kSums][kWarpThreads];
  const uint32_t warp = thread_of_block() / kWarpThreads, lane = thread_of_block() % kWarpThreads;

  using Product = WarpProduct<Codes, kRowTiles>;
  Product own = {.launch = launch,
                 .first_output = (block * kOutputWarps + warp % kOutputWarps) * kWarpOutputs,
                 .first_row = pass * kRowTiles * kTileRows,
                 .lane = lane,
                 .sums = {}};
  const uint32_t chunks = (launch.inputs / Codes::kInputs + 3) / 4;
  typename Product::Pieces next;
  uint32_t chunk = warp / kOutputWarps;
  if (kReadsAhead && chunk < chunks) own.read(chunk, next);
  for (; chunk < chunks; chunk += kInputWarps) {
    if (!kReadsAhead) own.read(chunk, next);
    typename Product::Pieces pieces = next;
    if (kReadsAhead && chunk + kInputWarps < chunks) own.read(chunk + kInputWarps, next);
    own.multiply(chunk, pieces);
  }
#pragma unroll
  for (int at = 0; at < kSums; ++at)
    parts[warp][at][lane] = own.sums[at / 4 / kRowTiles][at / 4 % kRowTiles][at % 4];
  wait_for_block();
  for (uint32_t at = warp; at < kOutputWarps * kSums; at += kBlockWarps) {
    const uint32_t of_warp = at / kSums, place = at % kSums;
    float sum[1] = {0};
    for (uint32_t part = 0; part < kInputWarps; ++part)
      sum[0] += parts[part * kOutputWarps + of_warp][place][lane];
    const uint32_t output = (block * kOutputWarps + of_warp) * kWarpOutputs +
                            place / 4 / kRowTiles * 16 + place % 4 / 2 * 8 + lane / 4;
    const uint32_t row =
        own.first_row + place / 4 % kRowTiles * kTileRows + lane % 4 * 2 + place % 2;
    if (output >= launch.outputs || row >= launch.rows) continue;
    sum[0] *= Codes::factor(launch, output);
    if (launch.bias != nullptr) {
      float bias[1];
      load(static_cast<const Bf16*>(launch.bias) + output, bias);
      sum[0] += bias[0];
    }
    store(static_cast<Bf16*>(launch.y) + uint64_t{row} * launch.outputs + output, sum);
  }
  wait_for_block();  // shared memory is free for the next outputs
}

template <class Codes, int kRowTiles>
CONVOY_DEVICE void multiply_codes(const CodedProductLaunch& launch) {
  Codes::prepare(launch);
  constexpr uint32_t kOutputs = outputs_of_block(kRowTiles);
  const uint32_t passes = passes_over_codes(launch.rows, kRowTiles);
  const uint32_t tasks = (launch.outputs + kOutputs - 1) / kOutputs * passes;
  // Passes over the same codes run beside each other: the second one may find them in the cache.
  for (uint32_t task = nvidia::block_number(); task < tasks; task += nvidia::num_blocks())
    multiply_outputs<Codes, kRowTiles>(launch, task / passes, task % passes);
}

}  // namespace

// Two blocks on a multiprocessor: then there are enough loads under way.
#define CONVOY_CODED_PRODUCT(name, Codes, row_tiles)                                        \
  CONVOY_KERNEL                                                                             \
  __attribute__((launch_bounds(kBlockThreads, 2))) void coded_product_##name##_##row_tiles( \
      const CodedProductLaunch launch) {                                                    \
    multiply_codes<Codes, row_tiles>(launch);                                               \
  }
CONVOY_CODED_PRODUCT(bytes, ByteCodes, 1)
CONVOY_CODED_PRODUCT(bytes, ByteCodes, 2)
CONVOY_CODED_PRODUCT(bytes, ByteCodes, 4)
CONVOY_CODED_PRODUCT(groups, GroupCodes, 1)
CONVOY_CODED_PRODUCT(groups, GroupCodes, 2)
CONVOY_CODED_PRODUCT(groups, GroupCodes, 4)
CONVOY_CODED_PRODUCT(table, TableCodes, 1)
CONVOY_CODED_PRODUCT(table, TableCodes, 2)
CONVOY_CODED_PRODUCT(table, TableCodes, 4)
CONVOY_CODED_PRODUCT(nested, NestedCodes, 1)
CONVOY_CODED_PRODUCT(nested, NestedCodes, 2)
CONVOY_CODED_PRODUCT(nested, NestedCodes, 4)
#undef CONVOY_CODED_PRODUCT

}  // namespace convoy::kernels::gpu
