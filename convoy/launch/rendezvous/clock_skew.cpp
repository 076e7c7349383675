// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/clock_skew.h"

#include <fmt/format.h>

#include <cmath>

namespace convoy::rendezvous {
namespace {

constexpr double kSecond_ns = 1e9;
constexpr double kTolerated_s = 1.0;

int64_t trip_ns(const ClockSample& sample) { return sample.received_ns - sample.sent_ns; }

}  // namespace

std::optional<std::string> clock_skew_warning(const std::string& host,
                                              const std::vector<ClockSample>& samples) {
  const ClockSample* best = nullptr;
  for (const ClockSample& sample : samples) {
    // A clock that was set back during the trip gives no measurement.
    if (trip_ns(sample) < 0) continue;
    if (best == nullptr || trip_ns(sample) < trip_ns(*best)) best = &sample;
  }
  if (best == nullptr) return std::nullopt;
  // The peer answered at some time within the round trip, so the error is at most half of it.
  const double half_trip_ns = static_cast<double>(trip_ns(*best)) / 2;
  const double ahead_s =
      (static_cast<double>(best->peer_ns - best->sent_ns) - half_trip_ns) / kSecond_ns;
  const double doubt_s = half_trip_ns / kSecond_ns;
  if (std::abs(ahead_s) - doubt_s <= kTolerated_s) return std::nullopt;
  return fmt::format(
      "the clock of {} is {:.3f} s {} this host's (within {:.3f} s): times in logs will not match; "
      "run chrony or another NTP client on both (the job itself does not need it)",
      host, std::abs(ahead_s), ahead_s < 0 ? "behind" : "ahead of", doubt_s);
}

}  // namespace convoy::rendezvous
