// SPDX-License-Identifier: Apache-2.0
//
// y = x W^T + bias of few rows in bf16, where W is codes: each is read from memory once for up to
// 32 rows and becomes bf16 in registers, on its way to the matrix units (mma.sync, fp32 sums). A
// thread takes 16 bytes of one output: neighbouring inputs, of one scale. The units add products
// over k in any order, so a thread's k are the inputs of its own codes, for W and for x, and
// nothing is exchanged between threads.
//
// Memory answers after about a microsecond, so a multiprocessor needs some 50 KB under way. Each
// warp has a ring of 4 KB in shared memory, which cp.async fills: a thread copies what it will read
// itself, so it waits for its own copies alone. The ring goes on from the outputs of one task to
// the outputs of the next task, also while warps join their sums. Reference:
// frozen_linear_aten.cpp.
#include "convoy/model/kernels/cuda/matrix_units.cuh"
#include "convoy/model/kernels/frozen_linear/coded_product_launch.h"

namespace convoy::kernels::gpu {
namespace {

CONVOY_SHARED float number_table[16];
CONVOY_SHARED float absmax_table[256];

// a * b + c of two bf16 at once, each result rounded once.
CONVOY_DEVICE uint32_t multiply_add_pair(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t both;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(a), "r"(b), "r"(c));
  return both;
}

// word & mask | more in one instruction. A compiler makes one instruction of the C++ only if at
// most one operand is a constant.
CONVOY_DEVICE uint32_t bits_of(uint32_t word, uint32_t mask, uint32_t more) {
  uint32_t bits;
  asm("lop3.b32 %0, %1, %2, %3, 234;" : "=r"(bits) : "r"(word), "r"(mask), "r"(more));
  return bits;
}

CONVOY_DEVICE uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

template <class Place>
CONVOY_DEVICE uint32_t shared_address(const Place* place) {
  using Shared = __attribute__((address_space(3))) const Place;
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>((Shared*)place));
}

// Asynchronous copies. Copies that a thread starts before end_copies() form a group. After
// wait_for_copies<n>() all groups but the newest n have arrived.
CONVOY_DEVICE void copy_vector(Words4* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
CONVOY_DEVICE void copy_word(uint32_t* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
CONVOY_DEVICE void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kUnderWay>
CONVOY_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kUnderWay) : "memory");
}

CONVOY_DEVICE void load_vector(const void* from, uint32_t vector, uint32_t (&words)[4]) {
  load_words<Words4>(static_cast<const Words4*>(from) + vector, words);
}

// Moves the words behind the first kCount to the front.
template <int kCount>
CONVOY_DEVICE void skip_words(uint32_t (&words)[4]) {
#pragma unroll
  for (int at = 0; at + kCount < 4; ++at) words[at] = words[at + kCount];
}

// A thread's vector of 16 bytes, which holds kInputs codes of one output. The vectors of an output,
// launch.inputs / kInputs in number, follow one another.
struct Place {
  uint32_t output, vector;
  uint32_t of_all;  // index among the vectors of all outputs
};

// The forms of codes. Each form holds a thread's part of one output: the words of a vector and, if
// kScales, the word at scale_place(). open() prepares them for all pairs. pair(n) returns the
// values 2n and 2n + 1 of the next eight inputs in bf16, in the order in which arrange() puts the
// inputs of x. Sums are multiplied by factor().
struct CodedVector {
  static constexpr int kScales = 0;
  uint32_t words[4];

  CONVOY_DEVICE static void prepare(const CodedProductLaunch&) {}
  CONVOY_DEVICE void open(const CodedProductLaunch&, const Place&) {}
  CONVOY_DEVICE static void arrange(uint32_t (&)[4]) {}
  CONVOY_DEVICE static float factor(const CodedProductLaunch&, uint32_t) { return 1; }
};

// A pair is two bytes of a word that lie 16 bits apart. In bf16, 128 + b is 0x4300 | b for the low
// seven bits b. The number to subtract, 128 or 256 by the sign, is 0x4300 | sign.
struct ByteCodes : CodedVector {
  static constexpr int kInputs = 16;

