// SPDX-License-Identifier: Apache-2.0
//
// One rank's end of an NCCL communicator. Thread-safe: the rank's own thread drives it, and the
// thread that watches the device may abort it. All functions throw std::runtime_error with NCCL's
// reasons.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>

#include "convoy/train/comm/nccl/nccl_library.h"

namespace convoy::comm {

class Communicator {
 public:
  // `timeout`: the limit for joining, and for NCCL's work on a collective before the device has it.
  Communicator(const NcclLibrary& nccl, std::chrono::milliseconds timeout)
      : nccl_(nccl), timeout_(timeout) {}
  // Waits for the work on its stream, if abort() has not been called.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  NcclId new_id();
  // Collective. Blocks until every rank is here.
  void join(const NcclId& id, int size, int rank);
  // Blocks until the device has the work of `call`, which calls NCCL and returns its result.
  void run(const std::function<int(NcclCommunicator)>& call);
  // Throws when NCCL has found a fault, such as a lost peer.
  void check() { state(); }
  // Ends the work on the device. Returns in seconds, even if NCCL does not.
  void abort();

 private:
  int checked(int result);
  int state();  // kNcclInProgress while a call is running
  void settle(int result);

  const NcclLibrary nccl_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  NcclCommunicator handle_ = nullptr;  // null before join() and after abort()
};

}  // namespace convoy::comm
