// SPDX-License-Identifier: Apache-2.0
//
// Divides the time of traced steps. A moment of a rank belongs to one of five kinds: waiting for a
// collective (exposed communication), waiting for data, computing, evaluating and saving, or the
// host's own work between phases. Communication is hidden while it is in progress and its rank does
// not wait, as Holistic Trace Analysis defines overlap
// (github.com/facebookresearch/HolisticTraceAnalysis).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "convoy/machine/profile/rank_trace.h"

namespace convoy::profile {

// Times of one rank; in milliseconds, for a mean step. The first five sum to step_ms.
struct RankBreakdown {
  int rank = 0;
  std::string host = {};
  int64_t num_steps = 0;
  double step_ms = 0;
  double compute_ms = 0;
  double exposed_ms = 0;  // includes waiting_ms for a later rank; the rest is the transfer
  double data_ms = 0;
  double evaluation_ms = 0;
  double host_ms = 0;
  double waiting_ms = 0;
  double hidden_ms = 0;   // communication while it computes
  double awaited_ms = 0;  // mean wait of the other ranks for this one, which came last
  double tracing_ms = 0;  // time spent on taking notes
  // By phase ("forward"), in order of appearance.
  std::vector<std::pair<std::string, double>> compute_phases_ms = {};
  bool operator==(const RankBreakdown&) const = default;
};

// All collectives of one name, over all ranks.
struct CollectiveTotals {
  std::string name;  // "world all_reduce"
  double per_step = 0;
  double bytes_per_step = 0;  // for one rank
  // Time of a step during which at least one collective is in progress or waited for, mean over
  // ranks.
  double flight_ms = 0;
  double exposed_ms = 0;
  // Rate of a collective from the moment that the last rank has entered it; 0 = unknown.
  double bytes_per_second = 0;
};

struct Breakdown {
  int world_size = 1;
  int num_threads = 0;  // threads of rank 0; 0 = not known
  int64_t first_step = 0;
  int64_t last_step = 0;
  // Times of a step over all traced steps. The time of one step is the mean over the ranks.
  double shortest_ms = 0;
  double median_ms = 0;
  double longest_ms = 0;
  std::vector<RankBreakdown> ranks = {};           // ranks with a trace
  std::vector<CollectiveTotals> collectives = {};  // the most exposed first
  bool has_device_clock = false;                   // see RankTrace
  bool is_full = false;
  bool has_all_ranks() const { return static_cast<int>(ranks.size()) == world_size; }
  RankBreakdown mean() const;  // over ranks; rank -1
};

// `traces` must be on one clock (align_clocks). Steps that not every rank has traced are left out.
// Throws ConfigError when no step is left.
Breakdown break_down(const std::vector<RankTrace>& traces);

}  // namespace convoy::profile
