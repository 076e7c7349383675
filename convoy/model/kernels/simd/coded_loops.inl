// SPDX-License-Identifier: Apache-2.0
//
// Values of codes of a coded weight: a table of sixteen in registers, or whole numbers times a
// scale.

#if CONVOY_SIMD_LEVEL == 1
CONVOY_INLINE Floats look_up(Floats table, Words places) {
  struct Halves8 {
    __m256 low, high;
  };
  const auto numbers = __builtin_bit_cast(Halves8, table);
  const auto wanted = __builtin_bit_cast(Halves8, places);
  const auto of_eight = [&](__m256 place) {
    const __m256i index = _mm256_castps_si256(place);
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(numbers.low, index),
                            _mm256_permutevar8x32_ps(numbers.high, index),
                            _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
  };
  return __builtin_bit_cast(Floats, (Halves8{of_eight(wanted.low), of_eight(wanted.high)}));
}
#elif CONVOY_SIMD_LEVEL >= 2
CONVOY_INLINE Floats look_up(Floats table, Words places) {
  return reinterpret_cast<Floats>(_mm512_maskz_permutexvar_ps(
      0xffff, reinterpret_cast<__m512i>(places), reinterpret_cast<__m512>(table)));
}
#else
CONVOY_INLINE Floats look_up(Floats table, Words places) {
  float numbers[kLanes];
  float found[kLanes];
  store(numbers, table);
  for (int64_t lane = 0; lane < kLanes; ++lane) found[lane] = numbers[places[lane] & 15u];
  return load(found);
}
#endif

// Sixteen bytes as words. The compiler's own conversion would convert them one by one.
#if CONVOY_SIMD_LEVEL >= 2
CONVOY_INLINE Words load_bytes(const uint8_t* from) {
  return reinterpret_cast<Words>(_mm512_maskz_cvtepu8_epi32(
      0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
CONVOY_INLINE Ints load_bytes(const int8_t* from) {
  return reinterpret_cast<Ints>(_mm512_maskz_cvtepi8_epi32(
      0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
#elif CONVOY_SIMD_LEVEL == 1
struct WordHalves {
  __m256i low, high;
};
CONVOY_INLINE Words load_bytes(const uint8_t* from) {
  const auto half = [](const uint8_t* bytes) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
  };
  return __builtin_bit_cast(Words, (WordHalves{half(from), half(from + 8)}));
}
CONVOY_INLINE Ints load_bytes(const int8_t* from) {
  const auto half = [](const int8_t* bytes) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
  };
  return __builtin_bit_cast(Ints, (WordHalves{half(from), half(from + 8)}));
}
#else
CONVOY_INLINE Words load_bytes(const uint8_t* from) {
  uint32_t words[kLanes];
  for (int64_t lane = 0; lane < kLanes; ++lane) words[lane] = from[lane];
  return load_as<Words>(words);
}
CONVOY_INLINE Ints load_bytes(const int8_t* from) {
  int32_t words[kLanes];
  for (int64_t lane = 0; lane < kLanes; ++lane) words[lane] = from[lane];
  return load(words);
}
#endif

// Pairs of neighbours, side by side.
CONVOY_INLINE void store_pairs(float* to, Floats first, Floats second) {
#if CONVOY_SIMD_LEVEL >= 2
  constexpr Ints kLow = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
  store(to, __builtin_shuffle(first, second, kLow));
  store(to + kLanes, __builtin_shuffle(first, second, kLow + 8));
#elif CONVOY_SIMD_LEVEL == 1
  constexpr RegisterInts kLow = {0, 8, 1, 9, 2, 10, 3, 11};
  const auto store_eight = [&](int64_t at, RegisterFloats a, RegisterFloats b) {
    const RegisterFloats lower = __builtin_shuffle(a, b, kLow);
    const RegisterFloats upper = __builtin_shuffle(a, b, kLow + 4);
    store_registers(to + at, lower);
    store_registers(to + at + kRegisterLanes, upper);
  };
  store_eight(0, first.low, second.low);
  store_eight(kLanes, first.high, second.high);
#else
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    to[2 * lane] = first[lane];
    to[2 * lane + 1] = second[lane];
  }
#endif
}
// The same for numbers that bf16 holds without rounding.
CONVOY_INLINE void store_pairs(c10::BFloat16* to, Floats first, Floats second) {
  const Words words =
      (words_of(first) >> 16) | (words_of(second) & 0xffff0000u);
  store_registers(to, words);
}

CONVOY_INLINE Floats rounded_to(Floats values, const float*) { return values; }
CONVOY_INLINE Floats rounded_to(Floats values, const c10::BFloat16*) {
  return floats_of(rounded_words(values) & 0xffff0000u);
}

template <class Element>
void decode_nibbles(const uint8_t* codes, int64_t first, const NibbleScale& scale, Element* to,
                    int64_t count) {
  const Floats numbers = rounded_to(load(scale.table) * scale.absmax, to);
  float table[kLanes];
  store(table, numbers);
  const auto one = [&](int64_t element) {
    const unsigned byte = codes[element / 2];
    return Element(table[element % 2 == 0 ? byte >> 4 : byte & 15u]);
  };
  const int64_t end = first + count;
  if (first % 2 == 1 && first < end) *to++ = one(first++);
  for (; first + 2 * kLanes <= end; first += 2 * kLanes, to += 2 * kLanes) {
    const Words bytes = load_bytes(codes + first / 2);
    store_pairs(to, look_up(numbers, bytes >> 4), look_up(numbers, bytes & 15u));
  }
  for (; first < end; ++first) *to++ = one(first);
}

CONVOY_INLINE Floats numbers_of(const Ints& codes) {
  return by_register<Floats>(
      [](RegisterInts part) { return __builtin_convertvector(part, RegisterFloats); }, codes);
}

template <class Element>
void decode_bytes(const int8_t* codes, float absmax, Element* to, int64_t count) {
  // bitsandbytes' 1 / 127. The product of code and absmax is rounded before it is multiplied by
  // kStep.
  constexpr float kStep = 7.874015718698502e-3f;
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes)
    store(to + at, numbers_of(load_bytes(codes + at)) * absmax * kStep);
  for (; at < count; ++at) to[at] = Element(static_cast<float>(codes[at]) * absmax * kStep);
}
