// SPDX-License-Identifier: Apache-2.0
//
// The ranks of this host that share the rows of one command (eval, score, generate): assigns rows,
// counts progress, and puts the rows into one sequence again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/telemetry/ranks/flight_record_writer.h"
#include "convoy/core/telemetry/ranks/shared_counts.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/machine/device/threads.h"
#include "convoy/train/comm/group.h"

namespace convoy::recipes {

// A row's place among the rows of all ranks, and its text, which contains no line break.
using PlacedLine = std::pair<int64_t, std::string>;

// A log for one rank: ranks other than the leading one log only errors. `folder`: as `ranks_folder`
// of RankShare.
Log log_of_rank(const std::string& folder, const Log& log);

// Collective. Blocks. On rank 0, calls `take` with the lines of all ranks at places `begin` to
// `end` - 1, in the order of places. `own`: this rank's lines in that order, within these bounds.
void gather_in_order(comm::Group& group, const std::vector<PlacedLine>& own, int64_t begin,
                     int64_t end, const std::function<void(const std::string&)>& take);

class RankShare {
 public:
  // Takes this rank's device and its share of the CPUs, and joins the others. `ranks_folder` is
  // shared by the ranks of one launcher, which all construct this; empty = this process works alone
  // and ignores its environment. Collective. Blocks. Throws DeviceError.
  explicit RankShare(const settings::RankFlags& ranks);
  RankShare(const RankShare&) = delete;
  RankShare& operator=(const RankShare&) = delete;

  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }
  comm::Group& group() { return *group_; }
  const device::RankDevice& rank_device() const { return rank_device_; }
  // For commands that end; call it when the model is loaded. A process that computes alone
  // continues with as many threads as there are free cores. Logs when these are fewer than all
  // cores.
  void follow_free_cores(const Log& log);
  // For a server, instead of follow_free_cores(): logs when other programs use its cores.
  void say_busy_cores(const Log& log) const;
  bool leads() const { return rank() == 0; }  // this rank writes and shows progress
  bool owns(int64_t number) const { return number % size() == rank(); }

  // Reports this rank's progress. Returns the progress of all ranks.
  int64_t report_done(int64_t own);
  // Collective. Blocks until all ranks together have done `total`; meanwhile calls `show` with
  // their progress, last with `total`. An exception from `show` ends the wait.
  void wait_for_all(int64_t total, const std::function<void(int64_t)>& show);

  // Collective. Blocks until the leading rank has written, because the launcher treats a rank that
  // ends as gone.
  void finish() { group_->barrier(); }

 private:
  device::RankDevice rank_device_;
  std::optional<device::FreeCoreThreads> threads_;  // on CPUs only
  telemetry::FlightWriter flight_;                  // outlives the group
  std::unique_ptr<comm::Group> group_;
  std::optional<telemetry::SharedCounts> counts_;
};

}  // namespace convoy::recipes
