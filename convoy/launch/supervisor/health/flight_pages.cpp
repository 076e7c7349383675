// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/flight_pages.h"

namespace convoy::launch {

FlightPages::FlightPages(int num_ranks, int first_rank) {
  pages_.reserve(static_cast<size_t>(num_ranks));
  for (int local_rank = 0; local_rank < num_ranks; ++local_rank)
    pages_.emplace_back(first_rank + local_rank);
}

std::vector<telemetry::RankFlight> FlightPages::read() const {
  std::vector<telemetry::RankFlight> flights;
  for (const telemetry::FlightPage& page : pages_) flights.push_back(page.read());
  return flights;
}

}  // namespace convoy::launch
