// SPDX-License-Identifier: Apache-2.0
//
// The thread that watches the collectives of one rank's device, in its group and in the group's
// parts. It reports their begin and end to the flight record, checks their time limit, and looks
// for faults of NCCL. The first fault ends all of the groups, so that neither the device nor the
// host waits for a lost peer. The next call of one of the groups throws that fault.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "convoy/train/comm/collective_scope.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/comm/nccl/communicator.h"

namespace convoy::comm {

// Timed events of one device. Thread-safe.
class EventPool {
 public:
  explicit EventPool(c10::DeviceType type) : type_(type) {}
  c10::Event take();
  void give_back(c10::Event event);

 private:
  const c10::DeviceType type_;
  std::mutex mutex_;
  std::vector<c10::Event> free_;
};

// A collective on its stream.
class WatchedCollective {
 public:
  WatchedCollective(const CollectiveScope& scope, std::shared_ptr<EventPool> pool);
  ~WatchedCollective();
  WatchedCollective(const WatchedCollective&) = delete;
  WatchedCollective& operator=(const WatchedCollective&) = delete;

  const CollectiveScope& scope() const { return scope_; }
  c10::Event& ready() { return ready_; }  // recorded when its tensors are ready
  c10::Event& done() { return done_; }
  // Makes `stream`, which needs the tensors next, wait for the collective.
  void block(const c10::Stream& stream);

  // True once the device has ended the collective. Called by the watching thread. Throws faults of
  // the device.
  bool has_ended();
  // Throws std::runtime_error when the collective has run for longer than `limit`.
  void check_limit(std::chrono::milliseconds limit) const;

 private:
  double waited_seconds();

  const CollectiveScope scope_;
  const std::shared_ptr<EventPool> pool_;
  c10::Event ready_;
  c10::Event done_;
  std::mutex mutex_;
  std::optional<c10::Event> needed_;
  bool is_waited_for_ = false;
  std::optional<std::chrono::steady_clock::time_point> begun_;
};

class CollectiveWatch {
 public:
  // `host`: the group that connects the ranks' hosts; outlives this.
  CollectiveWatch(c10::Device device, std::chrono::milliseconds timeout, Group& host);
  ~CollectiveWatch();
  CollectiveWatch(const CollectiveWatch&) = delete;
  CollectiveWatch& operator=(const CollectiveWatch&) = delete;

  // From any thread.
  void add(Communicator& communicator);
  void remove(Communicator& communicator);  // Blocks until its collectives have ended
  void add(const Communicator& communicator, std::shared_ptr<WatchedCollective> collective);
  const std::shared_ptr<EventPool>& events() const { return events_; }

  // Throws the first error, if there was one.
  void check();
  // Blocks until all collectives have ended, then throws the first error, if there was one.
  void await_all();
  // Ends all groups with this error, unless an earlier error has ended them.
  void fail(const std::exception_ptr& error);

 private:
  struct Lane {  // one stream
    Communicator* communicator;
    std::deque<std::shared_ptr<WatchedCollective>> collectives;
  };
  void run();
  void look_at(Lane& lane);
  void fail_locked(const std::exception_ptr& error);
  bool is_idle() const;

  const c10::Device device_;
  const std::chrono::milliseconds timeout_;
  Group& host_;
  const std::shared_ptr<EventPool> events_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Lane> lanes_;
  std::exception_ptr failure_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace convoy::comm
