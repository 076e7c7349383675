// SPDX-License-Identifier: Apache-2.0
#include "convoy/base/hash.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <fstream>

#include "convoy/base/error.h"

namespace convoy {
namespace {

// First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78u : 0u);
    table[byte] = value;
  }
  return table;
}
constexpr auto kCrcTable = make_crc_table();

}  // namespace

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::compress(const uint8_t* block) {
  std::array<uint32_t, 64> w;
  for (size_t t = 0; t < 16; ++t)
    w[t] = uint32_t{block[4 * t]} << 24 | uint32_t{block[4 * t + 1]} << 16 |
           uint32_t{block[4 * t + 2]} << 8 | uint32_t{block[4 * t + 3]};
  for (size_t t = 16; t < 64; ++t) {
    const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t t = 0; t < 64; ++t) {
    const uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                        ((e & f) ^ (~e & g)) + kRound[t] + w[t];
    const uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (size_t word = 0; word < 8; ++word) state_[word] += added[word];
}

void Sha256::update(std::string_view bytes) {
  total_bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (buffered_bytes_ == 0 && bytes.size() >= 64) {
      compress(reinterpret_cast<const uint8_t*>(bytes.data()));
      bytes.remove_prefix(64);
      continue;
    }
    const size_t count = std::min(bytes.size(), 64 - buffered_bytes_);
    std::memcpy(buffer_.data() + buffered_bytes_, bytes.data(), count);
    buffered_bytes_ += count;
    bytes.remove_prefix(count);
    if (buffered_bytes_ == 64) {
      compress(buffer_.data());
      buffered_bytes_ = 0;
    }
  }
}

void Sha256::update(std::span<const std::byte> bytes) {
  update(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::array<uint8_t, 32> Sha256::digest() {
  const uint64_t total_bits = total_bytes_ * 8;
  update(std::string_view("\x80", 1));
  while (buffered_bytes_ != 56) update(std::string_view("\0", 1));
  std::array<char, 8> length;
  for (size_t byte = 0; byte < 8; ++byte)
    length[byte] = static_cast<char>(total_bits >> (56 - 8 * byte));
  update(std::string_view(length.data(), 8));
  std::array<uint8_t, 32> bytes;
  for (size_t byte = 0; byte < 32; ++byte)
    bytes[byte] = static_cast<uint8_t>(state_[byte / 4] >> (24 - 8 * (byte % 4)));
  return bytes;
}

std::string Sha256::hex() {
  std::string text;
  for (const uint8_t byte : digest()) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  constexpr size_t kBlockBytes = 64;
  const auto text_of = [](const std::array<uint8_t, 32>& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  std::string block(key);
  if (block.size() > kBlockBytes) {
    Sha256 hash;
    hash.update(key);
    block = text_of(hash.digest());
  }
  block.resize(kBlockBytes, '\0');
  std::string inner = block;
  std::string outer = block;
  for (char& byte : inner) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  Sha256 inner_hash;
  inner_hash.update(inner);
  inner_hash.update(message);
  Sha256 outer_hash;
  outer_hash.update(outer);
  outer_hash.update(text_of(inner_hash.digest()));
  return text_of(outer_hash.digest());
}

bool equal_in_constant_time(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  volatile uint8_t difference = 0;
  for (size_t byte = 0; byte < left.size(); ++byte)
    difference = static_cast<uint8_t>(difference | (left[byte] ^ right[byte]));
  return difference == 0;
}

std::string sha256_hex_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError("cannot read the file", {.file = path.string()});
  Sha256 hash;
  std::string chunk(1 << 20, '\0');
  while (file) {
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    hash.update(std::string_view(chunk.data(), static_cast<size_t>(file.gcount())));
  }
  return hash.hex();
}

namespace {

uint32_t crc_by_table(std::string_view bytes, uint32_t crc) {
  for (const char byte : bytes)
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc_by_instruction(std::string_view bytes,
                                                              uint32_t crc) {
  uint64_t wide = crc;
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    wide = __builtin_ia32_crc32di(wide, word);
  }
  return crc_by_table(bytes.substr(at), static_cast<uint32_t>(wide));
}
#endif

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~crc_by_instruction(bytes, ~crc);
#endif
  return ~crc_by_table(bytes, ~crc);
}

uint64_t mix_seed(std::span<const uint64_t> words) {
  uint64_t state = 0x9e3779b97f4a7c15ull;
  for (const uint64_t word : words) {
    state += word + 0x9e3779b97f4a7c15ull;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebull;
    state ^= state >> 31;
  }
  return state;
}

}  // namespace convoy
