// SPDX-License-Identifier: Apache-2.0
//
// The hub's names for files: the SHA-256 of a large file (64 hex digits), and git's id of a small
// file (40 hex digits), which is the SHA-1 of "blob SIZE\0" and the bytes (FIPS 180-4;
// git-hash-object).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "convoy/core/base/hash.h"

namespace convoy::hub {

class Sha1 {
 public:
  void update(std::string_view bytes);
  std::string hex();  // must be the last call

 private:
  void take_block(const uint8_t* block);

  std::array<uint32_t, 5> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::array<uint8_t, 64> buffer_{};
  size_t buffered_bytes_ = 0;
  uint64_t total_bytes_ = 0;
};

// Checks that bytes are the content of the file that an etag names.
class BlobHash {
 public:
  BlobHash(std::string etag, int64_t size_bytes);

  void update(std::string_view bytes);
  // Returns true when the hash matches, and always for an etag of unknown kind: only the size can
  // be checked then. No further bytes may be added.
  bool matches();

 private:
  enum class Kind { Sha256, GitId, Unknown };

  std::string etag_;
  Kind kind_;
  Sha256 sha256_;
  Sha1 git_id_;
};

}  // namespace convoy::hub
