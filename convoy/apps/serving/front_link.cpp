// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/front_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace convoy::serving {
namespace {

// Interval at which an engine without answers gives a sign of life. Its front waits for much
// longer.
constexpr std::chrono::milliseconds kSignInterval(500);

}  // namespace

EngineExchange::EngineExchange(FrontLink& link, Frame request,
                               std::shared_ptr<std::atomic<bool>> open)
    : link_(link), request_(std::move(request)), open_(std::move(open)) {}

EngineExchange::~EngineExchange() {
  {
    const std::lock_guard lock(link_.mutex_);
    link_.open_.erase(request_.exchange);
  }
  link_.put(FrameKind::End, request_.exchange);
}

std::string_view EngineExchange::path() const {
  return std::string_view(request_.payload).substr(0, request_.payload.find('\n'));
}

std::string_view EngineExchange::body() const {
  return std::string_view(request_.payload).substr(path().size() + 1);
}

void EngineExchange::respond(int status, const http::Headers& headers, std::string_view body) {
  link_.put(FrameKind::Whole, request_.exchange, head_text(status, headers).append(body));
}

void EngineExchange::start(int status, const http::Headers& headers) {
  link_.put(FrameKind::Start, request_.exchange, head_text(status, headers));
}

void EngineExchange::send(std::string_view part) {
  link_.put(FrameKind::Part, request_.exchange, part);
}

FrontLink::FrontLink(int socket)
    : socket_(socket), last_sent_(std::chrono::steady_clock::now()), reader_([this] { read(); }) {}

FrontLink::~FrontLink() {
  send_all();
  ::shutdown(socket_, SHUT_RDWR);
  reader_.join();
  // Ends the waiting exchanges while the link still exists, because their destructors use it.
  std::exchange(waiting_, {}).clear();
}

void FrontLink::tell_ready() { put(FrameKind::Ready, 0); }

void FrontLink::send_answers() {
  if (unsent_.empty() && std::chrono::steady_clock::now() - last_sent_ >= kSignInterval)
    put(FrameKind::Alive, 0);
  send_all();
}

bool FrontLink::has_requests() const {
  const std::lock_guard lock(mutex_);
  return !open_.empty();
}

std::deque<ExchangePtr> FrontLink::passed_on(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return !waiting_.empty() || lost_; });
  return std::exchange(waiting_, {});
}

void FrontLink::read() {
  FrameReader frames;
  pollfd polled{.fd = socket_, .events = POLLIN, .revents = 0};
  while (::poll(&polled, 1, -1) > 0 || errno == EINTR) {
    if (!read_into(socket_, frames)) break;
    while (std::optional<Frame> frame = frames.next()) take(std::move(*frame));
  }
  const std::lock_guard lock(mutex_);
  lost_ = true;
  changed_.notify_one();
}

void FrontLink::take(Frame frame) {
  const std::lock_guard lock(mutex_);
  if (frame.kind == FrameKind::Gone) {
    if (const auto at = open_.find(frame.exchange); at != open_.end()) *at->second = false;
    return;
  }
  auto open = std::make_shared<std::atomic<bool>>(true);
  open_.emplace(frame.exchange, open);
  waiting_.push_back(std::make_unique<EngineExchange>(*this, std::move(frame), std::move(open)));
  changed_.notify_one();
}

void FrontLink::put(FrameKind kind, uint64_t exchange, std::string_view payload) {
  append_frame(unsent_, kind, exchange, payload);
}

void FrontLink::send_all() {
  if (!unsent_.empty()) last_sent_ = std::chrono::steady_clock::now();
  std::string_view left = unsent_;
  while (!left.empty() && !lost_) {
    const ssize_t sent = ::send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent >= 0)
      left.remove_prefix(static_cast<size_t>(sent));
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd polled{.fd = socket_, .events = POLLOUT, .revents = 0};
      ::poll(&polled, 1, 1000);
    } else if (errno != EINTR) {
      lost_ = true;
    }
  }
  unsent_.clear();
}

}  // namespace convoy::serving
