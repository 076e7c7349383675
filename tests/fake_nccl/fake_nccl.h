// SPDX-License-Identifier: Apache-2.0
//
// The settings of the stand-in for NCCL. Its collectives are real: processes of one host exchange
// values through shared memory. As with NCCL they run beside the caller, which sees their end by
// the stream, and faults by ncclCommGetAsyncError. Sums add in the order of ranks: bf16 and fp16 in
// fp32 with one rounding at the end, where NCCL may round at each rank.
//
// FAKE_NCCL_FAULT=KIND[:N[:RANK]] plants one fault, on rank RANK (default 0), at its Nth collective
// (default 1; all communicators of the process count together):
//   join_hang    the rank never joins; the others wait for it
//   join_fail    joining ends in ncclSystemError
//   call_fail    the call returns ncclSystemError
//   launch_hang  the call never gets beyond ncclInProgress, as while NCCL connects to a lost peer
//   hang         the rank's collective never ends, and so no other rank's does
//   abort_hang   as hang, and ncclCommAbort of that communicator does not return
//   lost_peer    as hang, and the communicator's asynchronous state becomes ncclRemoteError
// ncclCommDestroy waits for what is on the stream, for ever if need be; ncclCommAbort ends it.
#pragma once

#include <cstddef>

extern "C" {

// A range of device memory that a collective reads or writes.
struct FakeNcclRange {
  const void* begin;
  size_t bytes;
  bool writes;
};

// How the library uses the device of the process. Without it, buffers are in host memory.
struct FakeNcclDevice {
  // Queues work on the stream, which is not done before end(). Returns null after an error.
  void* (*begin)(void* stream, const FakeNcclRange* ranges, size_t count);
  bool (*is_reached)(void* work);  // all earlier work on the stream is done
  void (*end)(void* work);
  void* (*address)(const void* device_address);
};

void fake_nccl_use_device(const FakeNcclDevice* device);
}
