// SPDX-License-Identifier: Apache-2.0
//
// The ranks of this host that share the rows of one command (eval, score, generate): who computes
// which row, how far all are, and their rows as one sequence again.
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
#include "convoy/core/telemetry/flight_record_writer.h"
#include "convoy/core/telemetry/shared_counts.h"
#include "convoy/machine/device/placement.h"
#include "convoy/train/comm/group.h"

namespace convoy::recipes {

// A row's place among the rows of all ranks, and its text, which holds no line break.
using PlacedLine = std::pair<int64_t, std::string>;

// One voice: of the ranks that do not lead only errors are heard. `folder`: as below.
Log log_of_rank(const std::string& folder, const Log& log);

// Collective. Blocks. On rank 0 `take` gets the lines of all ranks with places from `begin` to
// `end` - 1, by place. `own`: by place, within these bounds.
void gather_in_order(comm::Group& group, const std::vector<PlacedLine>& own, int64_t begin,
                     int64_t end, const std::function<void(const std::string&)>& take);

class RankShare {
 public:
  // Takes this rank's device and its share of the CPUs, and joins the others. `ranks_folder` is
  // shared by the ranks of one launcher, who all call this; empty = this process works alone,
  // whatever its environment says. Collective. Blocks. Throws DeviceError.
  explicit RankShare(const settings::RankFlags& ranks);
  RankShare(const RankShare&) = delete;
  RankShare& operator=(const RankShare&) = delete;

  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }
  comm::Group& group() { return *group_; }
  const device::Placement& placement() const { return placement_; }
  bool leads() const { return rank() == 0; }  // it writes what is written, and shows the progress
  bool owns(int64_t number) const { return number % size() == rank(); }

  // What this rank has done so far. Returns what all have.
  int64_t report_done(int64_t own);
  // Collective. Blocks until all ranks have done `total` together; meanwhile `show` is told how far
  // they are, and `total` last. What it throws ends the wait.
  void wait_for_all(int64_t total, const std::function<void(int64_t)>& show);

  // Collective. Blocks until the leading rank has written: a rank that has ended is gone for the
  // launcher.
  void finish() { group_->barrier(); }

 private:
  device::Placement placement_;
  telemetry::FlightWriter flight_;  // outlives the group
  std::unique_ptr<comm::Group> group_;
  std::optional<telemetry::SharedCounts> counts_;
};

}  // namespace convoy::recipes
