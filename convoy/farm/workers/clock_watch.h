// SPDX-License-Identifier: Apache-2.0
//
// Finds supervisors of one store whose hosts' clocks differ by more than a lease. If they do, one
// supervisor gives away work that the other one is still computing. With PostgreSQL all supervisors
// use the server's clock. One thread.
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
  // Writes this process's clock to the store and returns all clocks, like
  // jobs::JobStore::tell_clock().
  using TellClock = std::function<std::map<std::string, int64_t>()>;

  ClockWatch(std::string name, std::chrono::milliseconds lease, TellClock tell)
      : name_(std::move(name)), lease_(lease), tell_(std::move(tell)) {}

  // Call it several times per lease. Returns one sentence for each supervisor whose clock differs
  // too much, once per supervisor. Throws the errors of `tell`.
  std::vector<std::string> look();

 private:
  std::string name_;
  std::chrono::milliseconds lease_;
  TellClock tell_;
  std::map<std::string, int64_t> last_;  // clocks at the last look
  std::set<std::string> named_;
};

}  // namespace convoy::workers
