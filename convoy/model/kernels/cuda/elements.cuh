// SPDX-License-Identifier: Apache-2.0
//
// fp32 and bf16 elements in the kernels of ops: read as fp32, computed in fp32, rounded once (to
// nearest, ties to even) when written. Vectors of kPerLoad elements are 16 bytes and need an
// address that 16 divides.
#pragma once

#include <type_traits>

#include "convoy/machine/nvidia/device_functions.cuh"

namespace convoy::kernels::gpu {

struct Bf16 {
  uint16_t bits;
};

template <class Element>
inline constexpr int kPerLoad = 16 / sizeof(Element);

using Words4 = uint32_t __attribute__((ext_vector_type(4)));
using Words2 = uint32_t __attribute__((ext_vector_type(2)));

CONVOY_DEVICE float as_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }
CONVOY_DEVICE uint32_t as_bits(float value) { return __builtin_bit_cast(uint32_t, value); }

// The bits of bf16 in the lower half. A NaN stays a NaN: rounding its bits could give infinity.
CONVOY_DEVICE uint32_t bf16_bits(float value) {
  constexpr uint32_t kNan = 0x7fc0;
  const uint32_t bits = as_bits(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return value != value ? kNan : rounded;
}

CONVOY_DEVICE float rounded_to(float value, const float*) { return value; }
CONVOY_DEVICE float rounded_to(float value, const Bf16*) {
  return as_float(bf16_bits(value) << 16);
}
// `value` after a round trip through Element.
template <class Element>
CONVOY_DEVICE float rounded(float value) {
  return rounded_to(value, static_cast<const Element*>(nullptr));
}

// A normalised element times its weight, in one of the two orders of rms_norm.h.
template <class Element>
CONVOY_DEVICE float scaled_norm(float normal, float weight, bool by_one_plus) {
  return by_one_plus ? normal * (1.0f + weight) : rounded<Element>(normal) * weight;
}

// The value of a signed byte. Adding 2^23 leaves a small whole number in the low bits of a float.
CONVOY_DEVICE float whole_number(uint32_t byte) {
  return as_float(0x4b000000u | (byte ^ 0x80u)) - 8388736.0f;
}

template <class Words, int kWords>
CONVOY_DEVICE void load_words(const void* from, uint32_t (&words)[kWords]) {
  constexpr int kEach = sizeof(Words) / sizeof(uint32_t);
  for (int at = 0; at < kWords; at += kEach) {
    const Words loaded = static_cast<const Words*>(from)[at / kEach];
    for (int word = 0; word < kEach; ++word) words[at + word] = loaded[word];
  }
}
template <class Words, int kWords>
CONVOY_DEVICE void store_words(void* to, const uint32_t (&words)[kWords]) {
  constexpr int kEach = sizeof(Words) / sizeof(uint32_t);
  for (int at = 0; at < kWords; at += kEach) {
    Words stored;
    for (int word = 0; word < kEach; ++word) stored[word] = words[at + word];
    static_cast<Words*>(to)[at / kEach] = stored;
  }
}

// Loads kCount neighbours: one element, 8 bytes, or a multiple of 16 bytes. The address is aligned
// to an element, to 8 or to 16 bytes.
template <int kCount>
CONVOY_DEVICE void load(const float* from, float (&values)[kCount]) {
  if constexpr (kCount == 1) {
    values[0] = *from;
  } else {
    uint32_t words[kCount];
    load_words<Words4>(from, words);
    for (int at = 0; at < kCount; ++at) values[at] = as_float(words[at]);
  }
}
template <int kCount>
CONVOY_DEVICE void load(const Bf16* from, float (&values)[kCount]) {
  if constexpr (kCount == 1) {
    values[0] = as_float(uint32_t{from->bits} << 16);
  } else {
    uint32_t words[kCount / 2];
    load_words<std::conditional_t<kCount == 4, Words2, Words4>>(from, words);
    for (int at = 0; at < kCount / 2; ++at) {
      values[2 * at] = as_float(words[at] << 16);
      values[2 * at + 1] = as_float(words[at] & 0xffff0000u);
    }
  }
}

template <int kCount>
CONVOY_DEVICE void store(float* to, const float (&values)[kCount]) {
  if constexpr (kCount == 1) {
    *to = values[0];
  } else {
    uint32_t words[kCount];
    for (int at = 0; at < kCount; ++at) words[at] = as_bits(values[at]);
    store_words<Words4>(to, words);
  }
}
template <int kCount>
CONVOY_DEVICE void store(Bf16* to, const float (&values)[kCount]) {
  if constexpr (kCount == 1) {
    to->bits = static_cast<uint16_t>(bf16_bits(values[0]));
  } else {
    uint32_t words[kCount / 2];
    for (int at = 0; at < kCount / 2; ++at)
      words[at] = bf16_bits(values[2 * at]) | bf16_bits(values[2 * at + 1]) << 16;
    store_words<std::conditional_t<kCount == 4, Words2, Words4>>(to, words);
  }
}

template <int kCount>
struct Count {
  static constexpr int value = kCount;
};

// All threads of the grid together call body(first, Count<n>) for n elements from `first` on, each
// element once. The first num_vectors * kPerVector elements are processed as vectors.
template <int kPerVector, class Body>
CONVOY_DEVICE void for_elements(uint64_t count, uint64_t num_vectors, Body body) {
  const uint64_t thread = nvidia::thread_number(), threads = nvidia::num_threads();
  for (uint64_t vector = thread; vector < num_vectors; vector += threads)
    body(vector * kPerVector, Count<kPerVector>());
  for (uint64_t at = num_vectors * kPerVector + thread; at < count; at += threads)
    body(at, Count<1>());
}

}  // namespace convoy::kernels::gpu