  CONVOY_DEVICE static void arrange(uint32_t (&x)[4]) {
#pragma unroll
    for (int four = 0; four < 4; four += 2) {
      const uint32_t low = x[four], high = x[four + 1];
      x[four] = __nvvm_prmt(low, high, 0x5410);
      x[four + 1] = __nvvm_prmt(low, high, 0x7632);
    }
  }
  CONVOY_DEVICE uint32_t pair(int number) const {
    constexpr uint32_t k128 = 0x43004300u, kMinus128 = 0xc300c300u, k1 = 0x3f803f80u;
    const uint32_t bytes = words[number / 2] >> number % 2 * 8;
    return multiply_add_pair(bits_of(bytes, 0x007f007fu, k128), k1,
                             bits_of(bytes, 0x00800080u, kMinus128));
  }
  CONVOY_DEVICE static float factor(const CodedProductLaunch& launch, uint32_t output) {
    return static_cast<const float*>(launch.scales)[output] * launch.step;
  }
};

// Codes 0 to 15 stand for -8 to 7. In a word of eight codes, the two codes of a pair lie 16 bits
// apart.
struct GroupCodes : CodedVector {
  static constexpr int kInputs = 32;
  static constexpr int kScales = 1;
  uint32_t scale, offset;  // each twice in a word; before open() `scale` holds both

  CONVOY_DEVICE static const void* scale_place(const CodedProductLaunch& launch,
                                               const Place& place) {
    return static_cast<const uint32_t*>(launch.scales) + place.output * launch.groups +
           (place.vector * kInputs >> launch.group_bits);
  }
  CONVOY_DEVICE void open(const CodedProductLaunch&, const Place&) {
    offset = __nvvm_prmt(scale, scale, 0x3232);
    scale = __nvvm_prmt(scale, scale, 0x1010);
  }
  CONVOY_DEVICE uint32_t pair(int number) const {
    constexpr uint32_t k128 = 0x43004300u, kMinus136 = 0xc308c308u, k1 = 0x3f803f80u;
    const uint32_t raised = bits_of(words[0] >> number * 4, 0x000f000fu, k128);
    return multiply_add_pair(multiply_add_pair(raised, k1, kMinus136), scale, offset);
  }
};

// The even input has the upper half of its byte.
struct TableCodes : CodedVector {
  static constexpr int kInputs = 32;
  static constexpr int kScales = 1;
  uint32_t scale;
  float absmax;

  CONVOY_DEVICE static void prepare(const CodedProductLaunch& launch) {
    if (thread_of_block() == 0)
      for (int code = 0; code < 16; ++code) number_table[code] = launch.table[code];
    wait_for_block();
  }
  CONVOY_DEVICE static uint32_t block_of(const CodedProductLaunch& launch, const Place& place) {
    constexpr int kVectorBits = 5;
    return place.of_all >> (launch.group_bits - kVectorBits);
  }
  CONVOY_DEVICE static const void* scale_place(const CodedProductLaunch& launch,
                                               const Place& place) {
    return static_cast<const float*>(launch.scales) + block_of(launch, place);
  }
  CONVOY_DEVICE void open(const CodedProductLaunch&, const Place&) { absmax = as_float(scale); }
  CONVOY_DEVICE uint32_t pair(int number) const {
    const uint32_t byte = words[0] >> number * 8;
    return bf16_pair(number_table[byte >> 4 & 15] * absmax, number_table[byte & 15] * absmax);
  }
};

// Before open() `scale` is the absmax codes of four blocks. The absmax of nested blocks, one for
// thousands of codes, is in a cache.
struct NestedCodes : TableCodes {
  CONVOY_DEVICE static void prepare(const CodedProductLaunch& launch) {
    absmax_table[thread_of_block()] = launch.nested_table[thread_of_block()];
    TableCodes::prepare(launch);
  }
  CONVOY_DEVICE static const void* scale_place(const CodedProductLaunch& launch,
                                               const Place& place) {
    return static_cast<const uint32_t*>(launch.scales) + block_of(launch, place) / 4;
  }
  CONVOY_DEVICE void open(const CodedProductLaunch& launch, const Place& place) {
    constexpr int kNestedBits = 8;
    const uint32_t block = block_of(launch, place);
    absmax =
        absmax_table[scale >> block % 4 * 8 & 0xff] * launch.nested_absmax[block >> kNestedBits] +
        *launch.nested_offset;
  }
};

