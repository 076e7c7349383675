// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/backup_connection.h"

#include <utility>

namespace convoy::rendezvous {

BackupConnection::BackupConnection(const SocketAddress& coordinator, JobToken token,
                                   uint64_t session, std::chrono::milliseconds heartbeat)
    : coordinator_(coordinator),
      token_(std::move(token)),
      session_(session),
      heartbeat_(heartbeat) {}

void BackupConnection::advance(TimePoint now) {
  if (channel_) return send_heartbeat(now);
  if (!try_) try_.emplace(coordinator_, token_, now + 2 * heartbeat_);
  const ClientConnection::State state = try_->advance(now);
  if (state == ClientConnection::State::Proven) {
    channel_ = try_->take_channel();
    try_.reset();
    last_heard_ = heard_on_channel_ = next_beat_ = now;
    send_heartbeat(now);
  } else if (state == ClientConnection::State::Failed && now >= try_->deadline()) {
    try_.reset();  // at the deadline: a refused connection is retried as rarely as a silent one
  }
}

void BackupConnection::send_heartbeat(TimePoint now) {
  channel_->receive();
  while (const std::optional<Frame> frame = channel_->next()) {
    last_heard_ = heard_on_channel_ = now;
    const auto known = frame->head.find("known");
    is_unknown_ = is_unknown_ || (known != frame->head.end() && *known == false);
  }
  if (channel_->closed() || now - heard_on_channel_ >= 2 * heartbeat_) {
    channel_.reset();
  } else if (now >= next_beat_) {
    next_beat_ = now + heartbeat_;
    channel_->send({{"type", "heartbeat"}, {"session", session_}});
  }
}

void BackupConnection::close() {
  try_.reset();
  channel_.reset();
}

std::array<pollfd, 2> BackupConnection::watched() const {
  std::array<pollfd, 2> watched = {pollfd{-1, 0, 0}, pollfd{-1, 0, 0}};
  if (try_ && try_->problem() == ClientConnection::Problem::None)
    watched[0] = {try_->descriptor(), try_->events(), 0};
  if (channel_) watched[1] = {channel_->descriptor(), POLLIN, 0};
  return watched;
}

}  // namespace convoy::rendezvous
