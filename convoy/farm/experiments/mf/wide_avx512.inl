// SPDX-License-Identifier: Apache-2.0
//
// One float of each of sixteen guesses in one register; see wide_scalar.inl for the meaning.

inline constexpr uint32_t kWideDoubles = 8;  // doubles per register

struct Wide {
  __m512 guess;

  static CONVOY_INLINE Wide load(const float* from) { return {_mm512_load_ps(from)}; }
  CONVOY_INLINE void store(float* to) const { _mm512_store_ps(to, guess); }
  static CONVOY_INLINE Wide all(float value) { return {_mm512_set1_ps(value)}; }
  static CONVOY_INLINE Wide add(const Wide& a, const Wide& b) {
    return {_mm512_add_ps(a.guess, b.guess)};
  }
  static CONVOY_INLINE Wide multiply(const Wide& a, const Wide& b) {
    return {_mm512_mul_ps(a.guess, b.guess)};
  }
  static CONVOY_INLINE Wide divide(const Wide& a, const Wide& b) {
    return {_mm512_div_ps(a.guess, b.guess)};
  }
  static CONVOY_INLINE Wide fma(const Wide& a, const Wide& b, const Wide& c) {
    return {_mm512_fmadd_ps(a.guess, b.guess, c.guess)};
  }
  static CONVOY_INLINE Wide root(const Wide& a) { return {_mm512_sqrt_ps(a.guess)}; }
  static CONVOY_INLINE Wide smaller(const Wide& a, const Wide& b) {
    return {_mm512_min_ps(a.guess, b.guess)};
  }
  static CONVOY_INLINE Wide larger(const Wide& a, const Wide& b) {
    return {_mm512_max_ps(a.guess, b.guess)};
  }
  static CONVOY_INLINE uint32_t below(const Wide& a, const Wide& b) {
    return _mm512_cmp_ps_mask(a.guess, b.guess, _CMP_LT_OQ);
  }
};

// Returns the guess of the row that lane `lane` of register `which` holds: a shuffle takes two
// 64-bit lanes of each register in turn.
constexpr uint32_t guess_of_lane(uint32_t which, uint32_t lane) {
  return 4 * (lane / 2) + 2 * which + lane % 2;
}

CONVOY_INLINE void store_pair(float* first_slot, float* second_slot, const Lanes::Floats& a,
                              const Lanes::Floats& b) {
  _mm512_storeu_ps(second_slot, _mm512_shuffle_ps(a, b, 0x88));
  _mm512_storeu_ps(first_slot, _mm512_shuffle_ps(a, b, 0xDD));
}
