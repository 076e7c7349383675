// SPDX-License-Identifier: Apache-2.0
//
// The part of `convoy doctor` that starts ranks: two on this host, or one on each node that the
// flags name.
#pragma once

#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/launch/supervisor/launch_flags.h"
#include "convoy/machine/monitor/doctor/doctor_ranks.h"

namespace convoy::apps {

struct RanksToTry {
  launch::MemberFlags members;
  int num_gpus = 0;          // GPUs that ranks here can compute on
  bool has_gpus = false;     // the host has GPUs, usable by ranks or not
  bool has_libtorch = true;  // false: ranks cannot be started
};

// Tries Gloo, and NCCL when every rank has a GPU. Blocks: a second each, and up to two minutes when
// the connection fails. Failures are returned as findings. Throws ConfigError for invalid flags.
std::vector<monitor::Finding> try_ranks(const Context& context, const RanksToTry& wanted);

}  // namespace convoy::apps
