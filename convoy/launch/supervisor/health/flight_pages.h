// SPDX-License-Identifier: Apache-2.0
//
// The flight records of one attempt's local ranks, owned by their launcher.
#pragma once

#include <vector>

#include "convoy/core/telemetry/ranks/flight_record_page.h"

namespace convoy::launch {

class FlightPages {
 public:
  // Local rank i is global rank first_rank + i. Throws IoError.
  explicit FlightPages(int num_ranks, int first_rank = 0);

  int size() const { return static_cast<int>(pages_.size()); }
  const telemetry::FlightPage& of(int local_rank) const {
    return pages_[static_cast<size_t>(local_rank)];
  }
  // The descriptor that the rank inherits (dup it or clear close-on-exec in the child). The
  // variable telemetry::kFlightVariable gives the rank its number.
  int descriptor(int local_rank) const { return of(local_rank).descriptor(); }

  // The records of all local ranks. The caller sets `ended` where it has newer information than the
  // record.
  std::vector<telemetry::RankFlight> read() const;

 private:
  std::vector<telemetry::FlightPage> pages_;
};

}  // namespace convoy::launch
