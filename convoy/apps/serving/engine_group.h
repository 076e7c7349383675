// SPDX-License-Identifier: Apache-2.0
//
// The engine processes of one server: started, given requests, replaced when they die. Loads no
// LibTorch.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convoy/apps/serving/client_exchange.h"
#include "convoy/apps/serving/engine_choice.h"
#include "convoy/apps/serving/frames.h"
#include "convoy/apps/serving/json_answer.h"
#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/log.h"
#include "convoy/core/http/http_server.h"
#include "convoy/machine/processes/process_pool.h"

namespace convoy::serving {

class EngineGroup {
 public:
  // `pool`: starts `convoy-worker serve`, one worker for each engine; this class sets its `input`.
  // An engine that was ready and gives no sign of life for `silence_limit` is killed. Starts
  // nothing yet.
  EngineGroup(processes::PoolOptions pool, const Log& log,
              std::chrono::seconds silence_limit = std::chrono::minutes(5));
  ~EngineGroup();  // kills the engines; open exchanges end without an answer
  EngineGroup(const EngineGroup&) = delete;
  EngineGroup& operator=(const EngineGroup&) = delete;

  // Thread-safe, does not block. Passes the request to an engine, or keeps it until one is ready.
  // When the engine dies before it has begun to answer, the request is tried once more. Otherwise
  // the client gets status 503, or an error as the last event of a stream.
  void take(std::unique_ptr<ClientExchange> exchange);
  // Passes the request to all engines that are ready. The answer is one text with all their
  // metrics. Thread-safe, does not block.
  void take_metrics(std::unique_ptr<ClientExchange> exchange);
  // Answers the requests that wait for an engine with this error. Thread-safe.
  void refuse_waiting(const ApiError& error);
  bool any_ready() const;    // thread-safe
  int64_t requests() const;  // thread-safe: number of open requests

  // Call the following functions on one thread only. turn() starts and replaces engines, kills
  // silent engines, passes on requests and answers. Returns after `limit` at the latest, or when
  // `other` is readable. Throws the error of an engine that ends before it was ready for the first
  // time. An engine that was ready before is started again, after growing waits.
  void turn(std::chrono::milliseconds limit, int other);
  bool all_ready() const;
  // Answers all open requests with this error.
  void fail_all(const ApiError& error);
  // Engines take no more requests, end after their last answer, and are not replaced any more.
  void stop();
  bool all_ended() const { return pool_->running() == 0; }

 private:
  struct Engine {
    Descriptor socket;
    FrameReader frames;
    std::string unsent;  // bytes that wait because the socket is full
    bool waits_for_room = false;
    bool loads = false;
    bool ready = false;
    bool was_ready = false;
    int failed_starts = 0;  // in a row
    std::chrono::steady_clock::time_point next_start = {};
    std::chrono::steady_clock::time_point last_sign = {};
  };

  // The answer is sent when the last exchange that holds this object ends.
  struct Metrics {
    explicit Metrics(std::shared_ptr<ClientExchange> client) : exchange(std::move(client)) {}
    ~Metrics();
    std::shared_ptr<ClientExchange> exchange;
    std::vector<std::string> texts;  // metrics of the group and its engines
  };

  struct Open {
    std::shared_ptr<ClientExchange> exchange;
    PromptPrefixes prefixes = {};
    std::shared_ptr<Metrics> metrics = nullptr;  // metrics that the answer is a part of
    std::optional<size_t> engine = {};           // empty: waits for an engine
    int tries = 0;
    bool started = false;
  };

  std::string own_metrics() const;
  void start_missing();
  static std::chrono::seconds wait_after_failure(Engine& engine);
  Descriptor connect(size_t number);
  void read(size_t number);
  void handle(const Frame& frame);
  void pass_on(uint64_t number);
  void give(uint64_t number, Open& open, size_t engine);
  void pass_on_waiting();
  void put(Engine& engine, FrameKind kind, uint64_t exchange, std::string_view payload = {});
  void send(Engine& engine);
  void forget_gone_clients();
  void kill_silent();
  std::string end_words(const processes::ProcessDeath& death) const;
  void bury(const processes::ProcessDeath& death);
  static void fail(const Open& open, const ApiError& error);
  // Ends the exchanges of a dead engine, or tries them on another engine. Returns the number of
  // these exchanges.
  int64_t end_exchanges_of(size_t engine);
  EngineLoads loads() const;
  void say(const processes::ProcessNews::Line& line) const;

  Log log_;
  std::chrono::seconds silence_limit_;
  mutable std::mutex mutex_;  // guards all members below except the pool
  std::vector<Engine> engines_;
  EngineChoice choice_;
  int64_t dead_engines_ = 0;
  int64_t lost_requests_ = 0;  // requests that ended with an error because their engine died
  std::map<uint64_t, Open> open_;
  std::deque<uint64_t> waiting_;  // requests that wait for an engine
  uint64_t next_number_ = 1;
  bool stops_ = false;
  Descriptor wakes_;  // epoll: the engines' sockets and `other`
  int other_ = -1;
  std::unique_ptr<processes::ProcessPool> pool_;
};

}  // namespace convoy::serving
