// SPDX-License-Identifier: Apache-2.0
//
// The launcher's side of one rank's flight record: the shared memory, and reading it while the rank
// writes or after it died during a write. The memory has no name (memfd) and its size is sealed, so
// nothing is left behind and no rank can shrink it while it is read.
#pragma once

#include <cstdint>

#include "convoy/core/telemetry/ranks/flight_record.h"

namespace convoy::telemetry {

inline constexpr const char* kFlightVariable = "CONVOY_FLIGHT_FD";

class FlightPage {
 public:
  explicit FlightPage(int rank);  // throws IoError
  ~FlightPage();
  FlightPage(FlightPage&& other) noexcept;
  FlightPage& operator=(FlightPage&&) = delete;

  // The descriptor is closed on exec in this process. The rank inherits it open, and finds its
  // number in CONVOY_FLIGHT_FD.
  int descriptor() const { return descriptor_; }
  int rank() const { return rank_; }

  // Microseconds for which the rank has blocked in a collective; -1 = the rank is not blocked. The
  // call is cheap.
  int64_t waiting_us() const;
  // Returns everything that can be read consistently. All words written by the rank are treated as
  // untrusted.
  RankFlight read(size_t max_records = SIZE_MAX) const;

 private:
  int rank_ = -1;
  int descriptor_ = -1;
  void* memory_ = nullptr;
};

}  // namespace convoy::telemetry
