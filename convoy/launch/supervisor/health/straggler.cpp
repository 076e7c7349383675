// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/straggler.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace convoy::launch {

std::optional<Straggler> find_straggler(const std::vector<telemetry::RankFlight>& flights,
                                        std::chrono::milliseconds window) {
  constexpr int kLeastCollectives = 20;
  constexpr double kLeastShareLast = 0.7;
  constexpr double kLeastWaitShare = 0.25;
  if (flights.size() < 2) return std::nullopt;
  const int64_t window_us = std::chrono::microseconds(window).count();
  // For each group and sequence number, the microseconds that each rank waited.
  std::map<std::pair<std::string, int64_t>, std::map<int, int64_t>> waits;
  for (const telemetry::RankFlight& flight : flights)
    for (const telemetry::CollectiveRecord& record : flight.records)
      if (record.state == telemetry::CollectiveState::Done && record.waited_us_ago >= 0 &&
          record.waited_us_ago <= window_us)
        waits[{record.group, record.sequence}][flight.rank] =
            record.waited_us_ago - record.left_us_ago;
  std::map<int, int> times_last;
  std::map<int, int64_t> waited_us;
  int num_collectives = 0;
  for (const auto& [collective, by_rank] : waits) {
    if (by_rank.size() != flights.size()) continue;
    ++num_collectives;
    const auto least =
        std::min_element(by_rank.begin(), by_rank.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    ++times_last[least->first];
    for (const auto& [rank, microseconds] : by_rank) waited_us[rank] += microseconds;
  }
  if (num_collectives < kLeastCollectives) return std::nullopt;
  const auto most =
      std::max_element(times_last.begin(), times_last.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  Straggler found{.rank = most->first,
                  .num_collectives = num_collectives,
                  .share_last = static_cast<double>(most->second) / num_collectives};
  for (const auto& [rank, microseconds] : waited_us)
    if (rank != found.rank) found.others_wait_share += static_cast<double>(microseconds);
  found.others_wait_share /=
      static_cast<double>(window_us) * static_cast<double>(flights.size() - 1);
  if (found.share_last < kLeastShareLast || found.others_wait_share < kLeastWaitShare)
    return std::nullopt;
  return found;
}

}  // namespace convoy::launch
