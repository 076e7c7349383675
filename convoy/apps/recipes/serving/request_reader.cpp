// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/request_reader.h"

#include <utility>

namespace convoy::recipes {
namespace {

// Interval at which the thread checks whether it has to end.
constexpr std::chrono::milliseconds kTurn(100);

}  // namespace

RequestReader::RequestReader(serving::FrontLink& front, const RequestParser& parser)
    : front_(front), parser_(parser), thread_([this] { read(); }) {}

RequestReader::~RequestReader() {
  ends_ = true;
  thread_.join();
  const ApiError error(503, "the server stopped before it read the request");
  for (const auto& [bytes, left] : unread_) respond_error(*left.exchange, error);
  for (const ReadRequest& left : requests_) respond_error(*left.exchange, error);
}

std::deque<ReadRequest> RequestReader::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  if (time.count() > 0) changed_.wait_for(lock, time, [this] { return !requests_.empty(); });
  return std::exchange(requests_, {});
}

void RequestReader::read() {
  while (!ends_) {
    for (serving::ExchangePtr& exchange :
         front_.passed_on(unread_.empty() ? kTurn : kTurn.zero())) {
      const size_t bytes = exchange->body().size();
      unread_.emplace(bytes, Unread{std::move(exchange), std::chrono::steady_clock::now()});
    }
    if (unread_.empty()) continue;
    Unread next = std::move(unread_.extract(unread_.begin()).mapped());
    const serving::EngineExchange& exchange = *next.exchange;
    ParsedRequest parsed = exchange.is_open() ? parser_.parse(exchange.path(), exchange.body())
                                              : ApiError(400, "the client has left");
    const std::lock_guard lock(mutex_);
    requests_.push_back({std::move(next.exchange), next.came, std::move(parsed)});
    changed_.notify_one();
  }
}

}  // namespace convoy::recipes
