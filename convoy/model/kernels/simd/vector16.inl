// SPDX-License-Identifier: Apache-2.0
//
// Sixteen floats as one value: one register with AVX-512, two with AVX2, four below. Included once
// per instruction set, inside that set's namespace and target.

constexpr int64_t kLanes = 16;

// Functions that are not inlined would pass vectors through memory.
#undef CONVOY_INLINE
#define CONVOY_INLINE inline __attribute__((always_inline))

// The number of floats in one register.
#if CONVOY_SIMD_LEVEL >= 2
constexpr int64_t kRegisterLanes = 16;
#elif CONVOY_SIMD_LEVEL >= 1
constexpr int64_t kRegisterLanes = 8;
#else
constexpr int64_t kRegisterLanes = 4;
#endif
using RegisterFloats = float __attribute__((vector_size(4 * kRegisterLanes)));
using RegisterInts = int32_t __attribute__((vector_size(4 * kRegisterLanes)));
using RegisterWords = uint32_t __attribute__((vector_size(4 * kRegisterLanes)));

#if CONVOY_SIMD_LEVEL >= 2
using Floats = RegisterFloats;
using Ints = RegisterInts;
using Words = RegisterWords;
using Doubles = double __attribute__((vector_size(128)));
#else
#include "convoy/model/kernels/simd/wide_value.inl"
using Floats = WideValue<float, kLanes>;
using Ints = WideValue<int32_t, kLanes>;
using Words = WideValue<uint32_t, kLanes>;
using Doubles = WideValue<double, kLanes>;
#endif

// Applies `function` to one register of each argument after another.
template <class Result, class Function, class... Wide>
CONVOY_INLINE Result by_register(const Function& function, const Wide&... wide) {
  if constexpr (std::is_class_v<Result>)
    return {by_register<typename Result::Half>(function, wide.low...),
            by_register<typename Result::Half>(function, wide.high...)};
  else
    return function(wide...);
}

