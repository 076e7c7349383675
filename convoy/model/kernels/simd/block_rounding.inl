// SPDX-License-Identifier: Apache-2.0
//
// Rows rounded to 8 bits, in the order in which integer_dots.inl reads them. See block_sums.inl.

using Bytes16 = int8_t __attribute__((vector_size(16)));

// Eight successive inputs in the order of the nibbles of a word's bytes: 0, 4, 1, 5 in the lower
// halves, 2, 6, 3, 7 in the upper halves.
CONVOY_INLINE Bytes16 in_nibble_order(Bytes16 codes) {
  return __builtin_shuffle(codes, Bytes16{0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15});
}

constexpr int64_t kRegistersOfBlock = kRoundedInputs / kRegisterLanes;

CONVOY_INLINE RegisterFloats load_floats(const float* from) {
  return load_register<RegisterFloats>(from);
}
CONVOY_INLINE RegisterFloats load_floats(const c10::BFloat16* from) { return load_wide(from); }

// The largest magnitude by its bits, which have the order of the numbers; the bits of NaN lie above
// all others.
CONVOY_INLINE float largest_magnitude(const RegisterFloats (&values)[kRegistersOfBlock]) {
  using Ints4 = int32_t __attribute__((vector_size(16)));
  using Floats4 = float __attribute__((vector_size(16)));
  const auto larger_of = [](auto a, auto b) { return a > b ? a : b; };
  RegisterInts bits{};
#pragma GCC unroll 8
  for (const RegisterFloats& value : values)
    bits = larger_of(bits, reinterpret_cast<RegisterInts>(value) & 0x7fffffff);
  Ints4 parts[kRegisterLanes / 4];
  __builtin_memcpy(parts, &bits, sizeof parts);
  Ints4 best = parts[0];
  for (const Ints4& part : parts) best = larger_of(best, part);
  best = larger_of(best, __builtin_shuffle(best, Ints4{2, 3, 0, 1}));
  best = larger_of(best, __builtin_shuffle(best, Ints4{1, 0, 3, 2}));
  return reinterpret_cast<Floats4>(best)[0];
}

struct BlockCodes {
  Bytes16 halves[2];
};
// Whole numbers nearest to values * steps, within +-127, ties to even.
CONVOY_INLINE BlockCodes nearest_codes(const RegisterFloats (&values)[kRegistersOfBlock],
                                       float steps) {
  __m128i words[kRoundedInputs / 4];
#pragma GCC unroll 8
  for (int64_t at = 0; at < kRegistersOfBlock; ++at) {
    // Adding 1.5 * 2^23 leaves the number in the low bits.
    const auto shifted = reinterpret_cast<RegisterInts>(values[at] * steps + 12582912.0f);
    const RegisterInts codes = shifted - 0x4b400000;
    __builtin_memcpy(words + at * kRegisterLanes / 4, &codes, sizeof codes);
  }
  BlockCodes codes;
#pragma GCC unroll 2
  for (int64_t half = 0; half < 2; ++half) {
    const __m128i* of_half = words + 4 * half;
    codes.halves[half] = reinterpret_cast<Bytes16>(_mm_packs_epi16(
        _mm_packs_epi32(of_half[0], of_half[1]), _mm_packs_epi32(of_half[2], of_half[3])));
  }
  return codes;
}

// Sums of the codes in the lower and in the upper two bytes of words.
struct HalfSums {
  int32_t lower, upper;
};
CONVOY_INLINE HalfSums half_sums(const BlockCodes& codes) {
  __m128i total = _mm_setzero_si128();  // 16 bits: the lower and upper halves of four words
  for (const Bytes16& part : codes.halves) {
    const auto bytes = reinterpret_cast<__m128i>(part);
    const __m128i even = _mm_srai_epi16(_mm_slli_epi16(bytes, 8), 8);
    total = _mm_add_epi16(total, _mm_add_epi16(even, _mm_srai_epi16(bytes, 8)));
  }
  total = _mm_add_epi16(total, _mm_shuffle_epi32(total, 0x4e));
  total = _mm_add_epi16(total, _mm_shuffle_epi32(total, 0xb1));
  const int32_t both = _mm_cvtsi128_si32(total);
  return {static_cast<int16_t>(both & 0xffff), both >> 16};
}

// The start value of a block's sum of products with codes + kShift. It subtracts the part that
// kShift adds.
template <int bits>
CONVOY_INLINE int32_t start_of(HalfSums sums) {
  constexpr int32_t kShift = BlockSums<bits>::kShift;
  if (bits == 8 || !kPairedStart) return -kShift * (sums.lower + sums.upper);
  return static_cast<int32_t>(static_cast<uint32_t>(-kShift * sums.upper) << 16 |
                              (static_cast<uint32_t>(-kShift * sums.lower) & 0xffffu));
}

template <int bits, class Element>
CONVOY_INLINE void round_block(const Element* from, RoundedBlock& block) {
  constexpr float kMostCode = 127.0f;
  RegisterFloats values[kRegistersOfBlock];
#pragma GCC unroll 8
  for (int64_t at = 0; at < kRegistersOfBlock; ++at)
    values[at] = load_floats(from + at * kRegisterLanes);
  const float most = largest_magnitude(values);
  float scale = most / kMostCode;
  float steps = kMostCode / most;
  if (scale < std::numeric_limits<float>::min()) scale = steps = 0.0f;
  if (!(most <= std::numeric_limits<float>::max()))
    scale = std::numeric_limits<float>::quiet_NaN();  // makes the row's products NaN too
  BlockCodes codes = nearest_codes(values, steps);
  if constexpr (bits == 4)
    for (Bytes16& half : codes.halves) half = in_nibble_order(half);
  const HalfSums sums = half_sums(codes);
  block.scale = scale;
  block.sum = scale * static_cast<float>(sums.lower + sums.upper);
  block.start = start_of<bits>(sums);
  __builtin_memcpy(block.codes, &codes, sizeof codes);
}

// Rounds a row to blocks, the last one filled up with zeros.
template <class Element, int bits>
void round_to_bytes(const Element* values, int64_t count, RoundedBlock* blocks) {
  int64_t first = 0;
  for (; first + kRoundedInputs <= count; first += kRoundedInputs)
    round_block<bits>(values + first, *blocks++);
  if (first == count) return;
  Element last[kRoundedInputs];
  for (int64_t at = 0; at < kRoundedInputs; ++at)
    last[at] = first + at < count ? values[first + at] : Element(0.0f);
  round_block<bits>(last, *blocks);
}
