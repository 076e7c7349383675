// SPDX-License-Identifier: Apache-2.0
//
// The named pipe by which processes of one attempt set countdown timers for themselves, as
// torchrun's file-based watchdog offers it (TORCHELASTIC_ENABLE_FILE_TIMER). Watched from the
// launcher's poll loop. The pipe is there as long as the object.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/launch/supervisor/health/file_timers.h"

namespace convoy::launch {

class TimerWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // A pipe that another launcher left at `path` is replaced. Throws ConfigError when something else
  // is there, IoError when none can be made.
  explicit TimerWatch(std::filesystem::path path, WallClock wall_clock = wall_clock_ns);
  ~TimerWatch();
  TimerWatch(const TimerWatch&) = delete;
  TimerWatch& operator=(const TimerWatch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return pipe_.get(); }  // readable when check() has something to read
  // The time by which check() must be called; none while no timer runs.
  std::optional<Clock::time_point> next_deadline() const;
  // Timers that have expired. Prints one warning about requests that it cannot parse.
  std::vector<TimerExpiry> check();

 private:
  double now_s() const;
  void read();

  std::filesystem::path path_;
  WallClock wall_clock_;
  Descriptor pipe_;
  FileTimers timers_;
  bool warned_ = false;
};

}  // namespace convoy::launch
