// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/admission_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/launch/rendezvous/endpoint.h"

namespace convoy::rendezvous {
namespace {

constexpr int kAcceptsPerTurn = 64;
// shortest time before an unproven connection is closed for a new one
constexpr std::chrono::milliseconds kLeastStay{100};
constexpr std::chrono::seconds kReportInterval{30};

}  // namespace

AdmissionListener::AdmissionListener(Descriptor listener, JobToken token, AdmissionLimits limits,
                                     Log log)
    : listener_(std::move(listener)),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      token_(std::move(token)),
      limits_(limits),
      log_(std::move(log)) {
  if (!poll_.open())
    throw IoError(fmt::format("epoll_create1 failed: {}", std::strerror(errno)),
                  {.hint = "raise the limit of open files (ulimit -n, LimitNOFILE)"});
  watch(poll_, listener_.get(), 0, EPOLLIN, EPOLL_CTL_ADD);
}

void watch(const Descriptor& poll, int descriptor, uint64_t number, uint32_t events,
           int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  if (::epoll_ctl(poll.get(), operation, descriptor, &event) != 0)
    throw IoError(fmt::format("epoll_ctl failed: {}", std::strerror(errno)),
                  {.hint = "raise fs.epoll.max_user_watches (sysctl)"});
}

std::vector<Descriptor> AdmissionListener::serve(TimePoint now) {
  while (!unproven_.empty() && now - unproven_.begin()->second.since >= limits_.handshake_limit)
    unproven_.erase(unproven_.begin());
  if (paused_) {
    watch(poll_, listener_.get(), 0, EPOLLIN, EPOLL_CTL_MOD);
    paused_ = false;
  }
  std::array<epoll_event, 128> events{};
  const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), 0);
  std::vector<Descriptor> proven;
  bool someone_knocks = false;
  for (int event = 0; event < count; ++event) {
    const uint64_t number = events[static_cast<size_t>(event)].data.u64;
    someone_knocks = someone_knocks || number == 0;
    const auto peer = unproven_.find(number);
    if (peer == unproven_.end()) continue;
    if (advance(peer->second, proven, now)) unproven_.erase(peer);
  }
  // Accept last, so that a peer that has just answered is not closed as the oldest one.
  if (someone_knocks) accept_some(now);
  return proven;
}

void AdmissionListener::accept_some(TimePoint now) {
  for (int accepts = 0; accepts < kAcceptsPerTurn; ++accepts) {
    if (!make_room(now)) return pause();
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno == EAGAIN) return;
      // No descriptors or memory are left, so connections without a proof are closed first.
      if (!unproven_.empty()) unproven_.erase(unproven_.begin());
      return pause();
    }
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    UnprovenPeer peer{std::move(socket), ServerHandshake(), now};
    const std::string greeting = peer.handshake.greeting();
    // A new socket has room for 40 bytes. If it does not take them, the peer is gone.
    if (::send(peer.socket.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(greeting.size()))
      continue;
    watch(poll_, peer.socket.get(), next_number_, EPOLLIN, EPOLL_CTL_ADD);
    unproven_.emplace(next_number_++, std::move(peer));
  }
}

bool AdmissionListener::make_room(TimePoint now) {
  if (unproven_.size() < static_cast<size_t>(limits_.max_unproven)) return true;
  if (now - unproven_.begin()->second.since < kLeastStay) return false;
  unproven_.erase(unproven_.begin());
  return true;
}

// Stops accepting until the next serve(). New connections wait in the kernel's queue.
void AdmissionListener::pause() {
  watch(poll_, listener_.get(), 0, 0, EPOLL_CTL_MOD);
  paused_ = true;
}

bool AdmissionListener::advance(UnprovenPeer& peer, std::vector<Descriptor>& proven,
                                TimePoint now) {
  const ssize_t count =
      ::recv(peer.socket.get(), peer.handshake.space(), peer.handshake.space_bytes(), MSG_DONTWAIT);
  if (count < 0) return errno != EAGAIN && errno != EINTR;
  if (count == 0) return true;
  const auto say = [&](const std::string& bytes) {
    return ::send(peer.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  };
  switch (peer.handshake.received(static_cast<size_t>(count), token_)) {
    case ServerHandshake::Result::NeedsMore:
      return false;
    case ServerHandshake::Result::Stranger:
      return true;
    case ServerHandshake::Result::WrongToken:
      say(ServerHandshake::refusal());
      report_wrong_token(peer.socket.get(), now);
      return true;
    case ServerHandshake::Result::Proven:
      if (say(peer.handshake.reply(token_))) {
        watch(poll_, peer.socket.get(), 0, 0, EPOLL_CTL_DEL);
        proven.push_back(std::move(peer.socket));
      }
      return true;
  }
  return true;
}

void AdmissionListener::report_wrong_token(int socket, TimePoint now) {
  ++unreported_;
  if (now < report_again_at_) return;
  report_again_at_ = now + kReportInterval;
  const std::string others =
      unreported_ > 1 ? fmt::format(", and {} more before it", unreported_ - 1) : std::string();
  unreported_ = 0;
  log_.warning(fmt::format("a program at {} was turned away: it holds another job token{}{}",
                           peer_endpoint(socket).host, token_.guessable() ? " or run id" : "",
                           others));
}

}  // namespace convoy::rendezvous
