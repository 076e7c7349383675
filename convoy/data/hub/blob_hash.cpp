// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/blob_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <utility>

namespace convoy::hub {

void Sha1::take_block(const uint8_t* block) {
  std::array<uint32_t, 80> words{};
  for (size_t i = 0; i < 16; ++i) {
    words[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
               uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
  }
  for (size_t i = 16; i < 80; ++i)
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  auto [a, b, c, d, e] = state_;
  for (size_t i = 0; i < 80; ++i) {
    uint32_t mixed = 0;
    if (i < 20) {
      mixed = ((b & c) | (~b & d)) + 0x5a827999;
    } else if (i < 40) {
      mixed = (b ^ c ^ d) + 0x6ed9eba1;
    } else if (i < 60) {
      mixed = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    } else {
      mixed = (b ^ c ^ d) + 0xca62c1d6;
    }
    const uint32_t next = std::rotl(a, 5) + mixed + e + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const std::array<uint32_t, 5> added = {a, b, c, d, e};
  for (size_t i = 0; i < 5; ++i) state_[i] += added[i];
}

void Sha1::update(std::string_view bytes) {
  total_bytes_ += bytes.size();
  while (!bytes.empty()) {
    const size_t taken = std::min(bytes.size(), buffer_.size() - buffered_bytes_);
    std::memcpy(buffer_.data() + buffered_bytes_, bytes.data(), taken);
    buffered_bytes_ += taken;
    bytes.remove_prefix(taken);
    if (buffered_bytes_ < buffer_.size()) return;
    take_block(buffer_.data());
    buffered_bytes_ = 0;
  }
}

std::string Sha1::hex() {
  const uint64_t bits = total_bytes_ * 8;
  std::string padding(1, '\x80');
  padding.append((119 - buffered_bytes_) % 64, '\0');
  for (int shift = 56; shift >= 0; shift -= 8)
    padding += static_cast<char>(static_cast<uint8_t>(bits >> shift));
  update(padding);
  std::string text;
  for (const uint32_t word : state_) text += fmt::format("{:08x}", word);
  return text;
}

BlobHash::BlobHash(std::string etag, int64_t size_bytes)
    : etag_(std::move(etag)), kind_(Kind::Unknown) {
  const bool is_hex = std::all_of(etag_.begin(), etag_.end(),
                                  [](unsigned char digit) { return std::isxdigit(digit) != 0; });
  if (is_hex && etag_.size() == 64) kind_ = Kind::Sha256;
  if (is_hex && etag_.size() == 40) kind_ = Kind::GitId;
  git_id_.update(fmt::format("blob {}", size_bytes));
  git_id_.update(std::string_view("\0", 1));
}

void BlobHash::update(std::string_view bytes) {
  if (kind_ == Kind::Sha256) sha256_.update(bytes);
  if (kind_ == Kind::GitId) git_id_.update(bytes);
}

bool BlobHash::matches() {
  if (kind_ == Kind::Unknown) return true;
  return (kind_ == Kind::Sha256 ? sha256_.hex() : git_id_.hex()) == etag_;
}

}  // namespace convoy::hub
