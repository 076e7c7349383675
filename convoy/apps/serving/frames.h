// SPDX-License-Identifier: Apache-2.0
//
// The frames between the front of `convoy serve` and its engine processes, over one socket each.
// Plain data: a head of 13 bytes in the machine's byte order (kind, exchange, size), then the
// payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "convoy/core/http/http_server.h"

namespace convoy::serving {

enum class FrameKind : uint8_t {
  // From the front.
  Request,  // payload: the path, '\n', the body
  Gone,     // the client left
  // From an engine.
  Ready,  // it takes requests
  Alive,  // sign of life between two steps when nothing else is sent
  Whole,  // payload: head_text() and the body
  Start,  // payload: head_text()
  Part,
  End,  // ends an exchange; without Whole or Start before it nothing was answered
};

struct Frame {
  FrameKind kind = FrameKind::End;
  uint64_t exchange = 0;
  std::string payload = {};
};

void append_frame(std::string& bytes, FrameKind kind, uint64_t exchange,
                  std::string_view payload = {});

// Splits a stream of bytes into frames.
class FrameReader {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  std::optional<Frame> next();

 private:
  std::string bytes_;
  size_t begin_ = 0;
};

// Reads all bytes that wait in a non-blocking socket. Returns false at the end of the stream.
bool read_into(int socket, FrameReader& reader);

// Status and headers as text, which ends with an empty line.
std::string head_text(int status, const http::Headers& headers);
struct HeadAndBody {
  int status = 500;
  http::Headers headers = {};
  std::string_view body = {};
};
HeadAndBody read_head(std::string_view payload);

}  // namespace convoy::serving
