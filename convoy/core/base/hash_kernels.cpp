// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/hash_kernels.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace convoy {
namespace {

// First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4,
// 4.2.2).
alignas(16) constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void sha256_portable(uint32_t* state, const uint8_t* blocks, size_t num_blocks) {
  for (; num_blocks > 0; --num_blocks, blocks += 64) {
    std::array<uint32_t, 64> w;
    for (size_t t = 0; t < 16; ++t)
      w[t] = uint32_t{blocks[4 * t]} << 24 | uint32_t{blocks[4 * t + 1]} << 16 |
             uint32_t{blocks[4 * t + 2]} << 8 | uint32_t{blocks[4 * t + 3]};
    for (size_t t = 16; t < 64; ++t) {
      const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
      const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
      w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    std::array<uint32_t, 8> before;
    std::memcpy(before.data(), state, sizeof(before));
    auto [a, b, c, d, e, f, g, h] = before;
    for (size_t t = 0; t < 64; ++t) {
      const uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                          ((e & f) ^ (~e & g)) + kRound[t] + w[t];
      const uint32_t t2 =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
    for (size_t word = 0; word < 8; ++word) state[word] = before[word] + added[word];
  }
}

// Table k holds the checksums of each byte followed by k zero bytes. Eight bytes then take eight
// look-ups that do not depend on each other (Kounavis and Berry, 2008).
constexpr std::array<std::array<uint32_t, 256>, 8> make_crc_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78u : 0u);
    tables[0][byte] = value;
  }
  for (size_t table = 1; table < 8; ++table)
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[table - 1][byte];
      tables[table][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  return tables;
}
constexpr auto kCrcTables = make_crc_tables();

uint32_t crc32c_portable(std::string_view bytes, uint32_t state) {
  const auto byte_at = [&](size_t at) { return static_cast<uint8_t>(bytes[at]); };
  while (bytes.size() >= 8) {
    const uint32_t low = state ^ (uint32_t{byte_at(0)} | uint32_t{byte_at(1)} << 8 |
                                  uint32_t{byte_at(2)} << 16 | uint32_t{byte_at(3)} << 24);
    state = kCrcTables[7][low & 0xff] ^ kCrcTables[6][(low >> 8) & 0xff] ^
            kCrcTables[5][(low >> 16) & 0xff] ^ kCrcTables[4][low >> 24] ^
            kCrcTables[3][byte_at(4)] ^ kCrcTables[2][byte_at(5)] ^ kCrcTables[1][byte_at(6)] ^
            kCrcTables[0][byte_at(7)];
    bytes.remove_prefix(8);
  }
  for (const char byte : bytes)
    state = (state >> 8) ^ kCrcTables[0][(state ^ static_cast<uint8_t>(byte)) & 0xff];
  return state;
}

constexpr HashKernels kPortable = {"portable", sha256_portable, crc32c_portable};

#if defined(__x86_64__)

// Two registers hold the words A B E F and C D G H, in the order that the SHA instructions expect.
// Each instruction does two rounds.
__attribute__((target("sha,sse4.1"))) void sha256_by_instructions(uint32_t* state,
                                                                  const uint8_t* blocks,
                                                                  size_t num_blocks) {
  auto* const words = reinterpret_cast<__m128i*>(state);
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, hgfe, 8);
  __m128i cdgh = _mm_blend_epi16(hgfe, cdab, 0xf0);
  for (; num_blocks > 0; --num_blocks, blocks += 64) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i w[4];
#pragma GCC unroll 4
    for (int four = 0; four < 4; ++four)
      w[four] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks) + four),
                                 big_endian);
#pragma GCC unroll 16
    for (int four = 0; four < 16; ++four) {
      __m128i& now = w[four % 4];
      const __m128i next = w[(four + 1) % 4];
      const __m128i last = w[(four + 3) % 4];
      const __m128i sum = _mm_add_epi32(
          now, _mm_load_si128(reinterpret_cast<const __m128i*>(kRound.data()) + four));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      if (four < 12)
        now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, next),
                                                 _mm_alignr_epi8(last, w[(four + 2) % 4], 4)),
                                   last);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

__attribute__((target("sse4.2"))) uint32_t crc32c_by_instruction(std::string_view bytes,
                                                                 uint32_t state) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  const auto take = [&](auto word) {
    std::memcpy(&word, at, sizeof(word));
    at += sizeof(word);
    left -= sizeof(word);
    return word;
  };
  uint64_t wide = state;
  while (left >= 8) wide = __builtin_ia32_crc32di(wide, take(uint64_t{}));
  state = static_cast<uint32_t>(wide);
  if (left >= 4) state = __builtin_ia32_crc32si(state, take(uint32_t{}));
  if (left >= 2) state = __builtin_ia32_crc32hi(state, take(uint16_t{}));
  if (left >= 1) state = __builtin_ia32_crc32qi(state, take(uint8_t{}));
  return state;
}

HashKernels choose() {
  HashKernels chosen = kPortable;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) {
    const bool sse41 = (ecx & bit_SSE4_1) != 0;
    if ((ecx & bit_SSE4_2) != 0) chosen.crc32c = crc32c_by_instruction;
    if (sse41 && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & bit_SHA) != 0)
      chosen.sha256 = sha256_by_instructions;
  }
  if (chosen.sha256 != kPortable.sha256 || chosen.crc32c != kPortable.crc32c)
    chosen.name = "instructions";
  return chosen;
}

#else

HashKernels choose() { return kPortable; }

#endif

}  // namespace

const HashKernels& portable_hash_kernels() { return kPortable; }

const HashKernels& best_hash_kernels() {
  static const HashKernels best = choose();
  return best;
}

}  // namespace convoy
