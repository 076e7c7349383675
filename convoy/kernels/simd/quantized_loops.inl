// SPDX-License-Identifier: Apache-2.0
//
// Codes of a quantised weight to a panel of the GEMM loops. See panel_gemm.inl.

// Two rows of k of sixteen columns.
CONVOY_INLINE void store_pair(c10::BFloat16* to, Floats first, Floats second) {
#if CONVOY_SIMD_LEVEL >= 3
  const auto both = reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(second), reinterpret_cast<__m512>(first)));
  const __m512i order = _mm512_setr_epi32(
      0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006, 0x170007, 0x180008,
      0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi16(order, both));
#else
  const Words words = (rounded_words(first) >> 16) | (rounded_words(second) & 0xffff0000u);
  __builtin_memcpy(to, &words, sizeof words);
#endif
}

// value(row, half): row `row` of the first or second sixteen columns.
template <class Element, class Value>
CONVOY_INLINE void unpack_panel(int64_t k, Element* panel, const Value& value) {
  for (int64_t half = 0; half < 2; ++half) {
    if constexpr (std::is_same_v<Element, float>) {
      for (int64_t row = 0; row < k; ++row)
        store(panel + row * kPanelColumns + half * kLanes, value(row, half));
    } else {
      Element* to = panel + half * kLanes * kPair<Element>;
      int64_t row = 0;
      for (; row + 2 <= k; row += 2)
        store_pair(to + row * kPanelColumns, value(row, half), value(row + 1, half));
      if (row < k) store_pair(to + row * kPanelColumns, value(row, half), Floats{});
    }
  }
}

template <class Element>
void unpack_bytes(const int8_t* codes, const float* scales, int64_t k, Element* panel) {
  const Floats scale[2] = {load(scales), load(scales + kLanes)};
  unpack_panel(k, panel, [&](int64_t row, int64_t half) __attribute__((always_inline)) {
    return load(codes + row * kPanelColumns + half * kLanes) * scale[half];
  });
}

template <class Element>
void unpack_nibbles(const uint8_t* codes, const float* scales, const float* offsets, int64_t k,
                    Element* panel) {
  const Floats scale[2] = {load(scales), load(scales + kLanes)};
  const Floats offset[2] = {load(offsets), load(offsets + kLanes)};
  unpack_panel(k, panel, [&](int64_t row, int64_t half) __attribute__((always_inline)) {
    using Codes = uint8_t __attribute__((vector_size(16)));
    Codes both;
    __builtin_memcpy(&both, codes + row * kLanes, sizeof both);
    const Ints wide = __builtin_convertvector(both, Ints);
    return __builtin_convertvector(half == 0 ? wide & 15 : wide >> 4, Floats) * scale[half] +
           offset[half];
  });
}
