// SPDX-License-Identifier: Apache-2.0
//
// A rank that records collectives for the launcher. It has completed #0 on a group of two ranks.
//   launch_collective_probe waits    waits in #1, and exits with 6 after half a second
//   launch_collective_probe idles    never enters #1
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "convoy/core/telemetry/ranks/flight_record_writer.h"

int main(int count, char** words) {
  if (count != 2) return 2;
  auto flight = convoy::telemetry::FlightWriter::attach();
  convoy::telemetry::Collective collective{
      .group = "world", .operation = "all_reduce", .num_elements = 1, .bytes = 4, .group_size = 2};
  const std::uint64_t first = flight.enter(collective);
  flight.wait(first);
  flight.done(first);
  if (words[1] == std::string_view("idles"))
    for (;;) ::pause();
  collective.sequence = 1;
  flight.wait(flight.enter(collective));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::_Exit(6);
}
