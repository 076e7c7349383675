// SPDX-License-Identifier: Apache-2.0
//
// Two registers with the operations of one register. Instructions for the first and the second
// alternate, so that the latency of one hides behind the work of the other. Needs CONVOY_INLINE.

template <class Half>
struct Twice {
  static constexpr uint32_t kGuesses = 2 * Half::kGuesses;
  struct Words {
    typename Half::Words first, second;
  };
  struct Floats {
    typename Half::Floats first, second;
  };

  static CONVOY_INLINE Words all_words(uint64_t value) {
    return {Half::all_words(value), Half::all_words(value)};
  }
  static CONVOY_INLINE Words load_guesses(const uint32_t* guesses) {
    return {Half::load_guesses(guesses), Half::load_guesses(guesses + Half::kGuesses)};
  }
  static CONVOY_INLINE Words multiply(Words a, Words b) {
    return {Half::multiply(a.first, b.first), Half::multiply(a.second, b.second)};
  }
  static CONVOY_INLINE Words high(Words a) { return {Half::high(a.first), Half::high(a.second)}; }
  static CONVOY_INLINE Words raise(Words a) {
    return {Half::raise(a.first), Half::raise(a.second)};
  }
  static CONVOY_INLINE Words xor_of(Words a, Words b) {
    return {Half::xor_of(a.first, b.first), Half::xor_of(a.second, b.second)};
  }
  static CONVOY_INLINE Words xor_of(Words a, Words b, Words c) {
    return {Half::xor_of(a.first, b.first, c.first), Half::xor_of(a.second, b.second, c.second)};
  }
  static CONVOY_INLINE Floats odd_to_float(Words words) {
    return {Half::odd_to_float(words.first), Half::odd_to_float(words.second)};
  }
  static CONVOY_INLINE Floats masked_to_number(Words words, uint32_t mask, uint32_t bits) {
    return {Half::masked_to_number(words.first, mask, bits),
            Half::masked_to_number(words.second, mask, bits)};
  }
  static CONVOY_INLINE Floats masked_to_float(Words words, uint32_t mask, uint32_t bits) {
    return {Half::masked_to_float(words.first, mask, bits),
            Half::masked_to_float(words.second, mask, bits)};
  }
  static CONVOY_INLINE Words lowest_to_top(Words a) {
    return {Half::lowest_to_top(a.first), Half::lowest_to_top(a.second)};
  }
  static CONVOY_INLINE Floats exponent(Floats a) {
    return {Half::exponent(a.first), Half::exponent(a.second)};
  }
  static CONVOY_INLINE Floats mantissa(Floats a) {
    return {Half::mantissa(a.first), Half::mantissa(a.second)};
  }
  static CONVOY_INLINE Floats flip_sign(Floats a, Floats sign) {
    return {Half::flip_sign(a.first, sign.first), Half::flip_sign(a.second, sign.second)};
  }
  static CONVOY_INLINE Floats choose(Words words, Floats a, Floats b) {
    return {Half::choose(words.first, a.first, b.first),
            Half::choose(words.second, a.second, b.second)};
  }
  static CONVOY_INLINE Floats keep(Floats a, Words mask) {
    return {Half::keep(a.first, mask.first), Half::keep(a.second, mask.second)};
  }
  static CONVOY_INLINE Floats all(float value) { return {Half::all(value), Half::all(value)}; }
  static CONVOY_INLINE Floats add(Floats a, Floats b) {
    return {Half::add(a.first, b.first), Half::add(a.second, b.second)};
  }
  static CONVOY_INLINE Floats subtract(Floats a, Floats b) {
    return {Half::subtract(a.first, b.first), Half::subtract(a.second, b.second)};
  }
  static CONVOY_INLINE Floats multiply(Floats a, Floats b) {
    return {Half::multiply(a.first, b.first), Half::multiply(a.second, b.second)};
  }
  static CONVOY_INLINE Floats fma(Floats a, Floats b, Floats c) {
    return {Half::fma(a.first, b.first, c.first), Half::fma(a.second, b.second, c.second)};
  }
  static CONVOY_INLINE Floats root(Floats a) { return {Half::root(a.first), Half::root(a.second)}; }
  static CONVOY_INLINE void store_sums(float* to, Floats a) {
    Half::store_sums(to, a.first);
    Half::store_sums(to + Half::kGuesses, a.second);
  }
  static CONVOY_INLINE void store_halves(float* lower, float* upper, Floats a) {
    Half::store_halves(lower, upper, a.first);
    Half::store_halves(lower + Half::kGuesses, upper + Half::kGuesses, a.second);
  }
};
