// SPDX-License-Identifier: Apache-2.0
//
// Where requests arrive, on the threads of the HTTP server: it answers what needs no engine, checks
// keys, and passes the rest on. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "convoy/apps/recipes/serving/running_answer.h"

namespace convoy::recipes {

// One key a line. Throws ConfigError where the file has none.
std::set<std::string> read_api_keys(const std::string& file);

class FrontDesk {
 public:
  // `keys`: a request must carry one of them; empty: none. Once `stop_wanted`, requests get 503.
  FrontDesk(std::vector<std::string> model_names, std::set<std::string> keys,
            const std::atomic<bool>& stop_wanted)
      : model_names_(std::move(model_names)), keys_(std::move(keys)), stop_wanted_(stop_wanted) {}

  void take(ExchangePtr exchange);
  // The requests for the engine that have come; waits for one up to `time`.
  std::deque<ExchangePtr> passed_on(std::chrono::milliseconds time);

 private:
  void direct(ExchangePtr& exchange);
  void require_key(const http::Exchange& exchange) const;
  Json models() const;

  std::vector<std::string> model_names_;
  std::set<std::string> keys_;
  const std::atomic<bool>& stop_wanted_;
  int64_t started_ = now_seconds();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ExchangePtr> waiting_;
};

}  // namespace convoy::recipes
