// SPDX-License-Identifier: Apache-2.0
//
// One counter as plain numbers. This is the reference for the vector files, and the code of CPUs
// without AVX2 and of a GPU's thread. A 64-bit lane is kept as its halves, the lower one first;
// Floats holds one normal per half.

#undef CONVOY_INLINE
#define CONVOY_INLINE inline __attribute__((always_inline))

struct Lanes {
  static constexpr uint32_t kGuesses = 1;  // number of 64-bit lanes
  struct Words {
    uint32_t half[2];
  };
  struct Floats {
    float half[2];
  };

  static CONVOY_INLINE Words all_words(uint64_t value) {
    return {{static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)}};
  }
  static CONVOY_INLINE Words load_guesses(const uint32_t* guesses) { return {{guesses[0], 0}}; }
  // Multiplies the lower halves of the lanes.
  static CONVOY_INLINE Words multiply(Words a, Words b) {
#if defined(__CUDA_ARCH__)
    // Without this assembly the compiler widens the halves to 64-bit numbers, at three times the
    // cost.
    Words product;
    asm("{ .reg .b64 both; mul.wide.u32 both, %2, %3; mov.b64 {%0, %1}, both; }"
        : "=r"(product.half[0]), "=r"(product.half[1])
        : "r"(a.half[0]), "r"(b.half[0]));
    return product;
#else
    return all_words(uint64_t{a.half[0]} * b.half[0]);
#endif
  }
  static CONVOY_INLINE Words high(Words a) { return {{a.half[1], 0}}; }
  static CONVOY_INLINE Words raise(Words a) { return {{0, a.half[0]}}; }
  static CONVOY_INLINE Words xor_of(Words a, Words b) {
    return {{a.half[0] ^ b.half[0], a.half[1] ^ b.half[1]}};
  }
  static CONVOY_INLINE Words xor_of(Words a, Words b, Words c) {
    return {{a.half[0] ^ b.half[0] ^ c.half[0], a.half[1] ^ b.half[1] ^ c.half[1]}};
  }

  static CONVOY_INLINE uint32_t bits_of(float value) {
    uint32_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
  }
  static CONVOY_INLINE float float_of(uint32_t bits) {
    float value = 0;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
  }

  // float(int32(word | 1)), which is never 0.
  static CONVOY_INLINE Floats odd_to_float(Words words) {
    Floats result;
    for (int at = 0; at < 2; ++at)
      result.half[at] = static_cast<float>(static_cast<int32_t>(words.half[at] | 1u));
    return result;
  }
  // float(int32((word & mask) | bits)).
  static CONVOY_INLINE Floats masked_to_number(Words words, uint32_t mask, uint32_t bits) {
    return {{static_cast<float>(static_cast<int32_t>((words.half[0] & mask) | bits)),
             static_cast<float>(static_cast<int32_t>((words.half[1] & mask) | bits))}};
  }
  // Moves the lowest bit of each half to its highest bit.
  static CONVOY_INLINE Words lowest_to_top(Words a) { return {{a.half[0] << 31, a.half[1] << 31}}; }
  // (word & mask) | bits, read as a float.
  static CONVOY_INLINE Floats masked_to_float(Words words, uint32_t mask, uint32_t bits) {
    return {{float_of((words.half[0] & mask) | bits), float_of((words.half[1] & mask) | bits)}};
  }
  // The exponent in |a| = mantissa * 2^exponent with 1 <= mantissa < 2. `a` must be a normal float.
  static CONVOY_INLINE Floats exponent(Floats a) {
    constexpr float kUnitsAre1 = 0x1p23f;  // the last bit of a float of this size stands for 1
    Floats result;
    for (int at = 0; at < 2; ++at)
      result.half[at] =
          float_of(((bits_of(a.half[at]) >> 23) & 255u) | bits_of(kUnitsAre1)) - (kUnitsAre1 + 127);
    return result;
  }
  static CONVOY_INLINE Floats mantissa(Floats a) {
    return {{float_of((bits_of(a.half[0]) & 0x7FFFFFu) | 0x3F800000u),
             float_of((bits_of(a.half[1]) & 0x7FFFFFu) | 0x3F800000u)}};
  }
  // a, with its sign flipped if `sign` is negative.
  static CONVOY_INLINE Floats flip_sign(Floats a, Floats sign) {
    return {{float_of(bits_of(a.half[0]) ^ (bits_of(sign.half[0]) & 0x80000000u)),
             float_of(bits_of(a.half[1]) ^ (bits_of(sign.half[1]) & 0x80000000u))}};
  }
  // a in the halves whose highest bit is set in `words`, b in the others.
  static CONVOY_INLINE Floats choose(Words words, Floats a, Floats b) {
    return {
        {words.half[0] >> 31 ? a.half[0] : b.half[0], words.half[1] >> 31 ? a.half[1] : b.half[1]}};
  }
  static CONVOY_INLINE Floats keep(Floats a, Words mask) {
    return {
        {float_of(bits_of(a.half[0]) & mask.half[0]), float_of(bits_of(a.half[1]) & mask.half[1])}};
  }

  static CONVOY_INLINE Floats all(float value) { return {{value, value}}; }
  static CONVOY_INLINE Floats add(Floats a, Floats b) {
    return {{a.half[0] + b.half[0], a.half[1] + b.half[1]}};
  }
  static CONVOY_INLINE Floats subtract(Floats a, Floats b) {
    return {{a.half[0] - b.half[0], a.half[1] - b.half[1]}};
  }
  static CONVOY_INLINE Floats multiply(Floats a, Floats b) {
    return {{a.half[0] * b.half[0], a.half[1] * b.half[1]}};
  }
  // a * b + c, rounded once.
  static CONVOY_INLINE Floats fma(Floats a, Floats b, Floats c) {
    return {{__builtin_fmaf(a.half[0], b.half[0], c.half[0]),
             __builtin_fmaf(a.half[1], b.half[1], c.half[1])}};
  }
  static CONVOY_INLINE Floats root(Floats a) {
    return {{__builtin_sqrtf(a.half[0]), __builtin_sqrtf(a.half[1])}};
  }
  // to[guess] = lower + upper half.
  static CONVOY_INLINE void store_sums(float* to, Floats a) { to[0] = a.half[0] + a.half[1]; }
  static CONVOY_INLINE void store_halves(float* lower, float* upper, Floats a) {
    lower[0] = a.half[0];
    upper[0] = a.half[1];
  }
};
