// SPDX-License-Identifier: Apache-2.0
//
// Cells over seeds: medians with the number of cells behind each.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

// Over the seeds of one method at one value of the axis. The quantiles are taken over cells with a
// value only: a failed, censored or unfinished cell never counts as a number, but is counted.
struct SeedSummary {
  struct Spread {
    double median = 0, low = 0, high = 0;  // quartiles; NaN without any value
  };
  std::string method;
  std::map<std::string, std::string> others = {};  // texts of the other parameters that vary
  std::string group;    // the same as one text, "teacher_rank=2"; empty = none does
  std::string axis;     // the axis' value as text
  double position = 0;  // as a number; the row's number when it is not one
  double median = 0, low = 0, high = 0;  // quartiles; NaN without any value
  double prior_mean = 0, theory = 0;     // medians over seeds of the closed forms; NaN = none
  std::vector<Spread> more = {};         // further results, in the order of SweepResults::metrics
  int64_t values = 0, failed = 0, censored = 0, partial = 0, former = 0;
  double accepted_share = 0;  // over all guesses together; NaN without guesses

  int64_t all() const { return values + failed + censored + partial + former; }
  std::vector<Spread> spreads() const;  // one for every result
  std::string counts_text() const;      // "8", "7 of 8, 1 failed"
};

// The parameter along which tables and figures go: the first of the workload's axes that varies, or
// its first axis; else the first parameter that varies and is a number, else the first that varies;
// empty when none does.
std::string axis_name(const SweepResults& results);
std::vector<SeedSummary> summarise(const SweepResults& results, const std::string& axis);

// SeedSummary::axis of each cell.
std::vector<std::string> axis_of_cells(const SweepResults& results, const std::string& axis);
// SeedSummary::group of each cell. `names`: grouping_names() of the axis.
std::vector<std::string> groups_of_cells(const SweepResults& results,
                                         const std::set<std::string>& names);

// The parameters that separate cells of one method at one value of the axis. A step size that
// changes with the axis does not.
std::set<std::string> grouping_names(const SweepResults& results, const std::string& axis);
// The parameters that tables show beside the axis: for programs all that vary, else
// grouping_names().
std::set<std::string> shown_names(const SweepResults& results, const std::string& axis);

// Local time to the minute, "05:05"; with the day unless that is today, as `other` is, which it may
// stand beside.
std::string clock_text(int64_t milliseconds, int64_t other);

// The kind and message of a failure and the last line that the program wrote to stderr.
std::string failure_text(const jobs::Failure& failure);

// Control characters as C writes them, so that a name or value stays on its line.
std::string escaped_line(std::string_view text);

// "U+202E" of the first letter of the UTF-8 text that shows no sign of its own but breaks lines or
// turns their direction: a control of Latin-1, a mark of direction, a separator of lines. Empty:
// there is none.
std::string unseen_letter(std::string_view text);

// "56 cells: 54 values, 1 censored, 1 failed".
std::string counts_text(const SweepResults& results);

// When its cells got their results: "all from 05:05", "from 05:05 to 06:20"; days are named unless
// it was today. Empty where that is not known of every cell.
std::string finished_text(const SweepResults& results);

}  // namespace convoy::sweep
