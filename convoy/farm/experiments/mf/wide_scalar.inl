// SPDX-License-Identifier: Apache-2.0
//
// One float of each of kWideGuesses guesses, as plain numbers. This is the reference for the vector
// files, and with one guess the code of a GPU's thread. It uses only operations that IEEE 754
// rounds in one way. Needs Lanes of lanes_scalar.inl.

inline constexpr uint32_t kWideDoubles = 2;  // doubles per register

struct Wide {
  float guess[kWideGuesses];

  template <class Operation>
  static CONVOY_INLINE Wide each(const Operation& operation) {
    Wide result;
    for (int at = 0; at < kWideGuesses; ++at) result.guess[at] = operation(at);
    return result;
  }
  static CONVOY_INLINE Wide load(const float* from) {
    return each([&](int at) { return from[at]; });
  }
  CONVOY_INLINE void store(float* to) const {
    for (int at = 0; at < kWideGuesses; ++at) to[at] = guess[at];
  }
  static CONVOY_INLINE Wide all(float value) {
    return each([&](int) { return value; });
  }
  static CONVOY_INLINE Wide add(const Wide& a, const Wide& b) {
    return each([&](int at) { return a.guess[at] + b.guess[at]; });
  }
  static CONVOY_INLINE Wide multiply(const Wide& a, const Wide& b) {
    return each([&](int at) { return a.guess[at] * b.guess[at]; });
  }
  static CONVOY_INLINE Wide divide(const Wide& a, const Wide& b) {
    return each([&](int at) { return a.guess[at] / b.guess[at]; });
  }
  // a * b + c, rounded once.
  static CONVOY_INLINE Wide fma(const Wide& a, const Wide& b, const Wide& c) {
    return each([&](int at) { return __builtin_fmaf(a.guess[at], b.guess[at], c.guess[at]); });
  }
  static CONVOY_INLINE Wide root(const Wide& a) {
    return each([&](int at) { return __builtin_sqrtf(a.guess[at]); });
  }
  // The smaller number; b if either is NaN, as vector instructions do it.
  static CONVOY_INLINE Wide smaller(const Wide& a, const Wide& b) {
    return each([&](int at) { return a.guess[at] < b.guess[at] ? a.guess[at] : b.guess[at]; });
  }
  static CONVOY_INLINE Wide larger(const Wide& a, const Wide& b) {
    return each([&](int at) { return a.guess[at] > b.guess[at] ? a.guess[at] : b.guess[at]; });
  }
  // A mask: bit g is set if a < b for guess g.
  static CONVOY_INLINE uint32_t below(const Wide& a, const Wide& b) {
    uint32_t mask = 0;
    for (int at = 0; at < kWideGuesses; ++at) mask |= static_cast<uint32_t>(a.guess[at] < b.guess[at]) << at;
    return mask;
  }
};

// Two registers of Lanes are stored together, as one row of 2 * Lanes::kGuesses guesses. Returns
// the guess of the row that lane `lane` of register `which` holds.
constexpr uint32_t guess_of_lane(uint32_t which, uint32_t) { return which; }

CONVOY_INLINE void store_pair(float* first_slot, float* second_slot, const Lanes::Floats& a,
                              const Lanes::Floats& b) {
  second_slot[0] = a.half[0];
  second_slot[1] = b.half[0];
  first_slot[0] = a.half[1];
  first_slot[1] = b.half[1];
}
