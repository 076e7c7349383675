// SPDX-License-Identifier: Apache-2.0
//
// `dp`: the ranks are threads of one process, each with a replica of the model that it keeps for
// the whole run, on a device of its own or on its share of the CPUs. Every thread runs what a
// process of `ddp` runs; only their group is another one (comm/threads), so there is one training
// loop, one set of rules for batches, seeds, checkpoints and metrics, and equal results.
//
// Nothing is copied from one replica to the others after the start: each steps its own optimizer
// with the same summed gradients, which gives the same bits.
#pragma once

#include <functional>
#include <memory>

#include "convoy/core/telemetry/ranks/flight_record_writer.h"
#include "convoy/train/comm/store_barrier.h"

namespace convoy::parallel {

// Runs `body` on `count` threads and waits for all of them. A body joins the group of its barrier,
// and aborts it when it fails. Signals stay with the calling thread. `process`: the environment of
// this process, of world 1. Rethrows the error of the body that failed first, not the errors of
// peers that lost it.
void run_replicas(const comm::RankEnvironment& process, int count, telemetry::FlightWriter& flight,
                  const std::function<void(std::shared_ptr<comm::StoreBarrier>)>& body);

}  // namespace convoy::parallel
