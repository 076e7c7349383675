// SPDX-License-Identifier: Apache-2.0
//
// One float of each of sixteen guesses in two registers; see wide_scalar.inl for the meaning.

inline constexpr uint32_t kWideDoubles = 4;  // doubles per register

struct Wide {
  __m256 low, high;

  static CONVOY_INLINE Wide load(const float* from) {
    return {_mm256_load_ps(from), _mm256_load_ps(from + 8)};
  }
  CONVOY_INLINE void store(float* to) const {
    _mm256_store_ps(to, low);
    _mm256_store_ps(to + 8, high);
  }
  static CONVOY_INLINE Wide all(float value) {
    return {_mm256_set1_ps(value), _mm256_set1_ps(value)};
  }
  static CONVOY_INLINE Wide add(const Wide& a, const Wide& b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static CONVOY_INLINE Wide multiply(const Wide& a, const Wide& b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static CONVOY_INLINE Wide divide(const Wide& a, const Wide& b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static CONVOY_INLINE Wide fma(const Wide& a, const Wide& b, const Wide& c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static CONVOY_INLINE Wide root(const Wide& a) {
    return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)};
  }
  static CONVOY_INLINE Wide smaller(const Wide& a, const Wide& b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  static CONVOY_INLINE Wide larger(const Wide& a, const Wide& b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  static CONVOY_INLINE uint32_t below(const Wide& a, const Wide& b) {
    const int low = _mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ));
    const int high = _mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ));
    return static_cast<uint32_t>(low) | static_cast<uint32_t>(high) << 8;
  }
};

// Returns the guess of the row that lane `lane` of register `which` holds: a shuffle takes two
// 64-bit lanes of each register in turn.
constexpr uint32_t guess_of_lane(uint32_t which, uint32_t lane) {
  return 4 * (lane / 2) + 2 * which + lane % 2;
}

CONVOY_INLINE void store_pair(float* first_slot, float* second_slot, const Lanes::Floats& a,
                              const Lanes::Floats& b) {
  _mm256_storeu_ps(second_slot, _mm256_shuffle_ps(a, b, 0x88));
  _mm256_storeu_ps(first_slot, _mm256_shuffle_ps(a, b, 0xDD));
}