// A warp's codes whose copies are under way: a lane reads only vectors that it copied itself.
template <class Codes, int kRowTiles>
struct Ring {
  static constexpr int kPieces = 2 * output_tiles_of(kRowTiles);
  static constexpr int kSlots = 8 / kPieces;
  Words4 vectors[kSlots][kPieces][kWarpThreads];
  uint32_t scales[kSlots * Codes::kScales][kPieces][kWarpThreads];
};

// One warp's sums over a part of the inputs, for its outputs and kRowTiles * 8 rows. Lane l holds
// the outputs l / 4 and l / 4 + 8 of each tile, and the rows l % 4 * 2 and l % 4 * 2 + 1.
template <class Codes, int kRowTiles>
class WarpProduct {
 public:
  static constexpr int kOutputTiles = output_tiles_of(kRowTiles);
  static constexpr uint32_t kSums = kOutputTiles * kRowTiles * 4;
  static constexpr int kEights = Codes::kInputs / 8;  // inputs of a vector
  using OwnRing = Ring<Codes, kRowTiles>;

  // Starts the copies of the first steps.
  CONVOY_DEVICE WarpProduct(const CodedProductLaunch& launch, OwnRing& ring)
      : launch_(launch),
        ring_(ring),
        lane_(thread_of_block() % kWarpThreads),
        output_warp_(thread_of_block() / kWarpThreads & ((1u << launch.output_warp_bits) - 1)),
        input_warp_(thread_of_block() / kWarpThreads >> launch.output_warp_bits),
        input_warps_(kBlockWarps >> launch.output_warp_bits),
        chunks_((launch.inputs / Codes::kInputs + 3) / 4),
        tasks_(num_tasks(launch)),
        ahead_task_(input_warp_ < chunks_ ? nvidia::block_number() : tasks_),
        ahead_chunk_(input_warp_) {
#pragma unroll
    for (int slot = 0; slot < OwnRing::kSlots; ++slot) copy_next(slot);
  }

  // A task has the outputs of a block and all rows of a pass.
  CONVOY_DEVICE static uint32_t num_tasks(const CodedProductLaunch& launch) {
    const uint32_t warps =
        (launch.outputs + outputs_of_warp(kRowTiles) - 1) / outputs_of_warp(kRowTiles);
    return (warps + (1u << launch.output_warp_bits) - 1) >> launch.output_warp_bits
                                                                << launch.pass_bits;
  }
  CONVOY_DEVICE uint32_t first_output(uint32_t task, uint32_t output_warp) const {
    return ((task >> launch_.pass_bits << launch_.output_warp_bits) + output_warp) *
           outputs_of_warp(kRowTiles);
  }
  CONVOY_DEVICE uint32_t first_row(uint32_t task) const {
    return (task & ((1u << launch_.pass_bits) - 1)) * kRowTiles * kTileRows;
  }

  CONVOY_DEVICE void multiply(uint32_t task) {
#pragma unroll
    for (uint32_t at = 0; at < kSums; ++at) sum(at) = 0;
    for (uint32_t chunk = input_warp_; chunk < chunks_; chunk += input_warps_) {
      wait_for_copies<OwnRing::kSlots - 1>();
      Codes pieces[kOutputTiles][2];
      take(pieces);
      copy_next(slot_);
      slot_ = (slot_ + 1) % OwnRing::kSlots;
      add(task, chunk, pieces);
    }
  }

  CONVOY_DEVICE float& sum(uint32_t at) {
    return sums_[at / 4 / kRowTiles][at / 4 % kRowTiles][at % 4];
  }

 private:
  // A warp takes four vectors of each output at once. wanted_vector() is the lane's own vector.
  // vector_of() is the vector that the lane reads: its own, or the last vector if its own does not
  // exist.
  CONVOY_DEVICE uint32_t wanted_vector(uint32_t chunk) const { return 4 * chunk + lane_ % 4; }
  CONVOY_DEVICE uint32_t vector_of(uint32_t chunk) const {
    return smaller(wanted_vector(chunk), launch_.inputs / Codes::kInputs - 1);
  }

