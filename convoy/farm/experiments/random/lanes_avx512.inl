// SPDX-License-Identifier: Apache-2.0
//
// Eight counters in one register, one per 64-bit lane; see lanes_scalar.inl for the meaning.

#undef CONVOY_INLINE
#define CONVOY_INLINE inline __attribute__((always_inline))

struct Lanes {
  static constexpr uint32_t kGuesses = 8;
  using Words = __m512i;
  using Floats = __m512;

  static CONVOY_INLINE Words all_words(uint64_t value) {
    return _mm512_set1_epi64(static_cast<long long>(value));
  }
  static CONVOY_INLINE Words load_guesses(const uint32_t* guesses) {
    return _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(guesses)));
  }
  static CONVOY_INLINE Words multiply(Words a, Words b) { return _mm512_mul_epu32(a, b); }
  static CONVOY_INLINE Words high(Words a) { return _mm512_srli_epi64(a, 32); }
  static CONVOY_INLINE Words raise(Words a) { return _mm512_slli_epi64(a, 32); }
  static CONVOY_INLINE Words xor_of(Words a, Words b) { return _mm512_xor_si512(a, b); }
  static CONVOY_INLINE Words xor_of(Words a, Words b, Words c) {
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
  }

  static CONVOY_INLINE Floats odd_to_float(Words words) {
    return _mm512_cvtepi32_ps(_mm512_or_si512(words, _mm512_set1_epi32(1)));
  }
  static CONVOY_INLINE Words masked(Words words, uint32_t mask, uint32_t bits) {
    return _mm512_ternarylogic_epi32(words, _mm512_set1_epi32(static_cast<int>(mask)),
                                     _mm512_set1_epi32(static_cast<int>(bits)), 0xEA);
  }
  static CONVOY_INLINE Floats masked_to_number(Words words, uint32_t mask, uint32_t bits) {
    return _mm512_cvtepi32_ps(masked(words, mask, bits));
  }
  static CONVOY_INLINE Floats masked_to_float(Words words, uint32_t mask, uint32_t bits) {
    return _mm512_castsi512_ps(masked(words, mask, bits));
  }
  static CONVOY_INLINE Words lowest_to_top(Words a) { return _mm512_slli_epi32(a, 31); }
  static CONVOY_INLINE Floats exponent(Floats a) { return _mm512_getexp_ps(a); }
  static CONVOY_INLINE Floats mantissa(Floats a) {
    return _mm512_getmant_ps(a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero);
  }
  static CONVOY_INLINE Floats flip_sign(Floats a, Floats sign) {
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(_mm512_castps_si512(a), _mm512_castps_si512(sign),
                                  _mm512_set1_epi32(static_cast<int>(0x80000000u)), 0x78));
  }
  static CONVOY_INLINE Floats choose(Words words, Floats a, Floats b) {
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(words), b, a);
  }
  static CONVOY_INLINE Floats keep(Floats a, Words mask) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(a), mask));
  }

  static CONVOY_INLINE Floats all(float value) { return _mm512_set1_ps(value); }
  static CONVOY_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static CONVOY_INLINE Floats subtract(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  static CONVOY_INLINE Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static CONVOY_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static CONVOY_INLINE Floats root(Floats a) { return _mm512_sqrt_ps(a); }
  static CONVOY_INLINE void store_sums(float* to, Floats a) {
    const Floats sums = _mm512_add_ps(a, _mm512_permute_ps(a, 0xB1));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_cvtepi64_epi32(_mm512_castps_si512(sums)));
  }
  static CONVOY_INLINE void store_halves(float* lower, float* upper, Floats a) {
    const Words words = _mm512_castps_si512(a);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lower), _mm512_cvtepi64_epi32(words));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(upper), _mm512_cvtepi64_epi32(high(words)));
  }
};
