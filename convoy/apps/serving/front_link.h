// SPDX-License-Identifier: Apache-2.0
//
// An engine process's end of the line to the front of `convoy serve`: requests come in, answers go
// out.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "convoy/apps/serving/frames.h"

namespace convoy::serving {

// The environment variable with the engine's number within its server.
inline constexpr const char* kEngineVariable = "CONVOY_ENGINE_NUMBER";

class FrontLink;

// One request, and its answer: respond(), or start() and then send() for each part. Without an
// answer the client gets status 500. The answer ends with the exchange. Only the thread that calls
// FrontLink::send_answers() uses it. The link must outlive it.
class EngineExchange {
 public:
  EngineExchange(FrontLink& link, Frame request, std::shared_ptr<std::atomic<bool>> open);
  ~EngineExchange();
  EngineExchange(const EngineExchange&) = delete;
  EngineExchange& operator=(const EngineExchange&) = delete;

  std::string_view path() const;
  std::string_view body() const;

  void respond(int status, const http::Headers& headers, std::string_view body);
  void start(int status, const http::Headers& headers);
  void send(std::string_view part);
  bool is_open() const { return *open_; }  // false once the client left

 private:
  FrontLink& link_;
  Frame request_;
  std::shared_ptr<std::atomic<bool>> open_;
};

using ExchangePtr = std::unique_ptr<EngineExchange>;

// An engine's connection to the front. A separate thread reads it, so that the front never waits
// for an engine.
class FrontLink {
 public:
  // `socket`: connected to the front; it stays open when the link ends.
  explicit FrontLink(int socket);
  ~FrontLink();  // sends the unsent answers
  FrontLink(const FrontLink&) = delete;
  FrontLink& operator=(const FrontLink&) = delete;

  // One thread calls tell_ready() and send_answers() and uses the exchanges. send_answers() sends
  // the answers since its last call; without answers it sends from time to time that the engine is
  // alive.
  void tell_ready();
  void send_answers();
  // The other members are thread-safe. passed_on() waits for requests, at most `time`.
  std::deque<ExchangePtr> passed_on(std::chrono::milliseconds time);
  bool has_requests() const;              // true: requests are unanswered, passed on or not
  bool is_lost() const { return lost_; }  // the front has ended

 private:
  friend class EngineExchange;

  void read();
  void take(Frame frame);
  void put(FrameKind kind, uint64_t exchange, std::string_view payload = {});
  void send_all();

  int socket_;
  std::string unsent_;
  std::chrono::steady_clock::time_point last_sent_ = {};
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ExchangePtr> waiting_;
  std::map<uint64_t, std::shared_ptr<std::atomic<bool>>> open_;
  std::thread reader_;
};

}  // namespace convoy::serving
