// SPDX-License-Identifier: Apache-2.0
//
// Processes a stream on several threads, with results in the order of the stream and in bounded
// memory.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace convoy::data {

// `pull` is called by one thread at a time until it returns nothing; `work` is called by all
// threads at once; `put` by one thread at a time, in the order of `pull`. An exception from one of
// these functions ends the stream there: all earlier items are put and no later one, independent of
// timing.
template <class Item, class Result>
struct OrderedWork {
  std::function<std::optional<Item>()> pull;
  std::function<Result(Item)> work;
  std::function<void(Result)> put;
};

template <class Item, class Result>
class OrderedWorkers {
 public:
  explicit OrderedWorkers(const OrderedWork<Item, Result>& steps) : steps_(steps) {}

  // At most eight items per thread are in progress.
  void run(int num_threads) {
    most_under_way_ = 8 * std::max(num_threads, 1);
    {
      std::vector<std::jthread> threads;
      for (int thread = 1; thread < num_threads; ++thread)
        threads.emplace_back([this] { serve(); });
      serve();
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  struct Outcome {
    std::optional<Result> result;
    std::exception_ptr error;
  };

  void serve() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      if (pulling_ || pulled_ - put_ >= most_under_way_) {
        changed_.wait(lock);
        continue;
      }
      pulling_ = true;
      lock.unlock();
      Outcome outcome;
      std::optional<Item> item;
      try {
        item = steps_.pull();
      } catch (...) {
        outcome.error = std::current_exception();
      }
      lock.lock();
      pulling_ = false;
      const bool is_last = !item;
      ended_ = ended_ || is_last;
      const int64_t place = pulled_++;
      changed_.notify_all();
      if (is_last && !outcome.error) break;
      if (item) {
        lock.unlock();
        try {
          outcome.result.emplace(steps_.work(std::move(*item)));
        } catch (...) {
          outcome.error = std::current_exception();
        }
        lock.lock();
      }
      done_.emplace(place, std::move(outcome));
      put_what_is_next(lock);
    }
  }

  // Puts all results that are next in order. The caller must hold the lock, which is released
  // during `put`.
  void put_what_is_next(std::unique_lock<std::mutex>& lock) {
    if (putting_) return;  // the putting thread will put it
    putting_ = true;
    for (auto next = done_.find(put_); next != done_.end() && !error_; next = done_.find(put_)) {
      Outcome outcome = std::move(next->second);
      done_.erase(next);
      lock.unlock();
      try {
        if (outcome.error) std::rethrow_exception(outcome.error);
        steps_.put(std::move(*outcome.result));
      } catch (...) {
        outcome.error = std::current_exception();
      }
      lock.lock();
      ++put_;
      if (outcome.error) {
        error_ = outcome.error;
        ended_ = true;
      }
      changed_.notify_all();
    }
    putting_ = false;
  }

  const OrderedWork<Item, Result>& steps_;
  int64_t most_under_way_ = 0;
  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  bool pulling_ = false;
  bool putting_ = false;
  bool ended_ = false;
  int64_t pulled_ = 0;
  int64_t put_ = 0;
  std::map<int64_t, Outcome> done_;  // results that were not put yet, by number
  std::exception_ptr error_;
};

template <class Item, class Result>
void work_in_order(const OrderedWork<Item, Result>& steps, int num_threads) {
  OrderedWorkers<Item, Result>(steps).run(num_threads);
}

}  // namespace convoy::data
