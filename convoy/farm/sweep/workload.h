// SPDX-License-Identifier: Apache-2.0
//
// The interface between a sweep's computation and its runner: cells that are tallied over ranges of
// guesses, or computed to a value. A workload is a pure function of a cell: the numbers do not
// depend on host, process, thread, batch, split or order.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/farm/sweep/shared_text.h"

namespace convoy::sweep {

const SharedText& no_parameters();  // "{}"

// One experiment of one method. `parameters` is a JSON object on one line, keys
// sorted, with everything that decides the numbers but the seed; together with
// workload, version and seed it is the cell's identity.
struct Cell {
  std::string method;  // "gnc", "gd", "run"
  int64_t seed = 0;
  SharedText parameters = no_parameters();

  bool operator==(const Cell&) const = default;
};

// A sum whose bits do not depend on the order of its terms: each is rounded to
// 2^-40 once and added as an integer.
class FixedSum {
 public:
  // `value`: finite, below 2^40 in magnitude. The caller clamps and counts larger ones.
  void add(double value);
  void add(const FixedSum& other) { units_ += other.units_; }
  static FixedSum of_units(__int128 units) {
    FixedSum sum;
    sum.units_ = units;
    return sum;
  }
  double value() const;
  std::string text() const;                        // exact, decimal
  static FixedSum parse(const std::string& text);  // throws DataError
  bool operator==(const FixedSum&) const = default;

 private:
  __int128 units_ = 0;
};

// The sums over a range of guesses. merge() is commutative and associative, bit for bit.
struct Tally {
  int64_t guesses = 0;
  int64_t accepted = 0;
  int64_t non_finite = 0;  // accepted, but its loss is no finite number: not in the sums
  FixedSum loss;           // over accepted finite guesses
  FixedSum loss_squared;

  void accept(double value);  // the sums hold losses below 2^40; others count as not finite
  void merge(const Tally& other);
  double mean() const;            // NaN without an accepted guess
  double standard_error() const;  // standard error of the mean; NaN below two accepted guesses
  std::string json() const;
  static Tally parse(const std::string& json);  // throws DataError
  bool operator==(const Tally&) const = default;
};

class GuessExperiment {
 public:
  virtual ~GuessExperiment() = default;
  // Guesses [first, first + count) on the calling thread. Thread-safe. The same
  // bits for every split of a range.
  virtual Tally run(uint64_t first, uint64_t count) const = 0;
  // Rough speed of one core, or of its GPU, guesses per second: sizes of first ranges.
  virtual double expected_rate() const = 0;
  // The GPU that computes; empty = the calling thread does.
  virtual std::string gpu() const { return ""; }
};

// Why a program was ended before its end: at a step of its progress it was worse than the median of
// the cells that came there before.
struct Pruned {
  int64_t step = 0;
  double value = 0;
  double median = 0;
  std::string text() const;  // "at step 100 it had 0.9, the median of the others is 0.5"
  bool operator==(const Pruned&) const = default;
};

// The result of one cell that is computed as a whole.
struct CellOutcome {
  // The number that tables and figures show: a command's result, the loss of a training.
  double value = std::numeric_limits<double>::quiet_NaN();
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  int64_t steps = 0;
  // A JSON object that names the program behind the outcome; empty = the workload alone.
  std::string program = {};
  // The GPU that computed it; empty = the calling thread did.
  std::string gpu = {};
  // A command's further results, in the order of their names.
  std::vector<double> more = {};
  // A command's value at the step where it may be pruned; NaN = it did not say.
  double at_step = std::numeric_limits<double>::quiet_NaN();
  std::optional<Pruned> pruned = {};  // then there is no value
};

// Closed forms beside the numbers; NaN = none or undefined.
struct ReferenceCurve {
  double prior_mean = std::numeric_limits<double>::quiet_NaN();
  double curve = std::numeric_limits<double>::quiet_NaN();
  double asymptote = std::numeric_limits<double>::quiet_NaN();
  // The exact probability where a closed form exists.
  double acceptance = std::numeric_limits<double>::quiet_NaN();
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string name() const = 0;
  // Changes whenever the numbers of a cell may: code, layout of random numbers,
  // mode. Results of other versions are kept apart.
  virtual std::string version() const = 0;
  // Throws ConfigError when the parameters are not this workload's.
  virtual std::unique_ptr<GuessExperiment> guesses(const Cell& cell) const = 0;
  // One value per cell, each as if it were alone. Blocks; one thread.
  virtual std::vector<CellOutcome> compute(const std::vector<Cell>& cells) const = 0;
  virtual ReferenceCurve reference(const Cell& /*cell*/) const { return {}; }
  // Parameters along which its tables and figures go, the first that varies; programs and functions
  // often call theirs like this.
  virtual std::vector<std::string> axes() const { return {"width", "depth"}; }
  // Parameters that may differ from seed to seed, as data of a file do.
  virtual std::vector<std::string> data_of_seeds() const { return {}; }
  // The names of a cell's results, the first of which is its value.
  virtual std::vector<std::string> metrics(const Cell& /*cell*/) const { return {"value"}; }
  // Called before the first cell: what other cells had at the step where they may be pruned.
  virtual void compare_with(std::function<std::vector<double>()> /*others*/) {}
};

}  // namespace convoy::sweep
