// SPDX-License-Identifier: Apache-2.0
//
// Sums of products of the codes of a weight with the codes of a row's block, four inputs of a
// column in each word. BlockSums<bits>: kShift is added to codes so that they have no sign, and the
// sum of a row's block starts with minus the excess that kShift adds. CONVOY_DOT_PRODUCTS: the CPU
// adds four products of bytes in one instruction (VNNI).

using RegisterShorts = int16_t __attribute__((vector_size(4 * kRegisterLanes)));
#if CONVOY_SIMD_LEVEL >= 2
using RegisterBits = __m512i;
#elif CONVOY_SIMD_LEVEL >= 1
using RegisterBits = __m256i;
#else
using RegisterBits = __m128i;
#endif
template <class Register>
CONVOY_INLINE RegisterBits bits_of(Register value) {
  return reinterpret_cast<RegisterBits>(value);
}

CONVOY_INLINE RegisterWords all_words(const void* from) {
  uint32_t word;
  __builtin_memcpy(&word, from, sizeof word);
  return RegisterWords{} + word;
}

// Sums of neighbouring products in 16 bits.
CONVOY_INLINE RegisterInts pair_sums(RegisterShorts a, RegisterShorts b) {
#if CONVOY_SIMD_LEVEL >= 2
  return reinterpret_cast<RegisterInts>(_mm512_madd_epi16(bits_of(a), bits_of(b)));
#elif CONVOY_SIMD_LEVEL >= 1
  return reinterpret_cast<RegisterInts>(_mm256_madd_epi16(bits_of(a), bits_of(b)));
#else
  return reinterpret_cast<RegisterInts>(_mm_madd_epi16(bits_of(a), bits_of(b)));
#endif
}

#if CONVOY_DOT_PRODUCTS

template <int bits>
struct BlockSums {
  static constexpr int32_t kShift = bits == 4 ? 8 : 128;
  using Codes = RegisterWords;
  static CONVOY_INLINE Codes prepared(RegisterWords codes) {
    return bits == 4 ? codes : codes ^ 0x80808080u;
  }
  BlockSums() = default;
  CONVOY_INLINE explicit BlockSums(const RoundedBlock& block)
      : sums(reinterpret_cast<RegisterInts>(all_words(&block.start))) {}
  CONVOY_INLINE void add(Codes codes, RegisterWords row) {
#if CONVOY_SIMD_LEVEL >= 2
    sums = reinterpret_cast<RegisterInts>(
        _mm512_dpbusd_epi32(bits_of(sums), bits_of(codes), bits_of(row)));
#else
    sums = reinterpret_cast<RegisterInts>(
        _mm256_dpbusd_avx_epi32(bits_of(sums), bits_of(codes), bits_of(row)));
#endif
  }
  CONVOY_INLINE RegisterInts total() const { return sums; }
  RegisterInts sums;
};

#elif CONVOY_SIMD_LEVEL >= 1

// Products of unsigned codes and signed bytes, two neighbouring products added: each sum must fit
// 16 bits.
CONVOY_INLINE RegisterShorts byte_pairs(RegisterWords codes, RegisterWords row) {
#if CONVOY_SIMD_LEVEL >= 2
  return reinterpret_cast<RegisterShorts>(_mm512_maddubs_epi16(bits_of(codes), bits_of(row)));
#else
  return reinterpret_cast<RegisterShorts>(_mm256_maddubs_epi16(bits_of(codes), bits_of(row)));
#endif
}
CONVOY_INLINE RegisterInts joined_pairs(RegisterShorts pairs) {
  return pair_sums(pairs, RegisterShorts{} + static_cast<int16_t>(1));
}

template <int bits>
struct BlockSums;

// Two products of bytes within +-127 fit 16 bits once the code's sign has moved to the row's byte.
template <>
struct BlockSums<8> {
  static constexpr int32_t kShift = 0;
#if CONVOY_SIMD_LEVEL >= 2
  struct Codes {
    RegisterWords magnitudes;
    __mmask64 negative;
  };
  static CONVOY_INLINE Codes prepared(RegisterWords codes) {
    return {reinterpret_cast<RegisterWords>(_mm512_abs_epi8(bits_of(codes))),
            _mm512_movepi8_mask(bits_of(codes))};
  }
  static CONVOY_INLINE RegisterWords signed_row(RegisterWords row, const Codes& codes) {
    return reinterpret_cast<RegisterWords>(_mm512_mask_sub_epi8(
        bits_of(row), codes.negative, bits_of(RegisterWords{}), bits_of(row)));
  }
#else
  struct Codes {
    RegisterWords magnitudes;
    RegisterWords codes;
  };
  static CONVOY_INLINE Codes prepared(RegisterWords codes) {
    return {reinterpret_cast<RegisterWords>(_mm256_abs_epi8(bits_of(codes))), codes};
  }
  static CONVOY_INLINE RegisterWords signed_row(RegisterWords row, const Codes& codes) {
    return reinterpret_cast<RegisterWords>(_mm256_sign_epi8(bits_of(row), bits_of(codes.codes)));
  }
#endif
  BlockSums() = default;
  CONVOY_INLINE explicit BlockSums(const RoundedBlock&) : sums{} {}
  CONVOY_INLINE void add(const Codes& codes, RegisterWords row) {
    sums += joined_pairs(byte_pairs(codes.magnitudes, signed_row(row, codes)));
  }
  CONVOY_INLINE RegisterInts total() const { return sums; }
  RegisterInts sums;
};

// A lane of 16 bits adds up 16 products of a block. Codes with their shift make at most 16 x 15 x
// 127, which fits, and so does the start of the sum.
template <>
struct BlockSums<4> {
  static constexpr int32_t kShift = 8;
  using Codes = RegisterWords;
  static CONVOY_INLINE Codes prepared(RegisterWords codes) { return codes; }
  BlockSums() = default;
  CONVOY_INLINE explicit BlockSums(const RoundedBlock& block)
      : sums(reinterpret_cast<RegisterShorts>(all_words(&block.start))) {}
  CONVOY_INLINE void add(Codes codes, RegisterWords row) { sums += byte_pairs(codes, row); }
  CONVOY_INLINE RegisterInts total() const { return joined_pairs(sums); }
  RegisterShorts sums;
};

#else

// The even and the odd bytes of words, widened.
struct WideCodes {
  WideCodes() = default;
  CONVOY_INLINE explicit WideCodes(RegisterWords words)
      : even((reinterpret_cast<RegisterShorts>(words) << 8) >> 8),
        odd(reinterpret_cast<RegisterShorts>(words) >> 8) {}
  RegisterShorts even;
  RegisterShorts odd;
};

template <int bits>
struct BlockSums {
  static constexpr int32_t kShift = bits == 4 ? 8 : 0;
  using Codes = WideCodes;
  static CONVOY_INLINE Codes prepared(RegisterWords codes) { return WideCodes(codes); }
  BlockSums() = default;
  CONVOY_INLINE explicit BlockSums(const RoundedBlock& block)
      : sums(reinterpret_cast<RegisterInts>(all_words(&block.start))) {}
  CONVOY_INLINE void add(const Codes& codes, RegisterWords row) {
    const WideCodes of_row(row);
    sums += pair_sums(codes.even, of_row.even) + pair_sums(codes.odd, of_row.odd);
  }
  CONVOY_INLINE RegisterInts total() const { return sums; }
  RegisterInts sums;
};

#endif

// The start of nibbles is one number for each of the two 16-bit lanes of a word, where sums have
// such lanes.
constexpr bool kPairedStart = CONVOY_SIMD_LEVEL >= 1 && !CONVOY_DOT_PRODUCTS;
