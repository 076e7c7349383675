// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/timer_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/log.h"

namespace convoy::launch {
namespace {

constexpr const char* kVariable = "TORCHELASTIC_TIMER_FILE";
// Timers expire by the time of day, which a person may set, so they are checked at least this
// often.
constexpr std::chrono::milliseconds kLongestSleep{500};
// The most reads in a turn: a process that writes without end must not delay signals and deadlines.
constexpr int kReadsPerTurn = 16;

}  // namespace

TimerWatch::TimerWatch(std::filesystem::path path, WallClock wall_clock)
    : path_(std::move(path)), wall_clock_(std::move(wall_clock)) {
  struct stat found {};
  if (::lstat(path_.c_str(), &found) == 0) {
    if (!S_ISFIFO(found.st_mode))
      throw ConfigError(
          fmt::format("{} needs a path where a named pipe can be made, found a file at {}",
                      kVariable, path_.string()),
          {.hint = fmt::format("unset {}, or name a path where nothing lies", kVariable)});
    ::unlink(path_.c_str());
  }
  if (::mkfifo(path_.c_str(), 0600) != 0)
    throw IoError(
        fmt::format("no named pipe could be made at {}: {}", path_.string(), std::strerror(errno)),
        {.hint = "name a path on a local disk that may be written to"});
  // Open for writing too: a pipe without writers would be readable all the time.
  pipe_ = Descriptor(::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (pipe_.open()) return;
  const int number = errno;
  ::unlink(path_.c_str());
  throw IoError(fmt::format("{} cannot be read: {}", path_.string(), std::strerror(number)),
                {.hint = "name a path on a local disk that may be written to"});
}

TimerWatch::~TimerWatch() { ::unlink(path_.c_str()); }

double TimerWatch::now_s() const { return static_cast<double>(wall_clock_()) / 1e9; }

std::optional<TimerWatch::Clock::time_point> TimerWatch::next_deadline() const {
  const std::optional<double> next = timers_.next();
  if (!next) return std::nullopt;
  const double left_ms = std::ceil((*next - now_s()) * 1e3);
  const auto most_ms = static_cast<double>(kLongestSleep.count());
  return Clock::now() +
         std::chrono::milliseconds(static_cast<int64_t>(std::clamp(left_ms, 0.0, most_ms)));
}

void TimerWatch::read() {
  char bytes[4096];
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    const ssize_t received = ::read(pipe_.get(), bytes, sizeof(bytes));
    if (received <= 0) return;
    timers_.take({bytes, static_cast<size_t>(received)});
  }
}

std::vector<TimerExpiry> TimerWatch::check() {
  read();
  if (const auto line = timers_.damaged_line(); line && !std::exchange(warned_, true))
    Log().warning(
        fmt::format("a line in {} is no timer and is ignored: {}", path_.string(), *line));
  return timers_.expired(now_s());
}

}  // namespace convoy::launch
