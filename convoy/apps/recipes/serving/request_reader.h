// SPDX-License-Identifier: Apache-2.0
//
// Parses the requests that arrive from the front on a thread of its own, because a long prompt
// takes seconds to tokenize and must not hold up the running answers. Forms of answers are compiled
// on a second thread, so that a large schema does not hold up other requests.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "convoy/apps/recipes/serving/request_parser.h"
#include "convoy/apps/serving/front_link.h"

namespace convoy::recipes {

struct ReadRequest {
  serving::ExchangePtr exchange;
  std::chrono::steady_clock::time_point came;
  ParsedRequest parsed;
};

class RequestReader {
 public:
  // Both must outlive it.
  RequestReader(serving::FrontLink& front, const RequestParser& parser);
  // Call it on the thread that answers. Parsed requests that were not taken get status 503.
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Waits up to `time` for requests. Returns them in the order in which they were parsed.
  std::deque<ReadRequest> wait(std::chrono::milliseconds time);

 private:
  struct Unread {
    serving::ExchangePtr exchange;
    std::chrono::steady_clock::time_point came;
  };

  void read();
  void compile_forms();

  serving::FrontLink& front_;
  const RequestParser& parser_;
  // Unparsed requests by length. The shortest is parsed first, so that a short request does not
  // wait for the megabytes of others. Only the reading thread uses it.
  std::multimap<size_t, Unread> unread_;
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ReadRequest> requests_;
  // Requests whose forms are not compiled, by the length of the form. The shortest goes first.
  std::multimap<size_t, ReadRequest> unformed_;
  std::condition_variable unformed_changed_;
  std::thread reading_;
  std::thread compiling_;
};

}  // namespace convoy::recipes
