// SPDX-License-Identifier: Apache-2.0
//
// A warp takes a block of elements of any parameter, eight neighbours for each thread, so that all
// memory is accessed by vectors. Where moments are codes, the warp finds the maxima of both. Each
// byte is moved once: 16.06 bytes an element with 8-bit moments and an fp32 value. The arithmetic
// is the same as in adamw_cuda.cu. Tables of codes are in shared memory: a number's exponent and
// first bits select the lower one of its two possible codes, as in DynamicCode::nearest(). (Eight
// comparisons with thresholds in the first cache took an H200 five times as long as the memory
// did.)
#include "convoy/model/kernels/adamw/adamw_narrow_launch.h"
#include "convoy/model/kernels/adamw/rounding_draws.h"
#include "convoy/model/kernels/cuda/block_shape.h"
#include "convoy/model/kernels/cuda/chunks.cuh"
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"

namespace convoy::kernels::gpu {
namespace {

constexpr int kEach = 8;  // neighbouring elements of a thread
static_assert(kNarrowBlock == kWarpThreads * kEach);
static_assert(kNarrowChunk % (kBlockWarps * kNarrowBlock) == 0);

struct Largest {
  float mean = 0;
  float square = 0;

  CONVOY_DEVICE void join(const Largest& other) {
    mean = other.mean > mean ? other.mean : mean;
    square = other.square > square ? other.square : square;
  }
  CONVOY_DEVICE Largest across(int distance) const {
    return {from_lane_across(mean, distance), from_lane_across(square, distance)};
  }
};

CONVOY_DEVICE float magnitude(float x) { return as_float(as_bits(x) & 0x7fffffffu); }

CONVOY_DEVICE uint32_t code_of(const CodeTable& table, float x) {
  uint32_t bucket = as_bits(magnitude(x)) >> kCodeBucketBits;
  bucket = bucket > kFirstCodeBucket ? bucket - kFirstCodeBucket : 0;
  bucket = bucket < kCodeBuckets ? bucket : kCodeBuckets - 1;
  const uint32_t lowest = table.lowest[x < 0 ? 1 : 0][bucket];
  return lowest + (x > table.thresholds[lowest] ? 1 : 0);
}

// The place of a thread's `count` neighbours, which begin at `at` in a block. They are moved by
// vectors where `by_vectors` is true.
struct Place {
  uint64_t block, at;
  uint32_t count;
  bool by_vectors;
};

CONVOY_DEVICE void read(const void* from, bool is_bf16, const Place& place, float (&x)[kEach]) {
  const auto* halves = static_cast<const Bf16*>(from) + place.at;
  const auto* floats = static_cast<const float*>(from) + place.at;
  if (place.by_vectors) {
    if (is_bf16)
      load(halves, x);
    else
      load(floats, x);
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < kEach; ++i) {
    x[i] = 0;
    if (i < place.count) x[i] = is_bf16 ? as_float(uint32_t{halves[i].bits} << 16) : floats[i];
  }
}

CONVOY_DEVICE void write_floats(void* to, const Place& place, const float (&x)[kEach]) {
  float* const floats = static_cast<float*>(to) + place.at;
  if (place.by_vectors) {
    store(floats, x);
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < kEach; ++i)
    if (i < place.count) floats[i] = x[i];
}

// bits(i): the element i in bf16.
template <class Bits>
CONVOY_DEVICE void write_halves(void* to, const Place& place, Bits bits) {
  Bf16* const halves = static_cast<Bf16*>(to) + place.at;
  if (place.by_vectors) {
    uint32_t words[kEach / 2];
#pragma unroll
    for (uint32_t i = 0; i < kEach; i += 2) words[i / 2] = bits(i) | bits(i + 1) << 16;
    store_words<Words4>(halves, words);
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < kEach; ++i)
    if (i < place.count) halves[i].bits = static_cast<uint16_t>(bits(i));
}

CONVOY_DEVICE void decode(const CodeTable& table, const void* codes, float scale,
                          const Place& place, float (&x)[kEach]) {
  const auto* bytes = static_cast<const uint8_t*>(codes) + place.at;
  uint32_t words[2] = {};
  if (place.by_vectors) {
    load_words<Words2>(bytes, words);
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kEach; ++i)
      if (i < place.count) words[i / 4] |= uint32_t{bytes[i]} << i % 4 * 8;
  }
#pragma unroll
  for (uint32_t i = 0; i < kEach; ++i)
    x[i] = i < place.count ? table.values[words[i / 4] >> i % 4 * 8 & 0xff] * scale : 0;
}

CONVOY_DEVICE void encode(const CodeTable& table, void* codes, float scale, const Place& place,
                          const float (&x)[kEach]) {
  auto* bytes = static_cast<uint8_t*>(codes) + place.at;
  uint32_t words[2] = {};
#pragma unroll
  for (uint32_t i = 0; i < kEach; ++i)
    words[i / 4] |= code_of(table, __nvvm_div_rn_f(x[i], scale)) << i % 4 * 8;
  if (place.by_vectors) {
    store_words<Words2>(bytes, words);
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < kEach; ++i)
    if (i < place.count) bytes[i] = static_cast<uint8_t>(words[i / 4] >> i % 4 * 8);
}

struct Elements {
  float value[kEach], mean[kEach], square[kEach];
};

CONVOY_DEVICE void read_elements(const CodeTables& tables, const NarrowAdamWParameter& of,
                                 const Place& place, Elements& to) {
  read(of.value, of.value_is_bf16 != 0, place, to.value);
  if (of.moments == MomentType::Codes) {
    decode(tables.with_sign, of.exp_avg, of.exp_avg_scale[place.block], place, to.mean);
    decode(tables.without_sign, of.exp_avg_sq, of.exp_avg_sq_scale[place.block], place, to.square);
  } else {
    read(of.exp_avg, of.moments == MomentType::Bf16, place, to.mean);
    read(of.exp_avg_sq, of.moments == MomentType::Bf16, place, to.square);
  }
}

CONVOY_DEVICE void step(const AdamWFactors& factors, const float (&gradient)[kEach], Elements& of) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const float g = gradient[i] * factors.gradient_scale;
    of.mean[i] += (g - of.mean[i]) * factors.one_minus_beta1;
    of.square[i] = of.square[i] * factors.beta2 + g * g * factors.one_minus_beta2;
    const float denominator =
        __nvvm_div_rn_f(__nvvm_sqrt_rn_f(of.square[i]), factors.root_bias_correction) +
        factors.epsilon;
    of.value[i] =
        of.value[i] * factors.keep - __nvvm_div_rn_f(of.mean[i], denominator) * factors.step_size;
  }
}

