// SPDX-License-Identifier: Apache-2.0
//
// Watches the heartbeats of one attempt's local ranks from the launcher's poll loop. A rank that
// has fallen silent is distinguished from one that is slow, from one that a person stopped or
// debugs, and from a launcher that was itself not running.
//
//   FlightPages pages(num_ranks, first_rank);  // before fork; pages.descriptor(i) for rank i
//   HealthWatch watch(pages);
//   watch.started(i, pid);  ...  poll until watch.next_deadline();
//   for (const HealthNotice& notice : watch.check(now)) ...  watch.ended(i);
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "convoy/launch/supervisor/health/flight_pages.h"

namespace convoy::launch {

struct HealthOptions {
  std::chrono::milliseconds silent_after{8'000};
  std::chrono::milliseconds slow_after{30'000};
  std::chrono::milliseconds stuck_after{10'000};       // from the warning to the end of the attempt
  std::chrono::milliseconds core_file_limit{120'000};  // a crashed rank that still writes its core
  std::chrono::milliseconds straggler_window{30'000};  // in which one rank holds the others up
  std::chrono::milliseconds interval{500};             // between two checks
};

enum class HealthKind {
  Silent,     // the rank sends no beats and is lost
  Slow,       // the rank beats, and others wait for it
  Straggler,  // the job goes on, at the pace of this rank
  Stuck,      // ranks wait for each other in different collectives
  Stopped,    // a foreign program is stopped, or a debugger holds the rank: no failure
  CoreFile,   // the rank crashed and writes its core file
  Recovered,  // no longer in the state that was reported before
};

struct HealthNotice {
  HealthKind kind = HealthKind::Silent;
  int rank = -1;
  bool fatal = false;  // the attempt must end with 13; this rank is the cause
  // Such as "rank 2 (process 4711) is stopped (SIGSTOP): no heartbeat for 8.3 s".
  std::string sentence = {};
};

class HealthWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // `pages` must outlive this object.
  explicit HealthWatch(const FlightPages& pages, HealthOptions options = {});
  ~HealthWatch();
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;

  void started(int local_rank, pid_t pid);
  void ended(int local_rank);

  // The time by which check() must be called; none while no rank runs.
  std::optional<Clock::time_point> next_deadline() const;
  // The new notices. Cheap when called early. Each episode is reported once, and once more when it
  // ends the attempt.
  std::vector<HealthNotice> check(Clock::time_point now);

 private:
  struct Rank;
  // A time in which ranks wait for others for longer than slow_after.
  struct Episode {
    int64_t waited_us = 0;
    std::vector<int> ranks;  // ranks that the others wait for
    std::string collective;
    std::optional<Clock::time_point> fails_at;  // set while ranks wait in different collectives
  };

  void check_rank(int local_rank, std::chrono::milliseconds seen,
                  std::vector<HealthNotice>& notices);
  void recover(Rank& rank, const telemetry::RankFlight& flight, std::vector<HealthNotice>& notices);
  void check_slow_ranks(Clock::time_point now, std::vector<HealthNotice>& notices);
  void check_straggler(Clock::time_point now, std::vector<HealthNotice>& notices);
  void begin_episode(int64_t waited_us, Clock::time_point now, std::vector<HealthNotice>& notices);
  void end_episode(std::vector<HealthNotice>& notices);
  void check_stuck(Clock::time_point now, std::vector<HealthNotice>& notices);

  const FlightPages& pages_;
  HealthOptions options_;
  std::vector<Rank> ranks_;
  std::optional<Clock::time_point> looked_at_;
  std::optional<Episode> episode_;
  std::optional<Clock::time_point> window_start_;  // when the search for a straggler began
};

}  // namespace convoy::launch
