// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/client_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::rendezvous {

ClientConnection::ClientConnection(const SocketAddress& address, JobToken token, TimePoint deadline)
    : socket_(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      token_(std::move(token)),
      deadline_(deadline) {
  if (!socket_.open()) {
    fail(Problem::Unreachable, std::strerror(errno));
    return;
  }
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (::connect(socket_.get(), address.get(), address.size()) == 0)
    state_ = State::Proving;
  else if (errno != EINPROGRESS)
    fail(Problem::Unreachable, std::strerror(errno));
}

int ClientConnection::descriptor() const { return socket_.get(); }

short ClientConnection::events() const { return state_ == State::Connecting ? POLLOUT : POLLIN; }

ClientConnection::State ClientConnection::fail(Problem problem, const std::string& words) {
  problem_ = problem;
  words_ = words;
  state_ = State::Failed;
  return state_;
}

ClientConnection::State ClientConnection::advance(TimePoint now) {
  if (state_ == State::Connecting) check_connected();
  if (state_ == State::Proving) go_on_proving();
  if (now < deadline_) return state_;
  if (state_ == State::Connecting) return fail(Problem::Unreachable, std::strerror(ETIMEDOUT));
  if (state_ == State::Proving)
    return fail(Problem::Stranger, "it accepts connections but sends nothing");
  return state_;
}

void ClientConnection::check_connected() {
  pollfd watched{socket_.get(), POLLOUT, 0};
  if (::poll(&watched, 1, 0) <= 0) return;
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0)
    fail(Problem::Unreachable, std::strerror(error));
  else
    state_ = State::Proving;
}

void ClientConnection::go_on_proving() {
  std::array<char, 256> bytes;
  const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    fail(Problem::Stranger, count == 0 ? "it closes the connection" : std::strerror(errno));
    return;
  }
  bytes_.append(bytes.data(), static_cast<size_t>(count));
  for (;;) {
    switch (handshake_.received(bytes_, token_)) {
      case ClientHandshake::Result::NeedsMore:
        return;
      case ClientHandshake::Result::SendAnswer: {
        const std::string answer = handshake_.answer(token_);
        if (::send(socket_.get(), answer.data(), answer.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(answer.size())) {
          fail(Problem::Stranger, "it closes the connection");
          return;
        }
        break;
      }
      case ClientHandshake::Result::Proven:
        channel_.emplace(std::move(socket_));
        channel_->feed(bytes_);
        state_ = State::Proven;
        return;
      case ClientHandshake::Result::WrongToken:
        fail(Problem::WrongToken, "it refused the job token of this node");
        return;
      case ClientHandshake::Result::WrongServer:
        fail(Problem::WrongServer, "it does not hold the job token of this node");
        return;
      case ClientHandshake::Result::Stranger:
        fail(Problem::Stranger, "it does not use this version of Convoy's protocol");
        return;
    }
  }
}

Channel ClientConnection::take_channel() {
  CONVOY_INVARIANT(channel_.has_value(), "a connection that is not proven");
  return std::move(*channel_);
}

}  // namespace convoy::rendezvous
