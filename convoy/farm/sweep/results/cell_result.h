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
  Partial,   // not all of it is computed
  Value,     // a number
  Censored,  // guesses are done, none passed
  Failed,    // it was tried as often as allowed
  Former,    // it is to be computed again; the number is the one that it had
};

std::string cell_state_word(CellState state);  // "partial", "value", "censored", "failed", "former"

struct CellResult {
  Cell cell;
  CellState state = CellState::Partial;
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN unless state is Value or Former
  int64_t planned_guesses = 0;                              // 0: computed as a whole
  Tally tally;                                              // the guesses that count
  CellOutcome outcome;                                      // without guesses
  std::shared_ptr<const Pruned> pruned;  // for a censored cell of a command, else null
  ReferenceCurve reference;
  std::shared_ptr<const jobs::Failure> failure;  // the last one where state is Failed, or null
  int64_t attempts = 0;
  double seconds = 0;  // summed over all workers
  SharedText device;
  // For a command: names of its program and its scripts with a hash of each, a JSON object; empty =
  // unknown.
  SharedText program;
  int64_t finished_ms = 0;  // jobs::TaskRecord
  // When state is Failed: the number from before the cell was computed again; NaN = none.
  double former_value = std::numeric_limits<double>::quiet_NaN();

  // The result of that place in SweepResults::metrics; NaN: none.
  double metric(size_t place) const;
  double standard_error() const;  // NaN: none
  // The 95 % interval; for a mean, mean +- 1.96 standard errors. NaN if there is none.
  double low() const;
  double high() const;
  double accepted_share() const;  // NaN without guesses
  // 95 % upper bound of the acceptance probability of a censored cell: 3 / guesses.
  double share_bound() const;
};

// Cells of one workload and version.
struct SweepResults {
  std::string workload;
  std::string version;
  std::vector<std::string> axes = {};  // Workload::axes
  std::vector<CellResult> cells;
  std::vector<std::string> metrics = {"value"};  // Workload::metrics

  int64_t count(CellState state) const;
  std::map<CellState, int64_t> counts() const;  // every state
};

// True where programs or functions computed the cells: they have no guesses and no closed forms.
bool is_of_programs(const SweepResults& results);

// A parameter's value as tables show it.
std::string parameter_text(const nlohmann::json& value);

// The number in a text that is a finite number as a whole: "1", "1.0" and "1e0" are one.
std::optional<double> number_in(const std::string& text);
// The same as JSON, where a whole number stays one, exact up to 64 bits.
std::optional<nlohmann::json> number_json(const std::string& text);

// The columns of a cell in tables: its parameters by name; for a command, the values of its grid.
// Texts that are numbers become numbers.
std::map<std::string, nlohmann::json> axes_of(const Cell& cell);

// The same for many cells: equal parameters are read once.
class AxesOfCells {
 public:
  // Valid until the next call.
  const std::map<std::string, nlohmann::json>& of(const Cell& cell);

 private:
  std::unordered_map<std::string, std::map<std::string, nlohmann::json>> known_;
};

// One of them, NaN when it is missing or no number.
double number_parameter(const Cell& cell, const std::string& name);

// The quantile of `values`, which hold finite numbers only: linear interpolation between order
// statistics, as numpy has it. NaN when empty. `share` in [0, 1].
double quantile(std::vector<double> values, double share);
double quantile_of_sorted(const std::vector<double>& values, double share);

}  // namespace convoy::sweep
