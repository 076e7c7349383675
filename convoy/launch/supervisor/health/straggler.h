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
  double others_wait_share = 0;  // share of the window that the other ranks waited, on average
};

// Finds the straggler of the last `window`: the rank that itself waits least, since the others wait
// for it. This needs no common clock. Nothing unless this rank was last in most of at least 20
// collectives and the others waited a quarter of their time.
std::optional<Straggler> find_straggler(const std::vector<telemetry::RankFlight>& flights,
                                        std::chrono::milliseconds window);

}  // namespace convoy::launch
