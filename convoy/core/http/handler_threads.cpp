// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/handler_threads.h"

#include <exception>
#include <utility>

namespace convoy::http {

HandlerThreads::HandlerThreads(int num_threads, Server::Handler handler)
    : handler_(std::move(handler)) {
  for (int thread = 0; thread < num_threads; ++thread)
    threads_.emplace_back([this] { handle_all(); });
}

HandlerThreads::~HandlerThreads() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HandlerThreads::take(std::unique_ptr<Exchange> exchange) {
  {
    const std::lock_guard lock(mutex_);
    if (ends_) return;
    waiting_.push_back(std::move(exchange));
  }
  changed_.notify_one();
}

void HandlerThreads::handle_all() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    std::unique_ptr<Exchange> exchange = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    handler_(std::move(exchange));
  }
}

}  // namespace convoy::http
