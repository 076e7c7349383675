// SPDX-License-Identifier: Apache-2.0
//
// Four counters in one register, one per 64-bit lane; see lanes_scalar.inl for the meaning.

#undef CONVOY_INLINE
#define CONVOY_INLINE inline __attribute__((always_inline))

struct Lanes {
  static constexpr uint32_t kGuesses = 4;
  using Words = __m256i;
  using Floats = __m256;

  static CONVOY_INLINE Words all_words(uint64_t value) {
    return _mm256_set1_epi64x(static_cast<long long>(value));
  }
  static CONVOY_INLINE Words all_bits(uint32_t value) {
    return _mm256_set1_epi32(static_cast<int>(value));
  }
  static CONVOY_INLINE Words load_guesses(const uint32_t* guesses) {
    return _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(guesses)));
  }
  static CONVOY_INLINE Words multiply(Words a, Words b) { return _mm256_mul_epu32(a, b); }
  static CONVOY_INLINE Words high(Words a) { return _mm256_srli_epi64(a, 32); }
  static CONVOY_INLINE Words raise(Words a) { return _mm256_slli_epi64(a, 32); }
  static CONVOY_INLINE Words xor_of(Words a, Words b) { return _mm256_xor_si256(a, b); }
  static CONVOY_INLINE Words xor_of(Words a, Words b, Words c) {
    return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
  }

  static CONVOY_INLINE Floats odd_to_float(Words words) {
    return _mm256_cvtepi32_ps(_mm256_or_si256(words, all_bits(1)));
  }
  static CONVOY_INLINE Words masked(Words words, uint32_t mask, uint32_t bits) {
    return _mm256_or_si256(_mm256_and_si256(words, all_bits(mask)), all_bits(bits));
  }
  static CONVOY_INLINE Floats masked_to_number(Words words, uint32_t mask, uint32_t bits) {
    return _mm256_cvtepi32_ps(masked(words, mask, bits));
  }
  static CONVOY_INLINE Floats masked_to_float(Words words, uint32_t mask, uint32_t bits) {
    return _mm256_castsi256_ps(masked(words, mask, bits));
  }
  static CONVOY_INLINE Words lowest_to_top(Words a) { return _mm256_slli_epi32(a, 31); }
  static CONVOY_INLINE Floats exponent(Floats a) {
    const Words biased =
        _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(a), 23), all_bits(255));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(biased, all_bits(127)));
  }
  static CONVOY_INLINE Floats mantissa(Floats a) {
    return masked_to_float(_mm256_castps_si256(a), 0x7FFFFFu, 0x3F800000u);
  }
  static CONVOY_INLINE Floats flip_sign(Floats a, Floats sign) {
    return _mm256_xor_ps(a, _mm256_and_ps(sign, _mm256_castsi256_ps(all_bits(0x80000000u))));
  }
  static CONVOY_INLINE Floats choose(Words words, Floats a, Floats b) {
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(words));
  }
  static CONVOY_INLINE Floats keep(Floats a, Words mask) {
    return _mm256_and_ps(a, _mm256_castsi256_ps(mask));
  }

  static CONVOY_INLINE Floats all(float value) { return _mm256_set1_ps(value); }
  static CONVOY_INLINE Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static CONVOY_INLINE Floats subtract(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
  static CONVOY_INLINE Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static CONVOY_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static CONVOY_INLINE Floats root(Floats a) { return _mm256_sqrt_ps(a); }
  // Packs the lower halves of the 64-bit lanes.
  static CONVOY_INLINE __m128 lower_halves(Floats a) {
    return _mm_shuffle_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1), 0x88);
  }
  static CONVOY_INLINE void store_sums(float* to, Floats a) {
    _mm_storeu_ps(to, lower_halves(_mm256_add_ps(a, _mm256_permute_ps(a, 0xB1))));
  }
  static CONVOY_INLINE void store_halves(float* lower, float* upper, Floats a) {
    _mm_storeu_ps(lower, lower_halves(a));
    _mm_storeu_ps(upper, lower_halves(_mm256_permute_ps(a, 0xB1)));
  }
};
