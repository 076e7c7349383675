// SPDX-License-Identifier: Apache-2.0
//
// Threads for a handler that reads files or computes, so that the server's threads do not block.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "convoy/core/http/http_server.h"

namespace convoy::http {

class HandlerThreads {
 public:
  // `handler` is called on several threads at once, and must not throw.
  HandlerThreads(int num_threads, Server::Handler handler);
  ~HandlerThreads();  // waits for the requests being handled; waiting ones get no answer
  HandlerThreads(const HandlerThreads&) = delete;
  HandlerThreads& operator=(const HandlerThreads&) = delete;

  // Thread-safe. The queue is bounded: the server passes at most one exchange for each of its
  // clients.
  void take(std::unique_ptr<Exchange> exchange);

 private:
  void handle_all();

  Server::Handler handler_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Exchange>> waiting_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace convoy::http
