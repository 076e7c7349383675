// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/dp/replica_threads.h"

#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/quiet_thread.h"

namespace convoy::parallel {
namespace {

// The first error. An error with a cause of its own takes precedence over an error that only
// reports a lost peer.
class FirstError {
 public:
  void take(std::exception_ptr error, bool is_consequence) {
    const std::lock_guard lock(mutex_);
    if (error_ && (is_consequence || !is_consequence_)) return;
    error_ = std::move(error);
    is_consequence_ = is_consequence;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  bool is_consequence_ = false;
};

}  // namespace

void run_replicas(const comm::RankEnvironment& process, int count, telemetry::FlightWriter& flight,
                  const std::function<void(std::shared_ptr<comm::StoreBarrier>)>& body) {
  FirstError first;
  std::vector<std::thread> threads;
  for (std::shared_ptr<comm::StoreBarrier>& store_barrier :
       comm::StoreBarrier::of_threads(process, count, flight))
    threads.push_back(
        quiet_thread([&body, &first, store_barrier = std::move(store_barrier)]() mutable {
          try {
            body(std::move(store_barrier));
          } catch (const CommError&) {
            first.take(std::current_exception(), /*is_consequence=*/true);
          } catch (...) {
            first.take(std::current_exception(), /*is_consequence=*/false);
          }
        }));
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
}

}  // namespace convoy::parallel
