// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/descriptor_limit.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"

namespace convoy::processes {
namespace {

// Process, two streams, flight record, two log files.
constexpr rlim_t kOfARank = 6;
// The launcher's own descriptors, and others that are open for a moment while a rank is started.
constexpr rlim_t kOthers = 32;

}  // namespace

rlim_t DescriptorLimit::needed(int num_ranks) {
  return kOthers + kOfARank * static_cast<rlim_t>(num_ranks);
}

DescriptorLimit::DescriptorLimit(int num_ranks) {
  if (::getrlimit(RLIMIT_NOFILE, &before_) != 0)
    throw IoError(
        fmt::format("the limit of open files could not be read: {}", std::strerror(errno)),
        {.hint = "allow the system call getrlimit in this container"});
  const rlim_t wanted = needed(num_ranks);
  if (before_.rlim_max < wanted)
    throw IoError(
        fmt::format("{} {} open files, found a limit of {}",
                    counted(num_ranks, "rank needs", "ranks need"), wanted, before_.rlim_max),
        {.hint = "raise it (ulimit -n, LimitNOFILE), or start fewer ranks here"});
  rlimit raised = before_;
  raised.rlim_cur = std::max(before_.rlim_cur, wanted);
  ::setrlimit(RLIMIT_NOFILE, &raised);
}

DescriptorLimit::~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

}  // namespace convoy::processes
