// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/nccl/collective_watch.h"

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "convoy/core/base/quiet_thread.h"

namespace convoy::comm {
namespace {

using Clock = std::chrono::steady_clock;

// The resolution of waits in the flight record.
constexpr std::chrono::milliseconds kLook{1};

}  // namespace

c10::Event EventPool::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return c10::Event(type_, c10::EventFlag::BACKEND_DEFAULT);
  c10::Event event = std::move(free_.back());
  free_.pop_back();
  return event;
}

void EventPool::give_back(c10::Event event) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(event));
}

WatchedCollective::WatchedCollective(const CollectiveScope& scope, std::shared_ptr<EventPool> pool)
    : scope_(scope), pool_(std::move(pool)), ready_(pool_->take()), done_(pool_->take()) {}

WatchedCollective::~WatchedCollective() {
  pool_->give_back(std::move(ready_));
  pool_->give_back(std::move(done_));
  if (needed_) pool_->give_back(std::move(*needed_));
}

void WatchedCollective::block(const c10::Stream& stream) {
  c10::Event needed = pool_->take();
  needed.record(stream);
  done_.block(stream);
  const std::lock_guard lock(mutex_);
  needed_ = std::move(needed);
}

// The time, by the device's clock, that the stream which needs the collective has waited for it.
double WatchedCollective::waited_seconds() {
  if (!needed_ || !needed_->query()) return 0;
  return std::max(0.0, needed_->elapsedTime(done_) / 1e3);
}

bool WatchedCollective::has_ended() {
  const std::lock_guard lock(mutex_);
  if (!is_waited_for_ && needed_ && needed_->query()) {
    is_waited_for_ = true;
    scope_.device_waits();
  }
  if (done_.query()) {
    scope_.device_is_done(waited_seconds());
    return true;
  }
  if (!begun_ && ready_.query()) begun_ = Clock::now();
  return false;
}

void WatchedCollective::check_limit(std::chrono::milliseconds limit) const {
  if (begun_ && Clock::now() > *begun_ + limit)
    throw std::runtime_error(fmt::format("timed out after {} ms", limit.count()));
}

CollectiveWatch::CollectiveWatch(c10::Device device, std::chrono::milliseconds timeout, Group& host)
    : device_(device),
      timeout_(timeout),
      host_(host),
      events_(std::make_shared<EventPool>(device.type())),
      thread_(quiet_thread([this] { run(); })) {}

CollectiveWatch::~CollectiveWatch() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CollectiveWatch::add(Communicator& communicator) {
  const std::lock_guard lock(mutex_);
  lanes_.push_back({&communicator, {}});
}

void CollectiveWatch::add(const Communicator& communicator,
                          std::shared_ptr<WatchedCollective> collective) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  if (is_idle()) changed_.notify_all();
  std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& one) {
    return one.communicator == &communicator;
  })->collectives.push_back(std::move(collective));
}

void CollectiveWatch::remove(Communicator& communicator) {
  std::unique_lock lock(mutex_);
  const auto is_its = [&](const Lane& lane) { return lane.communicator == &communicator; };
  changed_.wait(lock, [&] {
    return failure_ || std::find_if(lanes_.begin(), lanes_.end(), is_its)->collectives.empty();
  });
  std::erase_if(lanes_, is_its);
}

bool CollectiveWatch::is_idle() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.collectives.empty(); });
}

void CollectiveWatch::check() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void CollectiveWatch::await_all() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return failure_ || is_idle(); });
  }
  check();
}

void CollectiveWatch::fail(const std::exception_ptr& error) {
  const std::lock_guard lock(mutex_);
  fail_locked(error);
}

// The error is stored before the device goes on without the collective, so a caller that sees wrong
// values also sees the error.
void CollectiveWatch::fail_locked(const std::exception_ptr& error) {
  if (failure_) return;
  failure_ = error;
  host_.abort();
  for (Lane& lane : lanes_) {
    lane.communicator->abort();
    lane.collectives.clear();
  }
  changed_.notify_all();
}

void CollectiveWatch::run() {
  const c10::DeviceGuard guard(device_);
  std::unique_lock lock(mutex_);
  while (!stops_) {
    if (is_idle())
      changed_.wait(lock, [this] { return stops_ || !is_idle(); });
    else
      changed_.wait_for(lock, kLook, [this] { return stops_; });
    for (Lane& lane : lanes_) look_at(lane);
  }
}

void CollectiveWatch::look_at(Lane& lane) {
  bool ended = false;
  while (!lane.collectives.empty()) {
    WatchedCollective& first = *lane.collectives.front();
    try {
      if (!first.has_ended()) {
        first.scope().run([&] {
          first.check_limit(timeout_);
          lane.communicator->check();
        });
        break;
      }
    } catch (const std::exception&) {
      return fail_locked(std::current_exception());
    }
    lane.collectives.pop_front();
    ended = true;
  }
  if (ended) changed_.notify_all();
}

}  // namespace convoy::comm
