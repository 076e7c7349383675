// SPDX-License-Identifier: Apache-2.0
//
// A connected, proven, non-blocking socket that carries frames both ways. One thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "convoy/core/base/descriptor.h"
#include "convoy/launch/rendezvous/frame.h"

namespace convoy::rendezvous {

class Channel {
 public:
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.get(); }

  // Queues a message and sends what the socket takes. `payload` may be shared by many channels.
  void send(const Json& head, std::shared_ptr<const std::string> payload = nullptr);
  bool has_unsent() const { return !unsent_.empty(); }
  void flush();

  // Reads what is there, a bounded amount per call.
  void receive();
  void feed(std::string_view bytes) { reader_.feed(bytes); }  // bytes that were read before
  // Throws CommError for a message that breaks the rules.
  std::optional<Frame> next() { return reader_.next(); }

  // The other end is gone or the socket failed; messages that came before can still be read.
  bool closed() const { return closed_; }

 private:
  Descriptor socket_;
  FrameReader reader_;
  std::deque<std::shared_ptr<const std::string>> unsent_;
  size_t sent_of_first_ = 0;
  bool closed_ = false;
};

}  // namespace convoy::rendezvous
