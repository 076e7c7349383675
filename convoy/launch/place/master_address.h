// SPDX-License-Identifier: Apache-2.0
//
// The address at which rank 0 listens in a job that an outer launcher started: from flags,
// variables, the host list, or loopback on one node.
#pragma once

#include <string>

#include "convoy/launch/place/environment_resolver.h"
#include "convoy/launch/place/rank_source.h"

namespace convoy::launch {

// Fills master_addr, master_port and their origins in `place`, whose sizes are known. `zero` is the
// host of rank 0 and the variable that names it; both are empty when no variable does. Throws
// ConfigError when several nodes have no address, or a port is invalid.
struct HostOfRankZero {
  std::string host;
  std::string variable;
};
void resolve_master(const Variables& variables, const ResolveOptions& options,
                    const HostOfRankZero& zero, ResolvedPlace& place);

// 15000 + the last four digits of a job id ("4217" of "prterun-n1-94217@1"); 0 when it has no
// digit.
int port_of_job(const std::string& job_id);

}  // namespace convoy::launch
