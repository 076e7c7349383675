// SPDX-License-Identifier: Apache-2.0
#include "fake_nccl/communicator.h"

#include <chrono>
#include <cstdlib>
#include <sstream>

namespace fake_nccl {
namespace {

struct Fault {
  std::string kind;
  int at = 1;
  int rank = 0;
};

Fault planted_fault() {
  Fault fault;
  const char* const text = std::getenv("FAKE_NCCL_FAULT");
  std::istringstream words(text == nullptr ? "" : text);
  std::getline(words, fault.kind, ':');
  char colon;
  words >> fault.at >> colon >> fault.rank;
  return fault;
}

// Returns the fault that is planted in this rank's next collective, or "".
std::string next_fault(int rank) {
  static std::atomic<int> begun = 0;
  const Fault fault = planted_fault();
  return ++begun == fault.at && rank == fault.rank ? fault.kind : "";
}

std::string fault_of_joining(int rank) {
  const Fault fault = planted_fault();
  return fault.kind.starts_with("join_") && rank == fault.rank ? fault.kind : "";
}

}  // namespace

FakeNcclDevice device = {
    .begin = [](void*, const FakeNcclRange*, size_t) -> void* { return &device; },
    .is_reached = [](void*) { return true; },
    .end = [](void*) {},
    .address = [](const void* address) { return const_cast<void*>(address); },
};

Communicator::Communicator(const std::string& name, int rank, int size)
    : slots_(name, rank, size), thread_([this] { run(); }) {}

void Communicator::abort() {
  while (abort_hangs_) std::this_thread::sleep_for(std::chrono::seconds(1));
  is_aborted_ = true;
  finish();
}

void Communicator::finish() {
  {
    const std::lock_guard lock(mutex_);
    is_finishing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool Communicator::await(const std::function<bool()>& is_there) const {
  while (!is_there()) {
    if (is_aborted_) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

bool Communicator::meet() const {
  return slots_.meet([this] { return is_aborted_.load(); });
}

void Communicator::join() {
  const std::string fault = fault_of_joining(rank());
  if (fault == "join_fail") {
    // Waits until the other ranks have opened the memory, because a rank that comes later would not
    // find it.
    if (await([this] { return slots_.is_opened_by_all(); })) state_ = kSystemError;
  } else if (fault == "join_hang") {
    await([] { return false; });
  } else if (meet()) {
    state_ = kSuccess;
  }
}

void Communicator::run() {
  join();
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_finishing_ || !items_.empty(); });
    if (items_.empty()) return;
    const Item item = std::move(items_.front());
    items_.pop_front();
    lock.unlock();
    // After abort() the buffers may hold anything, so peers must not get them as this rank's part.
    if (await([&] { return device.is_reached(item.work); }) && !is_aborted_) item.body();
    device.end(item.work);
  }
}

int Communicator::put(void* stream, const std::vector<FakeNcclRange>& ranges,
                      std::function<bool()> body) {
  const std::string fault = next_fault(rank());
  if (fault == "call_fail") return kSystemError;
  if (fault == "launch_hang") return state_ = kInProgress;
  const auto never = [this] { return await([] { return false; }); };
  if (fault == "hang" || fault == "abort_hang") body = never;
  if (fault == "abort_hang") abort_hangs_ = true;
  if (fault == "lost_peer")
    body = [this, never] {
      state_ = kRemoteError;
      return never();
    };
  void* const work = device.begin(stream, ranges.data(), ranges.size());
  if (work == nullptr) return kInvalidArgument;
  {
    const std::lock_guard lock(mutex_);
    items_.push_back({work, std::move(body)});
  }
  changed_.notify_all();
  return kSuccess;
}

}  // namespace fake_nccl
