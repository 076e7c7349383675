// SPDX-License-Identifier: Apache-2.0
//
// The state of one rank as seen from outside: heartbeat, step, phase and its last collectives, as a
// value. Read from a rank's shared pages (flight_record_page.h), sent to other hosts as JSON and
// compared across ranks by launch/health.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::telemetry {

// Description of a collective, given by a rank when it enters. Names are cut to 15 characters,
// dtypes to 8.
struct Collective {
  std::string_view group;       // "world"
  std::string_view operation;   // "all_reduce"
  int64_t sequence = 0;         // number within this group, equal on every rank
  std::string_view dtype = {};  // "float32"; empty for a barrier
  std::array<int64_t, 3> shape = {0, 0, 0};
  int num_dims = 0;  // may be more than are kept in `shape`
  int64_t num_elements = 0;
  int64_t bytes = 0;
  int group_size = 0;
};

enum class CollectiveState { Entered, Waited, Done, Failed };  // Waited: the rank blocks in it

// Ages are microseconds before the record was read, so that hosts with different clocks can be
// compared; -1 = has not happened.
struct CollectiveRecord {
  std::string group;
  std::string operation;
  std::string dtype;
  int64_t sequence = 0;
  std::array<int64_t, 3> shape = {0, 0, 0};
  int num_dims = 0;
  int64_t num_elements = 0;
  int64_t bytes = 0;
  int group_size = 0;
  CollectiveState state = CollectiveState::Entered;
  int64_t entered_us_ago = -1;
  int64_t waited_us_ago = -1;  // since the rank began to block in it
  int64_t left_us_ago = -1;    // since it was done or failed

  bool open() const {
    return state == CollectiveState::Entered || state == CollectiveState::Waited;
  }
  bool operator==(const CollectiveRecord&) const = default;
};

struct RankFlight {
  int rank = -1;
  int64_t pid = 0;  // 0: no writer has attached
  // The writer signed off, or the reader detected that the rank has ended.
  bool ended = false;
  int64_t num_beats = 0;
  int64_t beat_us_ago = -1;
  int64_t step = -1;             // completed steps; -1 = not said
  int64_t checkpoint_step = -1;  // last durable checkpoint; -1 = none
  std::string phase;
  int64_t num_collectives = 0;            // entered since the start
  std::vector<CollectiveRecord> records;  // the last of them, oldest first

  bool attached() const { return pid != 0; }
  bool operator==(const RankFlight&) const = default;
};

// One JSON object with the last `max_records` collectives, or more: all collectives since the
// oldest open one are included.
std::string flight_json(const RankFlight& flight, size_t max_records = 64);

// Throws DataError for any text that flight_json() cannot have written. `text` may be hostile.
RankFlight parse_flight_json(std::string_view text);

// Writes flight-<rank>.json into `folder`, with all records, one per line. Returns its path. Throws
// IoError.
std::filesystem::path write_flight_file(const std::filesystem::path& folder,
                                        const RankFlight& flight);

}  // namespace convoy::telemetry
