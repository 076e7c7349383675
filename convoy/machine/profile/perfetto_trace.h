// SPDX-License-Identifier: Apache-2.0
//
// Traces of all ranks as one file that Perfetto opens (ui.perfetto.dev, trace_processor): a track
// per rank with its steps and phases, under it its waits and collectives, and the counters of
// devices. Perfetto's own format (perfetto.dev/docs/reference/trace-packet-proto).
#pragma once

#include <string>
#include <vector>

#include "convoy/machine/profile/device_counters.h"
#include "convoy/machine/profile/rank_trace.h"

namespace convoy::profile {

// `traces` must be on one clock (align_clocks); `counters` are on the time-of-day clock.
std::string perfetto_trace(const std::vector<RankTrace>& traces,
                           const std::vector<DeviceCounter>& counters = {});

}  // namespace convoy::profile
