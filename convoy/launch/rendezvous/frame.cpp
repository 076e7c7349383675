// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/frame.h"

#include <cstdint>

#include "convoy/core/base/error.h"
#include "convoy/core/base/json_depth.h"

namespace convoy::rendezvous {
namespace {

constexpr size_t kLengthsBytes = 8;

void append_length(std::string& bytes, size_t length) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(length >> shift);
}

size_t read_length(std::string_view bytes) {
  size_t length = 0;
  for (size_t byte = 0; byte < 4; ++byte)
    length |= static_cast<size_t>(static_cast<uint8_t>(bytes[byte])) << (8 * byte);
  return length;
}

}  // namespace

std::string Frame::type() const {
  const auto found = head.find("type");
  return found != head.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string frame_head(const Json& head, size_t payload_bytes) {
  const std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  CONVOY_INVARIANT(text.size() <= kMaxHeadBytes && payload_bytes <= kMaxPayloadBytes,
                   "a message of {} + {} bytes", text.size(), payload_bytes);
  std::string bytes;
  append_length(bytes, text.size());
  append_length(bytes, payload_bytes);
  return bytes + text;
}

std::optional<Frame> FrameReader::next() {
  const std::string_view left = std::string_view(buffer_).substr(read_bytes_);
  if (left.size() < kLengthsBytes) return std::nullopt;
  const size_t head_bytes = read_length(left);
  const size_t payload_bytes = read_length(left.substr(4));
  CONVOY_CHECK(head_bytes <= kMaxHeadBytes && payload_bytes <= kMaxPayloadBytes, CommError,
               "a message of {} + {} bytes is larger than the limit", head_bytes, payload_bytes);
  const size_t frame_bytes = kLengthsBytes + head_bytes + payload_bytes;
  if (left.size() < frame_bytes) return std::nullopt;
  const std::string_view text = left.substr(kLengthsBytes, head_bytes);
  CONVOY_CHECK(!nested_deeper(text, kMaxHeadDepth), CommError, "a message is nested deeper than {}",
               kMaxHeadDepth);
  Frame frame;
  frame.head = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  CONVOY_CHECK(frame.head.is_object(), CommError, "a message is no JSON object");
  frame.payload = left.substr(kLengthsBytes + head_bytes, payload_bytes);
  read_bytes_ += frame_bytes;
  if (read_bytes_ == buffer_.size()) {
    buffer_.clear();
    buffer_.shrink_to_fit();
    read_bytes_ = 0;
  } else if (read_bytes_ >= (1 << 20)) {
    buffer_.erase(0, read_bytes_);
    read_bytes_ = 0;
  }
  return frame;
}

}  // namespace convoy::rendezvous
