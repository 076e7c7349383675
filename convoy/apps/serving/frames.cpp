// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/frames.h"

#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace convoy::serving {
namespace {

struct __attribute__((packed)) FrameHead {
  FrameKind kind;
  uint64_t exchange;
  uint32_t size;
};
static_assert(sizeof(FrameHead) == 13);

std::string_view cut_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

void append_frame(std::string& bytes, FrameKind kind, uint64_t exchange, std::string_view payload) {
  const FrameHead head{kind, exchange, static_cast<uint32_t>(payload.size())};
  bytes.append(reinterpret_cast<const char*>(&head), sizeof(head));
  bytes += payload;
}

std::optional<Frame> FrameReader::next() {
  FrameHead head{};
  const size_t left = bytes_.size() - begin_;
  if (left >= sizeof(head)) std::memcpy(&head, bytes_.data() + begin_, sizeof(head));
  if (left < sizeof(head) || left - sizeof(head) < head.size) {
    bytes_.erase(0, begin_);
    begin_ = 0;
    return std::nullopt;
  }
  Frame frame{head.kind, head.exchange, bytes_.substr(begin_ + sizeof(head), head.size)};
  begin_ += sizeof(head) + head.size;
  return frame;
}

bool read_into(int socket, FrameReader& reader) {
  char buffer[65536];
  for (;;) {
    const ssize_t received = ::recv(socket, buffer, sizeof(buffer), 0);
    if (received > 0)
      reader.add({buffer, static_cast<size_t>(received)});
    else if (received == 0 || errno != EINTR)
      return received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

std::string head_text(int status, const http::Headers& headers) {
  std::string text = std::to_string(status) + "\n";
  for (const auto& [name, value] : headers) text += name + ":" + value + "\n";
  return text + "\n";
}

HeadAndBody read_head(std::string_view payload) {
  HeadAndBody head;
  const std::string_view status = cut_line(payload);
  std::from_chars(status.data(), status.data() + status.size(), head.status);
  for (std::string_view line = cut_line(payload); !line.empty(); line = cut_line(payload)) {
    const size_t colon = line.find(':');
    head.headers.emplace_back(line.substr(0, colon), line.substr(colon + 1));
  }
  head.body = payload;
  return head;
}

}  // namespace convoy::serving
