// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/permanent_threads.h"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <omp.h>

#include <algorithm>
#include <utility>

#include "convoy/core/base/quiet_thread.h"
#include "convoy/library/internal/device_streams.h"

namespace convoy::detail {

ReplicaThreads::ReplicaThreads(std::vector<c10::Device> devices)
    : devices_(std::move(devices)), errors_(devices_.size()) {
  const int share = std::max(1, at::get_num_threads() / static_cast<int>(devices_.size()));
  for (size_t thread = 0; thread < devices_.size(); ++thread)
    threads_.push_back(quiet_thread([this, thread, share] { serve(thread, share); }));
}

ReplicaThreads::~ReplicaThreads() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReplicaThreads::run(size_t count, const std::function<void(size_t)>& body) {
  const at::ThreadLocalState modes;
  const std::vector<c10::Stream> streams = current_streams(devices_);
  const std::function<void(size_t)> as_the_caller = [&](size_t thread) {
    const at::ThreadLocalStateGuard in_modes(modes);
    const c10::MultiStreamGuard on_streams(streams);
    const c10::DeviceGuard on_device(devices_[thread]);
    body(thread);
  };
  std::unique_lock lock(mutex_);
  std::fill(errors_.begin(), errors_.end(), nullptr);
  body_ = &as_the_caller;
  wanted_ = running_ = count;
  ++round_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return running_ == 0; });
  for (const std::exception_ptr& error : errors_)
    if (error) std::rethrow_exception(error);
}

// Each thread sets its own number of OpenMP threads; at::set_num_threads would set it for all
// threads.
void ReplicaThreads::serve(size_t thread, int operator_threads) {
  omp_set_num_threads(operator_threads);
  size_t served = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || round_ != served; });
    if (ends_) return;
    served = round_;
    if (thread >= wanted_) continue;
    const std::function<void(size_t)>& body = *body_;
    lock.unlock();
    std::exception_ptr error;
    try {
      body(thread);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    errors_[thread] = error;
    if (--running_ == 0) changed_.notify_all();
  }
}

}  // namespace convoy::detail
