// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/nccl/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <stdexcept>
#include <thread>

#include "convoy/core/base/quiet_thread.h"

namespace convoy::comm {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Communicator::~Communicator() {
  if (handle_ != nullptr) nccl_.destroy(handle_);
}

int Communicator::checked(int result) {
  constexpr int kSuccess = 0;
  if (result == kSuccess || result == kNcclInProgress) return result;
  throw std::runtime_error(
      fmt::format("NCCL: {}\n{}", nccl_.error_text(result), nccl_.last_error(handle_)));
}

NcclId Communicator::new_id() {
  NcclId id{};
  checked(nccl_.get_unique_id(&id));
  return id;
}

int Communicator::state() {
  const std::lock_guard lock(mutex_);
  if (handle_ == nullptr) throw std::runtime_error("an earlier error has ended the group");
  int found = 0;
  checked(nccl_.async_error(handle_, &found));
  return checked(found);
}

// Waits until NCCL's own thread has carried out the call. This mostly takes tens of microseconds,
// less than the shortest sleep, so the wait yields before it sleeps.
void Communicator::settle(int result) {
  constexpr std::chrono::microseconds kAwake{100};
  constexpr std::chrono::microseconds kPause{100};
  if (result != kNcclInProgress) return;
  const Clock::time_point begin = Clock::now();
  while (state() == kNcclInProgress) {
    const Clock::duration passed = Clock::now() - begin;
    if (passed > timeout_)
      throw std::runtime_error(fmt::format("timed out after {} ms", timeout_.count()));
    if (passed < kAwake)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPause);
  }
}

void Communicator::join(const NcclId& id, int size, int rank) {
  NcclConfig config;
  int result = 0;
  {
    const std::lock_guard lock(mutex_);
    result = checked(nccl_.init_rank(&handle_, size, id, rank, &config));
  }
  settle(result);
}

void Communicator::run(const std::function<int(NcclCommunicator)>& call) {
  int result = 0;
  {
    const std::lock_guard lock(mutex_);
    if (handle_ == nullptr) throw std::runtime_error("an earlier error has ended the group");
    result = checked(call(handle_));
  }
  settle(result);
}

// Waits for NCCL's abort only for a while: it may never return, and the process is about to end.
void Communicator::abort() {
  constexpr std::chrono::milliseconds kLongest{5000};
  NcclCommunicator handle = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::swap(handle, handle_);
  }
  if (handle == nullptr) return;
  auto aborting = std::make_shared<std::packaged_task<int()>>(
      [abort = nccl_.abort, handle] { return abort(handle); });
  std::future<int> ended = aborting->get_future();
  quiet_thread([aborting] { (*aborting)(); }).detach();
  ended.wait_for(std::min(timeout_, kLongest));
}

}  // namespace convoy::comm
