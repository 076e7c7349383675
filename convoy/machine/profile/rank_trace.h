// SPDX-License-Identifier: Apache-2.0
//
// The traced steps of one rank, read from traces/rank-N.json (core/telemetry/ranks/step_trace.h
// writes it).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/machine/profile/spans.h"

namespace convoy::profile {

struct NamedSpan {
  std::string name;
  Span span;
};

struct TracedCollective {
  std::string name;  // "world all_reduce"
  std::string group;
  int64_t sequence = 0;  // number within its group, equal on every rank
  int64_t bytes = 0;
  Span flight;  // from the rank's entry to the end, whether or not the rank waits
  Span wait;    // while its rank waits for it; empty when it did not
};

struct RankTrace {
  int rank = 0;
  int world_size = 1;
  int num_threads = 0;  // 0 = not known
  std::string host = {};
  // Added to the times below, which come from the host's monotonic clock.
  int64_t since_1970_ns = 0;
  bool has_device_clock = false;      // times of the GPU's work; false: of the host's calls
  bool is_full = false;               // later steps were not traced
  int64_t num_notes = 0;              // taken while tracing
  double note_ns = 0;                 // time of one note
  std::vector<NamedSpan> steps = {};  // in order, without gaps
  std::vector<NamedSpan> phases = {};
  std::vector<TracedCollective> collectives = {};  // in the order of their entry
};

// Throws DataError naming `source` for a text that StepTrace::chrome_json() did not write.
RankTrace parse_rank_trace(std::string_view text, const std::string& source);

// The traces of a run folder, by rank. Throws ConfigError when there are none, DataError, IoError.
std::vector<RankTrace> read_rank_traces(const std::filesystem::path& run_folder);

// Converts the times of all ranks to the clock of the first rank's host: first by the time-of-day
// clocks, then by shared collectives, which end at the same moment except for the time of a
// message. Times are since 1970 afterwards.
void align_clocks(std::vector<RankTrace>& traces);

}  // namespace convoy::profile