CONVOY_DEVICE uint32_t drawn_word(CounterKey key, uint64_t element) {
  return counter_hash(key, static_cast<uint32_t>(element), static_cast<uint32_t>(element >> 32));
}

CONVOY_DEVICE void write_values(const NarrowAdamWParameter& of, const Place& place,
                                const Elements& from) {
  const uint64_t first = of.first_element + place.at;
  if (of.value_is_bf16 != 0)
    write_halves(of.value, place, [&](uint32_t i) {
      const uint32_t draw = drawn_word(value_key(of.key), first + i) & 0xffffu;
      return drawn_bf16(as_bits(from.value[i]), draw);
    });
  else
    write_floats(of.value, place, from.value);
  if (of.rounded != nullptr)
    write_halves(of.rounded, place, [&](uint32_t i) { return bf16_bits(from.value[i]); });
}

CONVOY_DEVICE void write_moments(const NarrowAdamWParameter& of, const Place& place,
                                 const Elements& from) {
  if (of.moments == MomentType::Fp32) {
    write_floats(of.exp_avg, place, from.mean);
    write_floats(of.exp_avg_sq, place, from.square);
  } else {
    uint32_t draws[kEach];
#pragma unroll
    for (uint32_t i = 0; i < kEach; ++i)
      draws[i] = drawn_word(of.key, of.first_element + place.at + i);
    write_halves(of.exp_avg, place,
                 [&](uint32_t i) { return drawn_bf16(as_bits(from.mean[i]), draws[i] & 0xffffu); });
    write_halves(of.exp_avg_sq, place,
                 [&](uint32_t i) { return drawn_bf16(as_bits(from.square[i]), draws[i] >> 16); });
  }
}

