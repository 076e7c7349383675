// SPDX-License-Identifier: Apache-2.0
//
// Messages on a proven connection: two lengths (32 bits, little-endian), a JSON object, raw bytes.
// Limits are checked before anything is allocated or parsed.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::rendezvous {

using Json = nlohmann::json;

struct Frame {
  Json head;            // an object; "type" names the message
  std::string payload;  // a store's value

  std::string type() const;  // "" when there is none
};

constexpr size_t kMaxHeadBytes = 4 << 20;
constexpr size_t kMaxPayloadBytes = (64 << 20) + (4 << 20);  // a value and its keys
constexpr size_t kMaxHeadDepth = 16;

// Returns a frame's lengths and head; a payload of `payload_bytes` must follow. Text that is not
// UTF-8 is repaired.
std::string frame_head(const Json& head, size_t payload_bytes = 0);

class FrameReader {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole message, if it is there. Throws CommError for a message that breaks a limit or
  // is not a JSON object; the connection cannot be used any more.
  std::optional<Frame> next();

 private:
  std::string buffer_;
  size_t read_bytes_ = 0;  // bytes of buffer_ that were returned already
};

}  // namespace convoy::rendezvous
