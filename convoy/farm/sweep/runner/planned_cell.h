// SPDX-License-Identifier: Apache-2.0
//
// Cells as tasks of the store: the work of a cell, and the text whose hash is the identity of the
// cell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "convoy/core/jobs/task.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::sweep {

// A cell of guesses may end before its planned count. The rule looks only at the tally of the first
// n guesses, for the n of a fixed series (checkpoint_block), so the end does not depend on the
// order or the workers of the computation.
struct StopRule {
  double standard_error = 0;  // target for the error of the mean; 0 = off
  int64_t accepted = 0;       // target number of accepted guesses; 0 = off

  bool any() const { return standard_error > 0 || accepted > 0; }
  bool met(const Tally& tally) const;
  bool operator==(const StopRule&) const = default;
};

struct PlannedCell {
  Cell cell;
  int64_t guesses = 0;  // 0: the cell is one descent or one command
  StopRule stop;
  int64_t priority = 0;  // higher goes first; not part of the identity

  std::string parameters() const;  // canonical JSON
  // Appends the part of parameters() that follows the text of the cell.
  void append_rest(std::string& text) const;
  jobs::NewTask task() const;
  // True when the tally covers all guesses, or exactly the guesses after which the stop rule ends
  // the cell.
  bool is_whole(const Tally& tally) const;
  static PlannedCell parse(const std::string& parameters);  // throws DataError
  bool operator==(const PlannedCell&) const = default;
};

// PlannedCell::parse() for many cells. Most cells have equal parameters, and these cells share one
// text.
class PlannedCellReader {
 public:
  const PlannedCell& read(const std::string& parameters);  // valid until the next call

 private:
  const SharedText& shared(std::string_view text);

  PlannedCell planned_;
  std::unordered_map<std::string, SharedText> known_;
};

// The checkpoints of a cell with a stop rule: block b holds the guesses [checkpoint_begin(b),
// checkpoint_begin(b + 1)). The checkpoints grow by a quarter of an octave from 65,536 on, so at
// most 19 % of the guesses are computed in vain.
int64_t checkpoint_begin(int64_t block);
int64_t checkpoint_block(int64_t guess);

// Throws ConfigError for more cells than one sweep can hold. If the cells are a product of axes,
// call it before they are made.
void check_cell_count(double num_cells);

// Throws ConfigError, with `key` as its place, if there is no value or if a value is listed twice.
void check_distinct(const std::vector<int64_t>& values, const std::string& key);

// The seeds that a user names, or 0 to num_seeds - 1 if none is named. Throws ConfigError for a
// seed that is named twice.
std::vector<int64_t> chosen_seeds(const std::vector<int64_t>& named, int64_t num_seeds);
// The number of chosen_seeds(), without making the list.
int64_t num_chosen_seeds(const std::vector<int64_t>& named, int64_t num_seeds);

// Throws ConfigError for a name that cannot begin the name of a file: it is empty, longer than 128
// bytes or not UTF-8, begins with a dot, or has a slash, a control character or an unseen_letter().
void check_sweep_name(const std::string& name);

struct SweepPlan {
  std::string label;  // the sweep's name for people, such as "ssm"
  std::string workload;
  std::string mode;  // "exact" or "fast" if the workload has both modes, else ""
  std::string version;
  std::vector<PlannedCell> cells;  // distinct cells

  // A digest of the whole plan without the version, independent of the order of the cells;
  // hexadecimal.
  std::string digest() const;
  // The label and the beginning of the digest. Another axis value changes the plan and its name,
  // but not the numbers of its cells.
  std::string name() const { return name_of(digest()); }
  std::string name_of(const std::string& digest) const;
  // The last part of the names of its files, which no other sweep has: the last part of name(), and
  // the mode if it is not the usual one.
  std::string file_mark() const;
  std::vector<std::string> methods() const;  // in order of first use
};

}  // namespace convoy::sweep
