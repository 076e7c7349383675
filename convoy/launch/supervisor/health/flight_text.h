// SPDX-License-Identifier: Apache-2.0
//
// Phrases for collectives and ranks in messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/telemetry/ranks/flight_record.h"

namespace convoy::launch {

std::string rank_list(std::vector<int> ranks);  // "rank 2", "ranks 0, 1 and 3", "ranks 0-61 and 63"
// Such as "all_reduce #7 on group w".
std::string collective_name(const telemetry::CollectiveRecord& record);
// Such as " (float32, 8 elements, 32 B)", or nothing.
std::string collective_size(const telemetry::CollectiveRecord& record);
std::string seconds_text(int64_t microseconds);  // "12.4 s"

// The step that a rank was in, 1-based; work after a step, such as saving, belongs to it. -1 =
// unknown.
int64_t step_of(const telemetry::RankFlight& flight);

// "broadcast #2069, done 12.9 s ago, in phase 'data' of step 18": what a rank last did.
std::string last_activity(const telemetry::RankFlight& flight);

}  // namespace convoy::launch
