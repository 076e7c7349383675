// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/chat_engine.h"

#include <utility>

#include "convoy/apps/serving/json_answer.h"
#include "convoy/core/base/error.h"

namespace convoy::page {
namespace {

using Clock = std::chrono::steady_clock;
using serving::ApiError;

constexpr std::chrono::milliseconds kTurn(100);
constexpr int kNothingElse = -1;  // no other descriptor to wait for

}  // namespace

ChatEngine::ChatEngine(ChatOptions options, const Log& log)
    : options_(std::move(options)), log_(log), thread_([this] { work(); }) {}

ChatEngine::~ChatEngine() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ChatEngine::take(const std::vector<std::string>& flags,
                      std::unique_ptr<http::Exchange> exchange) {
  const std::lock_guard lock(mutex_);
  used_ = Clock::now();
  if (engine_ && running_ == flags && waiting_.empty())
    return engine_->take(std::make_unique<serving::PlainClient>(std::move(exchange)));
  const bool others_wait = !waiting_.empty() && wanted_ != flags;
  const bool others_run = engine_ && running_ != flags && engine_->requests() > 0;
  if (others_wait || others_run)
    return respond_error(
        *exchange, ApiError(503, "the model of another run is answering; ask again when it has"));
  wanted_ = flags;
  waiting_.push_back(std::move(exchange));
  changed_.notify_one();
}

void ChatEngine::work() {
  while (wait_for_work()) {
    try {
      renew();
      if (engine_) engine_->turn(kTurn, kNothingElse);
    } catch (const Error& error) {
      fail(error.sentence());
    }
  }
}

bool ChatEngine::wait_for_work() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ends_ || engine_ || !waiting_.empty(); });
  return !ends_;
}

void ChatEngine::renew() {
  // Destroyed without the lock, because that waits for its process.
  std::unique_ptr<serving::EngineGroup> old;
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (engine_ && engine_->requests() > 0) used_ = now;
  const bool is_new = !waiting_.empty() && (!engine_ || running_ != wanted_);
  if (is_new || now - used_ > options_.idle_time) old = std::exchange(engine_, nullptr);
  if (is_new) {
    engine_ = std::make_unique<serving::EngineGroup>(options_.pool(wanted_), log_);
    running_ = wanted_;
  }
  for (auto& exchange : std::exchange(waiting_, {}))
    engine_->take(std::make_unique<serving::PlainClient>(std::move(exchange)));
}

void ChatEngine::fail(const std::string& why) {
  const ApiError error(500, "the model does not answer: " + why);
  log_.warning(error.what());
  std::unique_ptr<serving::EngineGroup> old;
  const std::lock_guard lock(mutex_);
  old = std::exchange(engine_, nullptr);
  if (old) old->refuse_waiting(error);
  for (const auto& exchange : std::exchange(waiting_, {})) respond_error(*exchange, error);
}

}  // namespace convoy::page
