// SPDX-License-Identifier: Apache-2.0
//
// Processes that ranks started and did not end themselves: data loaders, servers, processes that
// left their rank's process group or became daemons. While a DescendantKeeper lives, orphans of
// this process's descendants become its own children and can be found.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <set>
#include <string>

namespace convoy::processes {

class DescendantKeeper {
 public:
  DescendantKeeper();   // does not touch children that exist already
  ~DescendantKeeper();  // orphans are reparented to the next process up again, as before
  DescendantKeeper(const DescendantKeeper&) = delete;
  DescendantKeeper& operator=(const DescendantKeeper&) = delete;

  // Leaves a child to another owner, which waits for it.
  void leave_alone(pid_t child) { not_ours_.insert(child); }
  // Call it when the child has been waited for: an orphan may have its number by now.
  void forget(pid_t child) { not_ours_.erase(child); }

  // Kills all orphans and the processes that they started, and waits at most `limit` for their
  // ends. Guards are not killed, only waited for. Returns the number of killed processes. Call it
  // when the ranks are reaped.
  int kill_orphans(std::chrono::milliseconds limit);

 private:
  std::set<pid_t> not_ours_;
  bool was_keeper_ = false;
};

// True when `ancestor` started `process`, itself or through processes that still run. True for
// `ancestor` itself.
bool descends_from(pid_t process, pid_t ancestor);

// The name of a guard process. The guard of a launcher that was itself a rank ends by itself after
// its cleanup.
constexpr const char* kGuardName = "convoy-guard";

// Kills every process of this user whose environment holds `entry` ("NAME=value"; a launcher inside
// the job appends ":more"), again and again until none is left or the limit is over. This process
// itself and other guards are spared. Call it after the end of a launcher, when its orphans can no
// longer be found by descent.
void kill_marked(const std::string& entry, std::chrono::milliseconds limit);

// Does the same to every process whose environment variable `name` has a value for which `wanted`
// is true; empty values are skipped. Returns the number of killed processes.
using MarkWanted = std::function<bool(const std::string& value)>;
int kill_marked(const std::string& name, const MarkWanted& wanted, std::chrono::milliseconds limit);

}  // namespace convoy::processes
