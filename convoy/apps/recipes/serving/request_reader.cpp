// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/request_reader.h"

#include <utility>

namespace convoy::recipes {
namespace {

// Interval at which the thread checks whether it has to end.
constexpr std::chrono::milliseconds kTurn(100);

}  // namespace

RequestReader::RequestReader(serving::FrontLink& front, const RequestParser& parser)
    : front_(front),
      parser_(parser),
      reading_([this] { read(); }),
      compiling_([this] { compile_forms(); }) {}

RequestReader::~RequestReader() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  unformed_changed_.notify_one();
  reading_.join();
  compiling_.join();
  const ApiError error(503, "the server stopped before it read the request");
  for (const auto& [bytes, left] : unread_) respond_error(*left.exchange, error);
  for (const auto& [bytes, left] : unformed_) respond_error(*left.exchange, error);
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
    const auto* const asked = std::get_if<AskedAnswers>(&parsed);
    const bool needs_forms = asked != nullptr && asked->needs_forms();
    const size_t form_bytes = needs_forms ? asked->request.form->source.text.size() : 0;
    ReadRequest read{std::move(next.exchange), next.came, std::move(parsed)};
    const std::lock_guard lock(mutex_);
    if (needs_forms) {
      unformed_.emplace(form_bytes, std::move(read));
      unformed_changed_.notify_one();
    } else {
      requests_.push_back(std::move(read));
      changed_.notify_one();
    }
  }
}

void RequestReader::compile_forms() {
  std::unique_lock lock(mutex_);
  for (;;) {
    unformed_changed_.wait(lock, [this] { return ends_ || !unformed_.empty(); });
    if (ends_) return;
    ReadRequest next = std::move(unformed_.extract(unformed_.begin()).mapped());
    lock.unlock();
    next.parsed = next.exchange->is_open()
                      ? parser_.with_forms(std::get<AskedAnswers>(std::move(next.parsed)))
                      : ApiError(400, "the client has left");
    lock.lock();
    requests_.push_back(std::move(next));
    changed_.notify_one();
  }
}

}  // namespace convoy::recipes
