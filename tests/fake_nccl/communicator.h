// SPDX-License-Identifier: Apache-2.0
//
// A rank's part of a communicator: a thread that joins the other ranks and runs collectives in
// order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fake_nccl/fake_nccl.h"
#include "fake_nccl/shared_slots.h"

namespace fake_nccl {

// Values of ncclResult_t.
constexpr int kSuccess = 0;
constexpr int kSystemError = 2;
constexpr int kInvalidArgument = 4;
constexpr int kRemoteError = 6;
constexpr int kInProgress = 7;

extern FakeNcclDevice device;

class Communicator {
 public:
  Communicator(const std::string& name, int rank, int size);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  // abort() ends the collectives on the stream; finish() waits for them.
  void abort();
  void finish();

  int rank() const { return slots_.rank(); }
  int size() const { return slots_.size(); }
  int state() const { return state_; }

  // Queues a collective on the stream. The communicator's thread runs `body` when the stream
  // reaches it. `body` returns false if the communicator was aborted in the meantime. Returns
  // ncclResult_t.
  int put(void* stream, const std::vector<FakeNcclRange>& ranges, std::function<bool()> body);
  // Waits for all ranks. Called only by a body.
  bool meet() const;
  const SharedSlots& slots() const { return slots_; }

 private:
  struct Item {
    void* work;
    std::function<bool()> body;
  };
  void run();
  void join();
  bool await(const std::function<bool()>& is_there) const;

  const SharedSlots slots_;
  std::atomic<int> state_ = kInProgress;
  std::atomic<bool> is_aborted_ = false;
  std::atomic<bool> abort_hangs_ = false;
  bool is_finishing_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  std::thread thread_;
};

}  // namespace fake_nccl