  // A place beyond the last output or vector reads the last output or vector again. The sums of
  // such outputs are dropped, and x is 0 there, as it is beyond the last row.
  CONVOY_DEVICE Place place_of(uint32_t task, uint32_t chunk, int tile, int half) const {
    const uint32_t wanted = first_output(task, output_warp_) + tile * 16 + half * 8 + lane_ / 4;
    const uint32_t output = smaller(wanted, launch_.outputs - 1), vector = vector_of(chunk);
    return {output, vector, output * (launch_.inputs / Codes::kInputs) + vector};
  }

  CONVOY_DEVICE void copy_next(uint32_t slot) {
    if (ahead_task_ < tasks_) {
#pragma unroll
      for (int tile = 0; tile < kOutputTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const Place place = place_of(ahead_task_, ahead_chunk_, tile, half);
          copy_vector(&ring_.vectors[slot][tile * 2 + half][lane_],
                      static_cast<const Words4*>(launch_.codes) + place.of_all);
          if constexpr (Codes::kScales > 0)
            copy_word(&ring_.scales[slot][tile * 2 + half][lane_],
                      Codes::scale_place(launch_, place));
        }
      }
    }
    end_copies();
    ahead_chunk_ += input_warps_;
    if (ahead_chunk_ < chunks_) return;
    ahead_chunk_ = input_warp_;
    ahead_task_ += nvidia::num_blocks();
  }

  CONVOY_DEVICE void take(Codes (&pieces)[kOutputTiles][2]) const {
#pragma unroll
    for (int piece = 0; piece < 2 * kOutputTiles; ++piece) {
      Codes& codes = pieces[piece / 2][piece % 2];
      load_words<Words4>(&ring_.vectors[slot_][piece][lane_], codes.words);
      if constexpr (Codes::kScales > 0) codes.scale = ring_.scales[slot_][piece][lane_];
    }
  }

  CONVOY_DEVICE void add(uint32_t task, uint32_t chunk, Codes (&pieces)[kOutputTiles][2]) {
#pragma unroll
    for (int piece = 0; piece < 2 * kOutputTiles; ++piece)
      pieces[piece / 2][piece % 2].open(launch_, place_of(task, chunk, piece / 2, piece % 2));
    const uint32_t row_vectors = launch_.inputs / 8, vector = wanted_vector(chunk);
    const uint32_t first_x =
        (first_row(task) + lane_ / 4) * row_vectors + vector * (Codes::kInputs / 8);
    const uint32_t end_x =
        vector < launch_.inputs / Codes::kInputs ? launch_.rows * row_vectors : 0;
#pragma unroll kRowTiles < 4 ? kEights : 1
    for (int eight = 0; eight < kEights; ++eight) {
      uint32_t w[kOutputTiles][2][4];
#pragma unroll
      for (int at = 0; at < kOutputTiles * 8; ++at)
        w[at / 8][at / 4 % 2][at % 4] = pieces[at / 8][at % 2].pair(at / 4 % 2 * 2 + at / 2 % 2);
      uint32_t next_x = first_x + eight;
#pragma unroll
      for (int rows = 0; rows < kRowTiles; ++rows) {
        uint32_t x[4] = {};
        if (next_x < end_x) load_vector(launch_.x, next_x, x);
        Codes::arrange(x);
        next_x += kTileRows * row_vectors;
#pragma unroll
        for (int tile = 0; tile < kOutputTiles; ++tile)
#pragma unroll
          for (int four = 0; four < 2; ++four)
            multiply_add_tile(sums_[tile][rows], w[tile][four], x[four * 2], x[four * 2 + 1]);
      }
#pragma unroll
      for (int piece = 0; piece < 2 * kOutputTiles; ++piece)
        skip_words<4 / kEights>(pieces[piece / 2][piece % 2].words);
    }
  }

  const CodedProductLaunch& launch_;
  OwnRing& ring_;
  const uint32_t lane_, output_warp_, input_warp_, input_warps_, chunks_, tasks_;
  uint32_t ahead_task_, ahead_chunk_;  // where the next copies begin
  uint32_t slot_ = 0;                  // slot that is read next
  float sums_[kOutputTiles][kRowTiles][4];
};

