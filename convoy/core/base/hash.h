// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) for identity, HMAC of it (RFC 2104) for proof, CRC32C (Castagnoli, RFC 3720)
// for records, a 64-bit mix for seeds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace convoy {

struct HashKernels;

class Sha256 {
 public:
  Sha256();
  explicit Sha256(const HashKernels& kernels);  // for tests: all kernels give the same hash
  void update(std::string_view bytes);
  void update(std::span<const std::byte> bytes);
  // hex() and digest() end the hash. Call exactly one of them, once.
  std::string hex();
  std::array<uint8_t, 32> digest();

 private:
  void (*take_blocks_)(uint32_t* state, const uint8_t* blocks, size_t num_blocks);
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> buffer_{};
  size_t buffered_bytes_ = 0;
  uint64_t total_bytes_ = 0;
};

// Hexadecimal digits in lower case.
std::string hex_of(std::string_view bytes);
void write_hex(std::string_view bytes, std::string& hex);

std::string sha256_hex(std::string_view bytes);
std::string sha256_hex_of_file(const std::filesystem::path& path);  // streams. Throws DataError

// 32 raw bytes.
std::string hmac_sha256(std::string_view key, std::string_view message);

// Takes the same time wherever the texts differ, so that a secret cannot be guessed byte by byte.
bool equal_in_constant_time(std::string_view left, std::string_view right);

uint32_t crc32c(std::string_view bytes, uint32_t crc = 0);

// splitmix64 finaliser (Vigna) folded over the arguments: one well-mixed word from several
// counters.
uint64_t mix_seed(std::span<const uint64_t> words);

}  // namespace convoy
