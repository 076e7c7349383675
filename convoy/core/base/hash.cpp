// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash_kernels.h"
#include "convoy/core/base/nearby_files.h"

namespace convoy {
namespace {

constexpr size_t kBlockBytes = 64;

}  // namespace

Sha256::Sha256() : Sha256(best_hash_kernels()) {}

Sha256::Sha256(const HashKernels& kernels)
    : take_blocks_(kernels.sha256), state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::update(std::string_view bytes) {
  total_bytes_ += bytes.size();
  if (buffered_bytes_ > 0) {
    const size_t count = std::min(bytes.size(), kBlockBytes - buffered_bytes_);
    std::memcpy(buffer_.data() + buffered_bytes_, bytes.data(), count);
    buffered_bytes_ += count;
    bytes.remove_prefix(count);
    if (buffered_bytes_ < kBlockBytes) return;
    take_blocks_(state_.data(), buffer_.data(), 1);
    buffered_bytes_ = 0;
  }
  const size_t num_blocks = bytes.size() / kBlockBytes;
  if (num_blocks > 0)
    take_blocks_(state_.data(), reinterpret_cast<const uint8_t*>(bytes.data()), num_blocks);
  bytes.remove_prefix(num_blocks * kBlockBytes);
  if (!bytes.empty()) std::memcpy(buffer_.data(), bytes.data(), bytes.size());
  buffered_bytes_ = bytes.size();
}

void Sha256::update(std::span<const std::byte> bytes) {
  update(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::array<uint8_t, 32> Sha256::digest() {
  const uint64_t total_bits = total_bytes_ * 8;
  // The padding: a one bit, zeros, and the length of the message in the last 8 bytes of a block.
  std::array<uint8_t, 2 * kBlockBytes> tail{};
  std::memcpy(tail.data(), buffer_.data(), buffered_bytes_);
  tail[buffered_bytes_] = 0x80;
  const size_t num_blocks = buffered_bytes_ + 9 <= kBlockBytes ? 1 : 2;
  for (size_t byte = 0; byte < 8; ++byte)
    tail[num_blocks * kBlockBytes - 8 + byte] = static_cast<uint8_t>(total_bits >> (56 - 8 * byte));
  take_blocks_(state_.data(), tail.data(), num_blocks);
  std::array<uint8_t, 32> bytes;
  for (size_t byte = 0; byte < 32; ++byte)
    bytes[byte] = static_cast<uint8_t>(state_[byte / 4] >> (24 - 8 * (byte % 4)));
  return bytes;
}

std::string hex_of(std::string_view bytes) {
  std::string hex;
  write_hex(bytes, hex);
  return hex;
}

void write_hex(std::string_view bytes, std::string& hex) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  hex.resize(2 * bytes.size());
  for (size_t at = 0; at < bytes.size(); ++at) {
    const auto byte = static_cast<uint8_t>(bytes[at]);
    hex[2 * at] = kDigits[byte >> 4];
    hex[2 * at + 1] = kDigits[byte & 15];
  }
}

std::string Sha256::hex() {
  const std::array<uint8_t, 32> bytes = digest();
  return hex_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
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
  if (!file) {
    const int code = errno;
    throw DataError(fmt::format("cannot read the file: {}", std::strerror(code)),
                    {.file = path.string(), .hint = unreadable_file_hint(path, code)});
  }
  Sha256 hash;
  std::string chunk(1 << 20, '\0');
  while (file) {
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    hash.update(std::string_view(chunk.data(), static_cast<size_t>(file.gcount())));
  }
  return hash.hex();
}

uint32_t crc32c(std::string_view bytes, uint32_t crc) {
  return ~best_hash_kernels().crc32c(bytes, ~crc);
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
