// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/request_reader.h"

#include <map>
#include <utility>

namespace convoy::recipes {
namespace {

// So often the thread looks whether it is to end.
constexpr std::chrono::milliseconds kTurn(100);

struct Unread {
  serving::ExchangePtr exchange;
  std::chrono::steady_clock::time_point came;
};

}  // namespace

RequestReader::RequestReader(serving::FrontLink& front, const RequestParser& parser)
    : front_(front), parser_(parser), thread_([this] { read(); }) {}

RequestReader::~RequestReader() {
  ends_ = true;
  thread_.join();
  for (const ReadRequest& left : requests_)
    respond_error(*left.exchange, ApiError(503, "the server stopped before it read the request"));
}

std::deque<ReadRequest> RequestReader::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  if (time.count() > 0) changed_.wait_for(lock, time, [this] { return !requests_.empty(); });
  return std::exchange(requests_, {});
}

void RequestReader::read() {
  // The shortest first, of equal ones the first: a request of a line does not wait for the
  // megabytes of others.
  std::multimap<size_t, Unread> unread;
  while (!ends_) {
    for (serving::ExchangePtr& exchange : front_.passed_on(unread.empty() ? kTurn : kTurn.zero())) {
      const size_t bytes = exchange->body().size();
      unread.emplace(bytes, Unread{std::move(exchange), std::chrono::steady_clock::now()});
    }
    if (unread.empty()) continue;
    Unread next = std::move(unread.extract(unread.begin()).mapped());
    const serving::EngineExchange& exchange = *next.exchange;
    ParsedRequest parsed = exchange.is_open() ? parser_.parse(exchange.path(), exchange.body())
                                              : ApiError(400, "the client has left");
    const std::lock_guard lock(mutex_);
    requests_.push_back({std::move(next.exchange), next.came, std::move(parsed)});
    changed_.notify_one();
  }
  const std::lock_guard lock(mutex_);
  for (auto& [bytes, left] : unread)  // not parsed: ~RequestReader refuses them
    requests_.push_back({std::move(left.exchange), left.came, AskedMetrics()});
}

}  // namespace convoy::recipes
