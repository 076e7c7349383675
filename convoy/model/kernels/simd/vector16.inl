// SPDX-License-Identifier: Apache-2.0
//
// Sixteen floats as one value, in the compiler's vector extension: one register with AVX-512, two
// with AVX2, four below. Included once per instruction set, inside that set's namespace and target.

using Floats = float __attribute__((vector_size(64)));
using Doubles = double __attribute__((vector_size(128)));
using Ints = int32_t __attribute__((vector_size(64)));
using Words = uint32_t __attribute__((vector_size(64)));
using Halves = uint16_t __attribute__((vector_size(32)));
constexpr int64_t kLanes = 16;

// Out of line these would pass vectors through memory.
#undef CONVOY_INLINE
#define CONVOY_INLINE inline __attribute__((always_inline))

CONVOY_INLINE Floats all(float value) { return Floats{} + value; }

CONVOY_INLINE Floats load(const float* from) {
  Floats value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
CONVOY_INLINE void store(float* to, Floats value) { __builtin_memcpy(to, &value, sizeof value); }

CONVOY_INLINE Floats load(const c10::BFloat16* from) {
  Halves bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  return reinterpret_cast<Floats>(__builtin_convertvector(bits, Words) << 16);
}

// Round to nearest even in the upper halves of the words; NaN stays NaN.
CONVOY_INLINE Words rounded_words(Floats value) {
  const Words bits = reinterpret_cast<Words>(value);
  const Words rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return value == value ? rounded : Words{} + 0x7fc00000u;
}
CONVOY_INLINE void store(c10::BFloat16* to, Floats value) {
#if CONVOY_SIMD_LEVEL >= 3
  // Takes numbers below the smallest normal one for 0, as the dot product does.
  const auto bits = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(value));
#else
  const Halves bits = __builtin_convertvector(rounded_words(value) >> 16, Halves);
#endif
  static_assert(sizeof bits == 32);
  __builtin_memcpy(to, &bits, sizeof bits);
}

template <class Element>
CONVOY_INLINE Floats load_part(const Element* from, int64_t count, float fill = 0.0f) {
  Element lanes[kLanes];
  for (int64_t lane = 0; lane < kLanes; ++lane)
    lanes[lane] = lane < count ? from[lane] : Element(fill);
  return load(lanes);
}
template <class Element>
CONVOY_INLINE void store_part(Element* to, Floats value, int64_t count) {
  Element lanes[kLanes];
  store(lanes, value);
  for (int64_t lane = 0; lane < count; ++lane) to[lane] = lanes[lane];
}

// Calls step(offset, count) for whole vectors, then once for the rest.
template <class Step>
CONVOY_INLINE void for_lanes(int64_t count, Step&& step) {
  int64_t offset = 0;
  for (; offset + kLanes <= count; offset += kLanes)
    step(offset, std::integral_constant<int64_t, kLanes>());
  if (offset < count) step(offset, count - offset);
}
template <class Element, class Count>
CONVOY_INLINE Floats load_lanes(const Element* from, Count count, float fill = 0.0f) {
  if constexpr (std::is_same_v<Count, int64_t>) return load_part(from, count, fill);
  return load(from);
}
template <class Element, class Count>
CONVOY_INLINE void store_lanes(Element* to, Floats value, Count count) {
  if constexpr (std::is_same_v<Count, int64_t>) return store_part(to, value, count);
  store(to, value);
}

CONVOY_INLINE Floats larger(Floats a, Floats b) { return a > b ? a : b; }

// Fixed pairing, so the sum does not depend on the instruction set's own order.
CONVOY_INLINE float sum(Floats value) {
  float lanes[kLanes];
  store(lanes, value);
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}
CONVOY_INLINE double sum(Doubles value) {
  double lanes[kLanes];
  __builtin_memcpy(lanes, &value, sizeof value);
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

// fp32 sums of so many vectors go into fp64 ones: a sum that grows in fp32 loses terms that are
// small beside it.
constexpr int64_t kVectorsPerSum = 64;
// The sum of values(at, count) over `total` lanes.
template <class Values>
CONVOY_INLINE double long_sum(int64_t total, Values&& values) {
  Doubles sums{};
  for (int64_t begin = 0; begin < total; begin += kVectorsPerSum * kLanes) {
    Floats part{};
    for_lanes(std::min(kVectorsPerSum * kLanes, total - begin),
              [&](int64_t at, auto count) { part += values(begin + at, count); });
    sums += __builtin_convertvector(part, Doubles);
  }
  return sum(sums);
}

CONVOY_INLINE float largest(Floats value) {
  float lanes[kLanes];
  store(lanes, value);
  float best = lanes[0];
  for (float lane : lanes) best = lane > best ? lane : best;
  return best;
}

// exp by range reduction to |r| <= ln2/2 and the degree-6 polynomial of Cephes' expf: relative
// error below 2^-22; 0 below -87.3, capped at exp(88.3).
CONVOY_INLINE Floats exponential(Floats x) {
  constexpr float kHighest = 88.3762626647949f;
  constexpr float kLowest = -87.3365447504019f;
  const Floats bounded = x > kHighest ? all(kHighest) : (x < kLowest ? all(kLowest) : x);
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
  const Floats magic = all(12582912.0f);
  const Floats shifted = bounded * 1.44269504088896341f + magic;
  const Floats exponent = shifted - magic;
  const Floats r = bounded - exponent * 0.693359375f + exponent * 2.12194440e-4f;
  Floats poly = all(1.9875691500e-4f);
  poly = poly * r + 1.3981999507e-3f;
  poly = poly * r + 8.3334519073e-3f;
  poly = poly * r + 4.1665795894e-2f;
  poly = poly * r + 1.6666665459e-1f;
  poly = poly * r + 5.0000001201e-1f;
  poly = poly * (r * r) + r + 1.0f;
  const Ints power = (__builtin_convertvector(exponent, Ints) + 127) << 23;
  const Floats value = poly * reinterpret_cast<Floats>(power);
  return x < kLowest ? all(0.0f) : (x == x ? value : x);
}

CONVOY_INLINE Floats sigmoid(Floats x) { return 1.0f / (1.0f + exponential(-x)); }

CONVOY_INLINE Floats root(Floats x) {
#if CONVOY_SIMD_LEVEL >= 2
  return reinterpret_cast<Floats>(_mm512_maskz_sqrt_ps(0xffff, reinterpret_cast<__m512>(x)));
#else
  Floats result;
  for (int64_t lane = 0; lane < kLanes; ++lane) result[lane] = __builtin_sqrtf(x[lane]);
  return result;
#endif
}
