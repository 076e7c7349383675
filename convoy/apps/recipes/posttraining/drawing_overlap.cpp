// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/drawing_overlap.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/quiet_thread.h"

namespace convoy::recipes {

// One part with its thread.
class DrawingOverlap::Asker {
 public:
  Asker(const Part& part, int64_t samples, Ask ask, std::atomic<bool>& one_has_failed)
      : part_(part), samples_(samples), ask_(std::move(ask)), one_has_failed_(one_has_failed) {
    thread_ = quiet_thread([this] { run(); });
  }

  ~Asker() {
    is_abandoned_ = true;
    join();
  }

  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  void add(const Place& place) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Place>& group = groups_[place.first];
    group.push_back(place);
    if (part_.takes_groups && std::ssize(group) < samples_) return;
    std::sort(group.begin(), group.end());
    ready_.insert(ready_.end(), group.begin(), group.end());
    groups_.erase(place.first);
    changed_.notify_one();
  }

  // No text comes any more. The exception that ended it; null: it was asked about all, or left
  // because another one failed.
  std::exception_ptr join() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_last_ = true;
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
    return failure_;
  }

 private:
  void run() {
    try {
      for (std::vector<Place> places = take(); !places.empty(); places = take())
        ask_(part_.number, places, [this] { return is_left(); });
    } catch (const StopRequest&) {
      if (!is_left()) failure_ = std::current_exception();
    } catch (...) {
      failure_ = std::current_exception();
      one_has_failed_ = true;
    }
  }

  // All texts that are ready, as soon as there is one; none: there are no more.
  std::vector<Place> take() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || is_last_; });
    if (is_left()) return {};
    return std::exchange(ready_, {});
  }

  bool is_left() const { return is_abandoned_ || one_has_failed_; }

  const Part part_;
  const int64_t samples_;
  const Ask ask_;
  std::atomic<bool>& one_has_failed_;  // shared by all askers
  std::atomic<bool> is_abandoned_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, std::vector<Place>> groups_;  // texts of groups that are not whole, by problem
  std::vector<Place> ready_;
  bool is_last_ = false;
  std::exception_ptr failure_;  // written by the thread, read after its end
  std::thread thread_;
};

DrawingOverlap::DrawingOverlap(const std::vector<Part>& parts, int64_t samples, Ask ask) {
  for (const Part& part : parts)
    askers_.push_back(std::make_unique<Asker>(part, samples, ask, one_has_failed_));
}

DrawingOverlap::~DrawingOverlap() = default;

void DrawingOverlap::add(const Place& place) {
  for (const auto& asker : askers_) asker->add(place);
}

void DrawingOverlap::throw_a_failure() {
  if (one_has_failed_) finish();
}

void DrawingOverlap::finish() {
  std::exception_ptr first;
  for (const auto& asker : askers_)
    if (const std::exception_ptr failure = asker->join(); failure && !first) first = failure;
  if (first) std::rethrow_exception(first);
}

}  // namespace convoy::recipes
