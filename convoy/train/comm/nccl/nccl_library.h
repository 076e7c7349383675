// SPDX-License-Identifier: Apache-2.0
//
// The functions of NCCL that we call. They are looked up at run time in the NCCL library that the
// CUDA part of LibTorch has loaded. The declarations follow nccl.h of 2.14 and later, whose binary
// interface is kept stable.
#pragma once

#include <cstddef>

namespace convoy::comm {

struct NcclId {
  char bytes[128];
};

// ncclConfig_t as of 2.14. Later versions accept it, because `version` tells them its form.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;  // calls that wait for peers return kNcclInProgress
};

constexpr int kNcclInProgress = 7;

using NcclCommunicator = struct NcclCommunicatorState*;

// Results are ncclResult_t: 0 = success. Streams are cudaStream_t.
struct NcclLibrary {
  int (*get_unique_id)(NcclId* id);
  int (*init_rank)(NcclCommunicator* made, int num_ranks, NcclId id, int rank, NcclConfig* config);
  int (*all_reduce)(const void* from, void* to, size_t count, int dtype, int operation,
                    NcclCommunicator communicator, void* stream);
  int (*reduce_scatter)(const void* whole, void* own, size_t own_count, int dtype, int operation,
                        NcclCommunicator communicator, void* stream);
  int (*all_gather)(const void* own, void* whole, size_t own_count, int dtype,
                    NcclCommunicator communicator, void* stream);
  int (*broadcast)(const void* from, void* to, size_t count, int dtype, int root,
                   NcclCommunicator communicator, void* stream);
  int (*async_error)(NcclCommunicator communicator, int* result);
  int (*abort)(NcclCommunicator communicator);
  int (*destroy)(NcclCommunicator communicator);
  const char* (*error_text)(int result);
  const char* (*last_error)(NcclCommunicator communicator);  // the cause; may be empty
};

// Throws DeviceError when there is no NCCL.
NcclLibrary open_nccl();

}  // namespace convoy::comm
