// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/nccl/nccl_library.h"

#include <dlfcn.h>

#include "convoy/core/base/error.h"

namespace convoy::comm {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr)
    throw DeviceError(fmt::format("the NCCL that was found has no {}", name),
                      {.hint = "install the one of torch 2.11 (nvidia-nccl-cu13)"});
}

}  // namespace

NcclLibrary open_nccl() {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw DeviceError(fmt::format("ranks on GPUs need NCCL: {}", dlerror()),
                      {.hint = "install torch 2.11 with all it depends on (nvidia-nccl-cu13)"});
  NcclLibrary nccl{};
  find(library, "ncclGetUniqueId", nccl.get_unique_id);
  find(library, "ncclCommInitRankConfig", nccl.init_rank);
  find(library, "ncclAllReduce", nccl.all_reduce);
  find(library, "ncclReduceScatter", nccl.reduce_scatter);
  find(library, "ncclAllGather", nccl.all_gather);
  find(library, "ncclBroadcast", nccl.broadcast);
  find(library, "ncclCommGetAsyncError", nccl.async_error);
  find(library, "ncclCommAbort", nccl.abort);
  find(library, "ncclCommDestroy", nccl.destroy);
  find(library, "ncclGetErrorString", nccl.error_text);
  find(library, "ncclGetLastError", nccl.last_error);
  return nccl;
}

}  // namespace convoy::comm
