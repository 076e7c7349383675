// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/channel.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace convoy::rendezvous {
namespace {

constexpr int kReadsPerCall = 16;  // 1 MiB, so that other channels get their turn

bool again(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

void Channel::send(const Json& head, std::shared_ptr<const std::string> payload) {
  const size_t payload_bytes = payload == nullptr ? 0 : payload->size();
  unsent_.push_back(std::make_shared<const std::string>(frame_head(head, payload_bytes)));
  if (payload_bytes > 0) unsent_.push_back(std::move(payload));
  flush();
}

void Channel::flush() {
  while (!unsent_.empty() && !closed_) {
    const std::string& first = *unsent_.front();
    const ssize_t count = ::send(socket_.get(), first.data() + sent_of_first_,
                                 first.size() - sent_of_first_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      closed_ = !again(errno);
      return;
    }
    sent_of_first_ += static_cast<size_t>(count);
    if (sent_of_first_ < first.size()) continue;
    unsent_.pop_front();
    sent_of_first_ = 0;
  }
}

void Channel::receive() {
  std::array<char, 64 << 10> bytes;
  for (int reads = 0; reads < kReadsPerCall; ++reads) {
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      closed_ = closed_ || count == 0 || !again(errno);
      return;
    }
    reader_.feed({bytes.data(), static_cast<size_t>(count)});
    if (static_cast<size_t>(count) < bytes.size()) return;
  }
}

}  // namespace convoy::rendezvous
