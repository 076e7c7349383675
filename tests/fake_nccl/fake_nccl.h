// SPDX-License-Identifier: Apache-2.0
//
// The settings of the stand-in for NCCL. Processes of one host exchange the values of collectives
// through shared memory. As in NCCL, collectives run beside the caller, which learns their end from
// the stream and their faults from ncclCommGetAsyncError. Sums are computed in the order of ranks.
// bf16 and fp16 are added in fp32 and rounded once at the end; NCCL may round at each rank.
//
// FAKE_NCCL_FAULT=KIND[:N[:RANK]] plants one fault, on rank RANK (default 0), at its Nth collective
// (default 1, counted over all communicators of the process):
//   join_hang    the rank never joins; the others wait for it
//   join_fail    joining ends in ncclSystemError
//   call_fail    the call returns ncclSystemError
//   launch_hang  the call never gets beyond ncclInProgress, as while NCCL connects to a lost peer
//   hang         the rank's collective never ends, nor do the other ranks' collectives
//   abort_hang   as hang, and ncclCommAbort of that communicator does not return
//   lost_peer    as hang, and the communicator's asynchronous state becomes ncclRemoteError
// ncclCommDestroy waits for the collectives on the stream, possibly for ever; ncclCommAbort ends
// them.
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
