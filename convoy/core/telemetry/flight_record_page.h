// SPDX-License-Identifier: Apache-2.0
//
// The launcher's side of one rank's flight record: the shared memory, and reading it while the rank
// writes or after it died in the middle of a write. The memory has no name (memfd) and its size is
// sealed, so nothing is left behind and no rank can cut it under its reader.
#pragma once

#include <cstdint>

#include "convoy/core/telemetry/flight_record.h"

namespace convoy::telemetry {

inline constexpr const char* kFlightVariable = "CONVOY_FLIGHT_FD";

class FlightPage {
 public:
  explicit FlightPage(int rank);  // throws IoError
  ~FlightPage();
  FlightPage(FlightPage&& other) noexcept;
  FlightPage& operator=(FlightPage&&) = delete;

  // Close-on-exec here. The rank is given it without that flag, its number in CONVOY_FLIGHT_FD.
  int descriptor() const { return descriptor_; }
  int rank() const { return rank_; }

  // For how long the rank has blocked in a collective; -1 = it does not. Cheap.
  int64_t waiting_us() const;
  // Everything that can be read consistently. Nothing that the rank wrote is trusted.
  RankFlight read(size_t max_records = SIZE_MAX) const;

 private:
  int rank_ = -1;
  int descriptor_ = -1;
  void* memory_ = nullptr;
};

}  // namespace convoy::telemetry
