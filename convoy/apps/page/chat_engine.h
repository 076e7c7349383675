// SPDX-License-Identifier: Apache-2.0
//
// The engine process that answers questions to the model of a run: started by the first question,
// replaced by the engine of another run, ended when nobody has asked for a while.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "convoy/apps/serving/engine_group.h"
#include "convoy/core/base/log.h"
#include "convoy/core/http/http_server.h"
#include "convoy/machine/processes/process_pool.h"

namespace convoy::page {

struct ChatOptions {
  // Returns a pool with one worker, `convoy-worker serve FLAGS`. Empty: the page answers no
  // questions.
  std::function<processes::PoolOptions(const std::vector<std::string>& flags)> pool = {};
  std::chrono::milliseconds idle_time = std::chrono::minutes(5);
};

class ChatEngine {
 public:
  ChatEngine(ChatOptions options, const Log& log);
  ~ChatEngine();  // kills the engine; open exchanges end
  ChatEngine(const ChatEngine&) = delete;
  ChatEngine& operator=(const ChatEngine&) = delete;

  // Passes a request of OpenAI's API to the engine with these flags. The client gets status 503
  // while the engine of another run is answering, and status 500 with the reason when the engine
  // does not start. Thread-safe, does not block.
  void take(const std::vector<std::string>& flags, std::unique_ptr<http::Exchange> exchange);

 private:
  void work();
  bool wait_for_work();  // false when this object ends
  void renew();          // starts, replaces or ends the engine
  void fail(const std::string& why);

  ChatOptions options_;
  Log log_;
  std::mutex mutex_;  // guards all members below except `thread_`
  std::condition_variable changed_;
  std::deque<std::unique_ptr<http::Exchange>> waiting_;  // wait for an engine with flags wanted_
  std::vector<std::string> wanted_;
  std::vector<std::string> running_;
  std::unique_ptr<serving::EngineGroup> engine_;  // only `thread_` starts and ends it
  std::chrono::steady_clock::time_point used_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace convoy::page
