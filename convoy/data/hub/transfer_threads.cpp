// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/transfer_threads.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "convoy/core/base/quiet_thread.h"

namespace convoy::hub {

void run_on_threads(size_t count, size_t num_threads, std::atomic<bool>& has_failed,
                    const std::function<FileWork()>& begin) {
  std::atomic<size_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto body = [&] {
    try {
      const FileWork work = begin();
      for (size_t index = next++; index < count; index = next++) work(index);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      has_failed = true;
    }
  };
  std::vector<std::thread> threads;
  const size_t wanted = std::min(num_threads, count);
  for (size_t index = 0; index < wanted; ++index) threads.push_back(quiet_thread(body));
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace convoy::hub
