// SPDX-License-Identifier: Apache-2.0
//
// Summaries of cells over seeds: medians, and the number of cells of each median.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

// Summarises the seeds of one method at one value of the axis. The quantiles use only cells with a
// value. A failed, censored or unfinished cell is counted, but never used as a number.
struct SeedSummary {
  struct Spread {
    double median = 0, low = 0, high = 0;  // median and quartiles; NaN without any value
  };
  std::string method;
  std::map<std::string, std::string> others = {};  // texts of the other parameters that vary
  std::string group;    // `others` as one text, "teacher_rank=2"; empty = none varies
  std::string axis;     // value of the axis as text
  double position = 0;  // value of the axis as a number, or the row's number
  double median = 0, low = 0, high = 0;  // median and quartiles; NaN without any value
  double prior_mean = 0, theory = 0;     // medians over seeds of the closed forms; NaN = none
  std::vector<Spread> more = {};         // further results, in the order of SweepResults::metrics
  int64_t values = 0, failed = 0, censored = 0, partial = 0, former = 0;
  double accepted_share = 0;  // share over all guesses together; NaN without any

  int64_t all() const { return values + failed + censored + partial + former; }
  std::vector<Spread> spreads() const;  // one per result
  std::string counts_text() const;      // such as "8" or "7 of 8, 1 failed"
};

// The parameter along which tables and figures go. It is the first of the workload's axes that
// varies, or else the first of these axes that the cells have. Without such an axis it is the first
// parameter that varies and is a number, or else the first parameter that varies. Empty if no
// parameter varies.
std::string axis_name(const SweepResults& results);
std::vector<SeedSummary> summarise(const SweepResults& results, const std::string& axis);

// SeedSummary::axis of each cell.
std::vector<std::string> axis_of_cells(const SweepResults& results, const std::string& axis);
// SeedSummary::group of each cell. `names`: grouping_names() of the axis.
std::vector<std::string> groups_of_cells(const SweepResults& results,
                                         const std::set<std::string>& names);

// The parameters that separate cells of one method at one value of the axis. A parameter that
// changes together with the axis, such as a step size, does not separate cells.
std::set<std::string> grouping_names(const SweepResults& results, const std::string& axis);
// The parameters that tables show beside the axis: for programs all parameters that vary, else
// grouping_names().
std::set<std::string> shown_names(const SweepResults& results, const std::string& axis);

// The local time to the minute, such as "05:05". The text has the day unless both this time and
// `other`, which may be shown beside it, are today.
std::string clock_text(int64_t milliseconds, int64_t other);

// The kind and message of a failure and the last line that the program wrote to stderr.
std::string failure_text(const jobs::Failure& failure);

// The text with control characters escaped as in C, so that a name or value stays on its line.
std::string escaped_line(std::string_view text);

// Finds the first letter of the UTF-8 text that is invisible but breaks lines or changes the
// direction of text: a control character of Latin-1, a direction mark or a line separator. Returns
// its name, such as "U+202E"; empty if there is none.
std::string unseen_letter(std::string_view text);

// A text such as "56 cells: 54 values, 1 censored, 1 failed".
std::string counts_text(const SweepResults& results);

// The time at which the cells got their results: "all from 05:05", "from 05:05 to 06:20". The text
// has the day unless that is today. Empty if the time of any cell is unknown.
std::string finished_text(const SweepResults& results);

}  // namespace convoy::sweep
