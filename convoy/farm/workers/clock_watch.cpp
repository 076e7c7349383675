// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/workers/clock_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace convoy::workers {
namespace {

// The host of a process: "node-3" in the name "node-3.BOOT.NAMESPACE:PID:START".
std::string host_of(const std::string& process) {
  size_t end = process.find(':');
  for (int part = 0; part < 2 && end != std::string::npos && end > 0; ++part)
    end = process.rfind('.', end - 1);
  return process.substr(0, end);
}

}  // namespace

std::vector<std::string> ClockWatch::look() {
  const std::map<std::string, int64_t> now = tell_();
  const auto last = std::exchange(last_, now);
  std::vector<std::string> sentences;
  if (!last.contains(name_)) return sentences;
  // A clock that changed was written between the last look and this look.
  const int64_t earliest = last.at(name_), latest = now.at(name_);
  for (const auto& [name, clock] : now) {
    const auto before = last.find(name);
    if (before == last.end() || before->second == clock || name == name_) continue;
    const int64_t ahead = std::max(clock - latest, int64_t{0});
    const int64_t behind = std::max(earliest - clock, int64_t{0});
    if (std::max(ahead, behind) <= lease_.count() || !named_.insert(name).second) continue;
    sentences.push_back(
        fmt::format("the clock of {} is {} s {} the one of this host, more than the lease of {} s: "
                    "work that is "
                    "being computed is given to others too, and computed twice. Set the clocks, or "
                    "use a longer "
                    "lease",
                    host_of(name), std::max(ahead, behind) / 1000,
                    ahead > 0 ? "ahead of" : "behind", lease_.count() / 1000));
  }
  return sentences;
}

}  // namespace convoy::workers
