// SPDX-License-Identifier: Apache-2.0
//
// A job from this node's view: attempts one after another until one succeeds or nothing is left to
// try, alone or with the launchers of other nodes. Driven by one thread; for several nodes it
// starts threads of its own.
#pragma once

#include <memory>
#include <optional>

#include "convoy/core/base/log.h"
#include "convoy/launch/rendezvous/coordinator.h"
#include "convoy/launch/rendezvous/node_link.h"
#include "convoy/launch/rendezvous/restart_policy.h"
#include "convoy/launch/supervisor/launcher.h"

namespace convoy::launch {

// The way in which this node finds the others.
struct JoinSpec {
  rendezvous::NodeLinkOptions link;
  rendezvous::JobToken token;
};

struct JobSpec {
  // Filled in before the job's members are known, except for `job`.
  LaunchSpec attempt;
  // Limits of a job on this node alone. With several nodes the coordinator holds the limits.
  rendezvous::RestartLimits restarts;
  std::optional<JoinSpec> join;                          // several nodes
  std::shared_ptr<rendezvous::Coordinator> coordinator;  // on the node that hosts it
  // True when the ranks are convoy-workers: they report progress, and on several nodes they get the
  // job's key-value store.
  bool own_program = false;
  bool reports_failures = true;  // with several nodes: warns of a failed attempt at once
  Log log;
};

// Blocks until the job has ended here. The report describes the last attempt; its exit code is the
// job's. Throws as run_ranks and NodeLink do.
LaunchReport run_job(const JobSpec& spec);

}  // namespace convoy::launch
