// SPDX-License-Identifier: Apache-2.0
//
// Finds supervisors of one store whose hosts' clocks differ by more than a lease: one of them takes
// the other's work for lost while it is computed. In PostgreSQL all clocks are the server's. One
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace convoy::workers {

class ClockWatch {
 public:
  // Writes down this process's clock and returns all clocks, as jobs::JobStore::tell_clock does.
  using TellClock = std::function<std::map<std::string, int64_t>()>;

  ClockWatch(std::string name, std::chrono::milliseconds lease, TellClock tell)
      : name_(std::move(name)), lease_(lease), tell_(std::move(tell)) {}

  // To be called several times per lease. A sentence for each supervisor, once. Throws what `tell`
  // throws.
  std::vector<std::string> look();

 private:
  std::string name_;
  std::chrono::milliseconds lease_;
  TellClock tell_;
  std::map<std::string, int64_t> last_;  // clocks at the last look
  std::set<std::string> named_;
};

}  // namespace convoy::workers