template <class Register, class From>
CONVOY_INLINE Register load_register(const From* from) {
  Register value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
CONVOY_INLINE RegisterFloats load_wide(const c10::BFloat16* from) {
#if CONVOY_SIMD_LEVEL == 1
  // The compiler would widen the two halves of a register separately.
  const auto words = reinterpret_cast<RegisterWords>(
      _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
  using RegisterHalves = uint16_t __attribute__((vector_size(2 * kRegisterLanes)));
  const auto words = __builtin_convertvector(load_register<RegisterHalves>(from), RegisterWords);
#endif
  return reinterpret_cast<RegisterFloats>(words << 16);
}

template <class Wide, class From>
CONVOY_INLINE Wide load_as(const From* from) {
  if constexpr (std::is_class_v<Wide>) {
    using Half = typename Wide::Half;
    constexpr bool kWidens = std::is_same_v<From, c10::BFloat16>;
    constexpr auto kHalfLanes = sizeof(Half) / (kWidens ? sizeof(float) : sizeof(From));
    return {load_as<Half>(from), load_as<Half>(from + kHalfLanes)};
  } else if constexpr (std::is_same_v<From, c10::BFloat16>) {
    return load_wide(from);
  } else {
    return load_register<Wide>(from);
  }
}
CONVOY_INLINE Floats load(const float* from) { return load_as<Floats>(from); }
CONVOY_INLINE Floats load(const c10::BFloat16* from) { return load_as<Floats>(from); }
CONVOY_INLINE Ints load(const int32_t* from) { return load_as<Ints>(from); }

template <class Wide>
CONVOY_INLINE void store_registers(void* to, const Wide& value) {
  if constexpr (std::is_class_v<Wide>) {
    store_registers(to, value.low);
    store_registers(static_cast<char*>(to) + sizeof value.low, value.high);
  } else {
    __builtin_memcpy(to, &value, sizeof value);
  }
}
CONVOY_INLINE void store(float* to, const Floats& value) { store_registers(to, value); }

// The bits of the floats as words, and the reverse.
CONVOY_INLINE Words words_of(const Floats& value) {
  return by_register<Words>([](auto part) { return reinterpret_cast<RegisterWords>(part); }, value);
}
CONVOY_INLINE Floats floats_of(const Words& value) {
  return by_register<Floats>([](auto part) { return reinterpret_cast<RegisterFloats>(part); },
                             value);
}

CONVOY_INLINE Floats all(float value) { return Floats{} + value; }

// Sets all bits of a lane where the comparison holds.
CONVOY_INLINE Ints above(const Floats& a, const Floats& b) {
  return by_register<Ints>([](auto x, auto y) { return x > y; }, a, b);
}
CONVOY_INLINE Ints at_least(const Floats& a, const Floats& b) {
  return by_register<Ints>([](auto x, auto y) { return x >= y; }, a, b);
}
CONVOY_INLINE Ints is_number(const Floats& a) {
  return by_register<Ints>([](auto x) { return x == x; }, a);
}
template <class Wide>
CONVOY_INLINE Wide chosen(const Ints& mask, const Wide& where_set, const Wide& elsewhere) {
  return by_register<Wide>([](auto set, auto x, auto y) { return set ? x : y; }, mask, where_set,
                           elsewhere);
}

CONVOY_INLINE Doubles widened(const Floats& value) {
#if CONVOY_SIMD_LEVEL >= 2
  return __builtin_convertvector(value, Doubles);
#elif CONVOY_SIMD_LEVEL == 1
  using Register4 = RegisterOf<double>::Lanes;
  const auto of_register = [](RegisterFloats part) -> WideValue<double, 8> {
    const auto eight = reinterpret_cast<__m256>(part);
    return {reinterpret_cast<Register4>(_mm256_cvtps_pd(_mm256_castps256_ps128(eight))),
            reinterpret_cast<Register4>(_mm256_cvtps_pd(_mm256_extractf128_ps(eight, 1)))};
  };
  return {of_register(value.low), of_register(value.high)};
#else
  double lanes[kLanes];
  for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = value[lane];
  return load_as<Doubles>(lanes);
#endif
}

// Rounds to nearest even; the result is in the upper halves of the words. NaN stays NaN.
CONVOY_INLINE Words rounded_words(const Floats& value) {
  return by_register<Words>(
      [](RegisterFloats part) {
        const auto bits = reinterpret_cast<RegisterWords>(part);
        const RegisterWords rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
        return part == part ? rounded : RegisterWords{} + 0x7fc00000u;
      },
      value);
}
CONVOY_INLINE void store(c10::BFloat16* to, const Floats& value) {
#if CONVOY_SIMD_LEVEL >= 3
  // This instruction takes numbers below the smallest normal one for 0, as the dot product does.
  const auto bits = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(value));
#elif CONVOY_SIMD_LEVEL == 2
  using Halves = uint16_t __attribute__((vector_size(32)));
  const Halves bits = __builtin_convertvector(rounded_words(value) >> 16, Halves);
#elif CONVOY_SIMD_LEVEL == 1
  // The compiler narrows lane by lane.
  const Words words = rounded_words(value) >> 16;
  const __m256i joined = _mm256_packus_epi32(reinterpret_cast<__m256i>(words.low),
                                             reinterpret_cast<__m256i>(words.high));
  const __m256i bits = _mm256_permute4x64_epi64(joined, 0xd8);
#else
  const Words words = rounded_words(value);
  uint16_t bits[kLanes];
  for (int64_t lane = 0; lane < kLanes; ++lane)
    bits[lane] = static_cast<uint16_t>(words[lane] >> 16);
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
CONVOY_INLINE void store_part(Element* to, const Floats& value, int64_t count) {
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
CONVOY_INLINE void store_lanes(Element* to, const Floats& value, Count count) {
  if constexpr (std::is_same_v<Count, int64_t>) return store_part(to, value, count);
  store(to, value);
}

CONVOY_INLINE Floats larger(const Floats& a, const Floats& b) {
  return by_register<Floats>([](auto x, auto y) { return x > y ? x : y; }, a, b);
}
CONVOY_INLINE Floats smaller(const Floats& a, const Floats& b) {
  return by_register<Floats>([](auto x, auto y) { return x < y ? x : y; }, a, b);
}

// Adds lanes in fixed pairs, so the sum does not depend on the instruction set's own order.
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

// After this number of vectors an fp32 sum is added to an fp64 sum: a large fp32 sum loses small
// terms.
constexpr int64_t kVectorsPerSum = 64;
// The sum of values(at, count) over `total` lanes.
template <class Values>
CONVOY_INLINE double long_sum(int64_t total, Values&& values) {
  Doubles sums{};
  for (int64_t begin = 0; begin < total; begin += kVectorsPerSum * kLanes) {
    Floats part{};
    for_lanes(std::min(kVectorsPerSum * kLanes, total - begin),
              [&](int64_t at, auto count) { part += values(begin + at, count); });
    sums += widened(part);
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
CONVOY_INLINE RegisterFloats exponential_part(RegisterFloats x) {
  const auto all = [](float value) { return RegisterFloats{} + value; };
  constexpr float kHighest = 88.3762626647949f;
  constexpr float kLowest = -87.3365447504019f;
  const RegisterFloats bounded = x > kHighest ? all(kHighest) : (x < kLowest ? all(kLowest) : x);
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
  const RegisterFloats magic = all(12582912.0f);
  const RegisterFloats shifted = bounded * 1.44269504088896341f + magic;
  const RegisterFloats exponent = shifted - magic;
  const RegisterFloats r = bounded - exponent * 0.693359375f + exponent * 2.12194440e-4f;
  RegisterFloats poly = all(1.9875691500e-4f);
  poly = poly * r + 1.3981999507e-3f;
  poly = poly * r + 8.3334519073e-3f;
  poly = poly * r + 4.1665795894e-2f;
  poly = poly * r + 1.6666665459e-1f;
  poly = poly * r + 5.0000001201e-1f;
  poly = poly * (r * r) + r + 1.0f;
  const RegisterInts power = (__builtin_convertvector(exponent, RegisterInts) + 127) << 23;
  const RegisterFloats value = poly * reinterpret_cast<RegisterFloats>(power);
  return x < kLowest ? all(0.0f) : (x == x ? value : x);
}
CONVOY_INLINE Floats exponential(const Floats& x) {
  return by_register<Floats>([](auto part) { return exponential_part(part); }, x);
}

CONVOY_INLINE Floats sigmoid(Floats x) { return 1.0f / (1.0f + exponential(-x)); }

// tanh as in Cephes' tanhf: a polynomial near 0, where 1 - 2 / (exp(2 |x|) + 1) would lose digits;
// relative error below 2^-22.
CONVOY_INLINE Floats hyperbolic_tangent(const Floats& x) {
  const Floats size = larger(x, -x);
  const Floats square = x * x;
  Floats poly = all(-5.70498872745e-3f);
  poly = poly * square + 2.06390887954e-2f;
  poly = poly * square - 5.37397155531e-2f;
  poly = poly * square + 1.33314422036e-1f;
  poly = poly * square - 3.33332819422e-1f;
  const Floats near = poly * square * x + x;
  const Floats far = 1.0f - 2.0f / (exponential(2.0f * size) + 1.0f);
  return chosen(above(size, all(0.625f)), chosen(above(all(0.0f), x), -far, far), near);
}

CONVOY_INLINE Floats root(const Floats& x) {
#if CONVOY_SIMD_LEVEL >= 2
  return reinterpret_cast<Floats>(_mm512_maskz_sqrt_ps(0xffff, reinterpret_cast<__m512>(x)));
#elif CONVOY_SIMD_LEVEL == 1
  return by_register<Floats>(
      [](auto part) {
        return reinterpret_cast<RegisterFloats>(_mm256_sqrt_ps(reinterpret_cast<__m256>(part)));
      },
      x);
#else
  return by_register<Floats>(
      [](RegisterFloats part) {
        for (int64_t lane = 0; lane < kRegisterLanes; ++lane)
          part[lane] = __builtin_sqrtf(part[lane]);
        return part;
      },
      x);
#endif
}
