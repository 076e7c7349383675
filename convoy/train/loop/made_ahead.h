// SPDX-License-Identifier: Apache-2.0
//
// A sequence whose items are made on a thread of its own while the taker works on earlier ones.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/quiet_thread.h"

namespace convoy::train {

// One thread takes items. The destructor drops items that were made and not taken.
template <class Item>
class MadeAhead {
 public:
  // The taker waits only for an item that takes longer to make than those before it took to use.
  static constexpr size_t kMostWaiting = 2;

  // `make` is called for 0 to `count` - 1 in this order, on the other thread, until it throws.
  MadeAhead(int64_t count, std::function<Item(int64_t)> make)
      : count_(count), make_(std::move(make)), thread_(quiet_thread([this] { run(); })) {}

  // Blocks while an item is being made.
  ~MadeAhead() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  MadeAhead(const MadeAhead&) = delete;
  MadeAhead& operator=(const MadeAhead&) = delete;

  // The next item. Blocks until it is made; throws what making it threw, again at each call.
  Item take() {
    std::unique_lock lock(mutex_);
    CONVOY_INVARIANT(num_taken_ < count_, "all {} items are taken", count_);
    changed_.wait(lock, [&] { return !waiting_.empty() || failure_; });
    if (waiting_.empty()) std::rethrow_exception(failure_);
    Item item = std::move(waiting_.front());
    waiting_.pop_front();
    ++num_taken_;
    lock.unlock();
    changed_.notify_all();
    return item;
  }

 private:
  void run() {
    try {
      for (int64_t index = 0; index < count_ && wait_for_room(); ++index) put(make_(index));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    changed_.notify_all();
  }

  // Blocks until fewer items wait. Returns false when no more items will be taken.
  bool wait_for_room() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || waiting_.size() < kMostWaiting; });
    return !ended_;
  }

  void put(Item item) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(item));
    }
    changed_.notify_all();
  }

  const int64_t count_;
  const std::function<Item(int64_t)> make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> waiting_;
  std::exception_ptr failure_;
  int64_t num_taken_ = 0;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace convoy::train