CONVOY_DEVICE void write_codes(const CodeTables& tables, const NarrowAdamWParameter& of,
                               const Place& place, const Elements& from) {
  Largest largest;
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    largest.join({magnitude(from.mean[i]), magnitude(from.square[i])});
  largest = joined_over_warp(largest);
  const float mean_scale = largest.mean == 0 ? 1.0f : largest.mean;
  const float square_scale = largest.square == 0 ? 1.0f : largest.square;
  encode(tables.with_sign, of.exp_avg, mean_scale, place, from.mean);
  encode(tables.without_sign, of.exp_avg_sq, square_scale, place, from.square);
  if (thread_of_block() % kWarpThreads == 0) {
    of.exp_avg_scale[place.block] = mean_scale;
    of.exp_avg_sq_scale[place.block] = square_scale;
  }
}

CONVOY_DEVICE void update(const CodeTables& tables, const AdamWFactors& factors,
                          const NarrowAdamWParameter& of, const Place& place) {
  Elements elements;
  read_elements(tables, of, place, elements);
  float gradient[kEach];
  read(of.gradient, of.gradient_is_bf16 != 0, place, gradient);
  step(factors, gradient, elements);
  write_values(of, place, elements);
  if (of.moments == MomentType::Codes)
    write_codes(tables, of, place, elements);
  else
    write_moments(of, place, elements);
}

CONVOY_DEVICE bool fits_vectors(const NarrowAdamWParameter& of) {
  const auto bits = [](const void* pointer) { return reinterpret_cast<uint64_t>(pointer); };
  const uint64_t all = bits(of.value) | bits(of.gradient) | bits(of.exp_avg) | bits(of.exp_avg_sq) |
                       bits(of.rounded);
  return all % 16 == 0;
}

CONVOY_DEVICE void copy_tables(const CodeTables* from, CodeTables& to) {
  static_assert(sizeof(CodeTables) % sizeof(uint32_t) == 0);
  const auto* source = reinterpret_cast<const uint32_t*>(from);
  auto* target = reinterpret_cast<uint32_t*>(&to);
  for (uint32_t at = thread_of_block(); at < sizeof(CodeTables) / sizeof(uint32_t);
       at += kBlockThreads)
    target[at] = source[at];
  wait_for_block();
}

}  // namespace

// Three blocks on a multiprocessor keep enough loads in flight for the memory's full bandwidth.
CONVOY_KERNEL __attribute__((launch_bounds(kBlockThreads, 3))) void adamw_narrow(
    const NarrowAdamWLaunch launch) {
  CONVOY_SHARED CodeTables tables;
  if (launch.tables != nullptr) copy_tables(launch.tables, tables);
  const uint32_t warp = thread_of_block() / kWarpThreads, lane = thread_of_block() % kWarpThreads;
  const uint64_t chunks = launch.first_chunk[launch.num_parameters];
  for (uint64_t chunk = nvidia::block_number(); chunk < chunks; chunk += nvidia::num_blocks()) {
    const uint32_t number = owner_of_chunk(launch.first_chunk, launch.num_parameters, chunk);
    const NarrowAdamWParameter& of = launch.parameters[number];
    const bool aligned = fits_vectors(of);
    const uint64_t begin = (chunk - launch.first_chunk[number]) * kNarrowChunk;
    const uint64_t end = begin + kNarrowChunk < of.count ? begin + kNarrowChunk : of.count;
    for (uint64_t first = begin + warp * kNarrowBlock; first < end;
         first += kBlockWarps * kNarrowBlock) {
      const uint64_t at = first + lane * kEach;
      const uint64_t left = at < of.count ? of.count - at : 0;
      const uint32_t count = left < kEach ? static_cast<uint32_t>(left) : kEach;
      update(tables, launch.factors, of,
             {first / kNarrowBlock, at, count, aligned && count == kEach});
    }
  }
}

}  // namespace convoy::kernels::gpu
