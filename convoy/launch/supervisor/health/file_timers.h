// SPDX-License-Identifier: Apache-2.0
//
// Countdown timers of processes on this host, in the format of
// torch.distributed.elastic.timer.FileTimerClient: one line of JSON for each, {"pid", "scope_id",
// "expiration_time" (seconds since 1970, negative = released), "signal"}. The caller passes the
// time. One thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace convoy::launch {

struct TimerExpiry {
  pid_t pid = -1;
  std::string scope = {};  // the name of the timed work; fit for a console
  int signal = 0;          // the signal by which the process is to be ended; 0 = none
  double late_seconds = 0;
};

class FileTimers {
 public:
  // The next bytes of the stream, cut anywhere.
  void take(std::string_view bytes);

  // Returns an expired timer for each process that has one at `now_s`: the first timer that names a
  // signal, else the first one. All timers of such a process are forgotten.
  std::vector<TimerExpiry> expired(double now_s);
  std::optional<double> next() const;  // when the next one expires

  // A line since the last call that is not a timer. Such lines are dropped.
  std::optional<std::string> damaged_line();

 private:
  struct Timer {
    double expiration_s = 0;
    int signal = 0;
  };
  void take_line(const std::string& line);

  std::map<std::pair<pid_t, std::string>, Timer> timers_;
  std::string rest_;  // the beginning of a line that has no end yet
  std::optional<std::string> damaged_;
};

}  // namespace convoy::launch
