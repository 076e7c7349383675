// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "convoy/base/error.h"
#include "convoy/launch/place/preflight.h"

namespace convoy::launch {
namespace {

constexpr double kSecond = 1e9;

double trip_ns(const ClockSample& sample) {
  return static_cast<double>(sample.received_ns - sample.sent_ns);
}

// The peer answered somewhere within the trip: half of it is the doubt.
Finding judge(const ClockSample& sample) {
  const double middle = static_cast<double>(sample.sent_ns) + trip_ns(sample) / 2;
  const double ahead = (static_cast<double>(sample.peer_ns) - middle) / kSecond;
  const double doubt = std::abs(trip_ns(sample)) / 2 / kSecond;
  const std::string found =
      fmt::format("the clock of {} is {:.3f} s {} this host's (within {:.3f} s)", sample.host,
                  std::abs(ahead), ahead < 0 ? "behind" : "ahead of", doubt);
  if (std::abs(ahead) - doubt <= 1.0) return {Severity::Ok, "clock", found, ""};
  return {Severity::Warning, "clock", found,
          "times in logs will not match; run chrony or another NTP client on both (the job itself "
          "does not need it)"};
}

}  // namespace

std::vector<Finding> judge_clock_skew(const std::vector<ClockSample>& samples) {
  std::map<std::string, ClockSample> best;
  for (const ClockSample& sample : samples) {
    // A clock that was set back during the trip tells nothing.
    if (trip_ns(sample) < 0) continue;
    const auto [known, inserted] = best.emplace(sample.host, sample);
    if (!inserted && trip_ns(sample) < trip_ns(known->second)) known->second = sample;
  }
  std::vector<Finding> findings;
  for (const auto& [host, sample] : best) findings.push_back(judge(sample));
  return findings;
}

}  // namespace convoy::launch
