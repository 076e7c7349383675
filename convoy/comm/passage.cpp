// SPDX-License-Identifier: Apache-2.0
#include "convoy/comm/passage.h"

namespace convoy::comm {

Passage::Passage(telemetry::FlightWriter& flight, double& waited_seconds, int rank, int size,
                 telemetry::Collective collective)
    : flight_(&flight),
      waited_seconds_(&waited_seconds),
      rank_(rank),
      size_(size),
      collective_(collective),
      number_(flight.enter(collective)) {}

CommError Passage::failure(const std::string& reason) const {
  flight_->failed(number_);
  std::string what = fmt::format("{} #{} on group {}", collective_.operation, collective_.sequence,
                                 collective_.group);
  if (collective_.num_elements > 0)
    what += fmt::format(" ({} x {})", collective_.num_elements, collective_.dtype);
  return CommError(
      fmt::format("rank {} of {}: {} failed: {}", rank_, size_, what,
                  reason.substr(0, reason.find('\n'))),
      {.hint = "another rank ended or did not answer in time; its own error is the cause",
       .rank = rank_});
}

}  // namespace convoy::comm
