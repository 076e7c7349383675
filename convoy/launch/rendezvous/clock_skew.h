// SPDX-License-Identifier: Apache-2.0
//
// The offset of another host's clock from this one's, from its answers to requests for its time.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace convoy::rendezvous {

// One measurement of a peer's clock. Wall clocks are in nanoseconds since 1970.
struct ClockSample {
  int64_t sent_ns = 0;      // our wall clock when asked
  int64_t peer_ns = 0;      // the peer's wall clock when it answered
  int64_t received_ns = 0;  // our wall clock when the answer came
};

// Judges by the sample with the shortest round trip. Returns a warning that names `host` when its
// clock is off by more than 1 s beyond what the trip itself explains. It is only a warning, since
// the launcher measures time by monotonic clocks.
std::optional<std::string> clock_skew_warning(const std::string& host,
                                              const std::vector<ClockSample>& samples);

}  // namespace convoy::rendezvous
