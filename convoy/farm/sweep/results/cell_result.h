// SPDX-License-Identifier: Apache-2.0
//
// The result of one cell, as tables, files and figures use it. Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "convoy/core/jobs/task.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::sweep {

enum class CellState {
  Partial,   // only a part is computed
  Value,     // the cell has a number
  Censored,  // all guesses are made, none passed
  Failed,    // tried as often as allowed
  Former,    // to be computed again; has its earlier number
};

std::string cell_state_word(CellState state);  // as in "partial", "value", "censored"

struct CellResult {
  Cell cell;
  CellState state = CellState::Partial;
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN unless state is Value or Former
  int64_t planned_guesses = 0;                              // 0: no guesses, computed as a whole
  Tally tally;                                              // sums over the guesses that count
  CellOutcome outcome;                                      // for a cell without guesses
  std::shared_ptr<const Pruned> pruned;  // for a censored cell of a command, else null
  ReferenceCurve reference;
  std::shared_ptr<const jobs::Failure> failure;  // last failure if state is Failed, else null
  int64_t attempts = 0;
  double seconds = 0;  // sum over all workers
  SharedText device;
  // For a command: a JSON object with the names of its program and its scripts and a hash of each;
  // empty = unknown.
  SharedText program;
  int64_t finished_ms = 0;  // see jobs::TaskRecord
  // If state is Failed: the number that the cell had before it was computed again; NaN = none.
  double former_value = std::numeric_limits<double>::quiet_NaN();

  // The result at index `place` of SweepResults::metrics; NaN: none.
  double metric(size_t place) const;
  double standard_error() const;  // NaN if there is none
  // The ends of the 95 % interval; for a mean they are mean +- 1.96 standard errors. NaN if there
  // is no interval.
  double low() const;
  double high() const;
  double accepted_share() const;  // NaN without guesses
  // 95 % upper bound of the acceptance probability of a censored cell: 3 / guesses.
  double share_bound() const;
};

// The results of the cells of one workload and version.
struct SweepResults {
  std::string workload;
  std::string version;
  std::vector<std::string> axes = {};  // see Workload::axes
  std::vector<CellResult> cells;
  std::vector<std::string> metrics = {"value"};  // see Workload::metrics

  int64_t count(CellState state) const;
  std::map<CellState, int64_t> counts() const;  // number of cells in every state
};

// True if programs or functions computed the cells; such cells have no guesses and no closed forms.
bool is_of_programs(const SweepResults& results);

// A parameter's value as tables show it.
std::string parameter_text(const nlohmann::json& value);

// The finite number that the whole text spells: "1", "1.0" and "1e0" spell the same number.
std::optional<double> number_in(const std::string& text);
// The same number as JSON. An integer stays an integer, exact up to 64 bits.
std::optional<nlohmann::json> number_json(const std::string& text);

// The columns of a cell in tables: its parameters by name; for a command, the values of its grid.
// Texts that are numbers become numbers.
std::map<std::string, nlohmann::json> axes_of(const Cell& cell);

// axes_of() for many cells. Equal parameters are parsed only once.
class AxesOfCells {
 public:
  // The reference is valid until the next call.
  const std::map<std::string, nlohmann::json>& of(const Cell& cell);

 private:
  std::unordered_map<std::string, std::map<std::string, nlohmann::json>> known_;
};

// A parameter as a number; NaN if it is missing or not a number.
double number_parameter(const Cell& cell, const std::string& name);

// The quantile of `values`, which must be finite: linear interpolation between order statistics,
// like numpy. NaN if `values` is empty. `share` is in [0, 1].
double quantile(std::vector<double> values, double share);
double quantile_of_sorted(const std::vector<double>& values, double share);

}  // namespace convoy::sweep
