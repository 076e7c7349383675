// SPDX-License-Identifier: Apache-2.0
//
// A rank that reports steps to its launcher, as convoy-worker does, and then fails.
//   launch_progress_probe STEP_OF_ATTEMPT_0[,STEP_OF_ATTEMPT_1...] EXIT_CODE
// The last step counts for all later attempts.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "convoy/core/telemetry/ranks/flight_record_writer.h"

int main(int count, char** words) {
  if (count != 3) return 2;
  auto flight = convoy::telemetry::FlightWriter::attach();
  const int attempt = std::atoi(std::getenv("TORCHELASTIC_RESTART_COUNT"));
  std::istringstream steps(words[1]);
  int64_t step = 0;
  std::string word;
  for (int turn = 0; turn <= attempt && std::getline(steps, word, ','); ++turn)
    step = std::stoll(word);
  flight.set_step(step);
  std::_Exit(std::atoi(words[2]));
}