CONVOY_DEVICE void store_result(const CodedProductLaunch& launch, uint32_t output, uint32_t row,
                                float result) {
  if (launch.bias != nullptr) {
    float bias[1];
    load(static_cast<const Bf16*>(launch.bias) + output, bias);
    result += bias[0];
  }
  const float stored[1] = {result};
  store(static_cast<Bf16*>(launch.y) + uint64_t{row} * launch.outputs + output, stored);
}

template <class Codes, int kRowTiles>
CONVOY_DEVICE void multiply_codes(const CodedProductLaunch& launch) {
  using Product = WarpProduct<Codes, kRowTiles>;
  constexpr uint32_t kJoined = 4;  // sums of a lane at a time
  CONVOY_SHARED Ring<Codes, kRowTiles> rings[kBlockWarps];
  CONVOY_SHARED float parts[kBlockWarps][kJoined][kWarpThreads];
  const uint32_t warp = thread_of_block() / kWarpThreads, lane = thread_of_block() % kWarpThreads;
  const uint32_t tasks = Product::num_tasks(launch), output_warps = 1u << launch.output_warp_bits;
  Product own(launch, rings[warp]);
  nvidia::wait_for_kernels_before();
  Codes::prepare(launch);
  for (uint32_t task = nvidia::block_number(); task < tasks; task += nvidia::num_blocks()) {
    own.multiply(task);
#pragma unroll
    for (uint32_t first = 0; first < Product::kSums; first += kJoined) {
#pragma unroll
      for (uint32_t at = 0; at < kJoined; ++at) parts[warp][at][lane] = own.sum(first + at);
      wait_for_block();
      for (uint32_t at = warp; at < kJoined * output_warps; at += kBlockWarps) {
        const uint32_t of_warp = at / kJoined, place = first + at % kJoined;
        float sum = 0;
#pragma unroll
        for (uint32_t part = 0; part < kBlockWarps; ++part) {
          const float of_part = parts[part][at % kJoined][lane];
          sum += (part & output_warps - 1) == of_warp ? of_part : 0.0f;
        }
        const uint32_t output = own.first_output(task, of_warp) + place / 4 / kRowTiles * 16 +
                                place % 4 / 2 * 8 + lane / 4;
        const uint32_t row =
            own.first_row(task) + place / 4 % kRowTiles * kTileRows + lane % 4 * 2 + place % 2;
        if (output < launch.outputs && row < launch.rows)
          store_result(launch, output, row, sum * Codes::factor(launch, output));
      }
      wait_for_block();  // the place is free for the next sums
    }
  }
}

}  // namespace

// The last argument: number of blocks that a multiprocessor must hold at once, each with 32 KB
// under way, which bounds the registers.
#define CONVOY_CODED_PRODUCT(name, Codes, row_tiles, blocks)                                     \
  CONVOY_KERNEL                                                                                  \
  __attribute__((launch_bounds(kBlockThreads, blocks))) void coded_product_##name##_##row_tiles( \
      const CodedProductLaunch launch) {                                                         \
    multiply_codes<Codes, row_tiles>(launch);                                                    \
  }
#define CONVOY_CODED_PRODUCTS(name, Codes, blocks_of_four) \
  CONVOY_CODED_PRODUCT(name, Codes, 1, 3)                  \
  CONVOY_CODED_PRODUCT(name, Codes, 2, 2)                  \
  CONVOY_CODED_PRODUCT(name, Codes, 4, blocks_of_four)
CONVOY_CODED_PRODUCTS(bytes, ByteCodes, 2)
CONVOY_CODED_PRODUCTS(groups, GroupCodes, 1)
CONVOY_CODED_PRODUCTS(table, TableCodes, 2)
CONVOY_CODED_PRODUCTS(nested, NestedCodes, 2)
#undef CONVOY_CODED_PRODUCTS
#undef CONVOY_CODED_PRODUCT

}  // namespace convoy::kernels::gpu
