// SPDX-License-Identifier: Apache-2.0
//
// One permanent thread for each replica, on the device of the replica.
#pragma once

#include <c10/core/Device.h>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace convoy::detail {

class ReplicaThreads {
 public:
  // `devices`: by thread. Each thread computes with an equal share of the threads that the caller's
  // operators use.
  explicit ReplicaThreads(std::vector<c10::Device> devices);
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  // Runs body(thread) on the first `count` threads, with the caller's modes of LibTorch (gradients,
  // autocast) and on the caller's streams of the devices. Blocks until all threads are done. If
  // some of them threw, rethrows the error of the one with the smallest number.
  void run(size_t count, const std::function<void(size_t thread)>& body);

 private:
  void serve(size_t thread, int operator_threads);

  const std::vector<c10::Device> devices_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(size_t)>* body_ = nullptr;
  size_t round_ = 0;
  size_t wanted_ = 0;
  size_t running_ = 0;
  bool ends_ = false;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> threads_;
};

}  // namespace convoy::detail
