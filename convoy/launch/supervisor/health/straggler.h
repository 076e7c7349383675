// SPDX-License-Identifier: Apache-2.0
//
// Finds the rank that delays the others while the job goes on, from the records of all ranks. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "convoy/core/telemetry/ranks/flight_record.h"

namespace convoy::launch {

struct Straggler {
  int rank = -1;
  int num_collectives = 0;       // collectives of the window that all ranks have done
  double share_last = 0;         // share of these collectives in which this rank waited least
  double others_wait_share = 0;  // share of the window, on average over the other ranks
};

// The straggler of the last `window`. The rank that the others wait for is the one that itself
// waits least: that needs no common clock. None unless it was last in most of at least 20
// collectives and the others waited a quarter of their time.
std::optional<Straggler> find_straggler(const std::vector<telemetry::RankFlight>& flights,
                                        std::chrono::milliseconds window);

}  // namespace convoy::launch
