// SPDX-License-Identifier: Apache-2.0
//
// The interface between a sweep's computation and its runner: a cell is either tallied over ranges
// of guesses, or computed as a whole. A workload is a pure function of a cell: the numbers do not
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

// One experiment of one method. `parameters` is a JSON object on one line with sorted keys. It
// holds everything that decides the numbers except the seed. Together with workload, version and
// seed it is the cell's identity.
struct Cell {
  std::string method;  // such as "gnc", "gd" or "run"
  int64_t seed = 0;
  SharedText parameters = no_parameters();

  bool operator==(const Cell&) const = default;
};

// A sum whose bits do not depend on the order of its terms: each term is rounded to a multiple of
// 2^-40 and added as an integer.
class FixedSum {
 public:
  // `value`: finite; values beyond 2^40 in magnitude are clamped. The caller counts such values.
  void add(double value);
  void add(const FixedSum& other) { units_ += other.units_; }
  static FixedSum of_units(__int128 units) {
    FixedSum sum;
    sum.units_ = units;
    return sum;
  }
  double value() const;
  std::string text() const;                        // exact decimal number
  static FixedSum parse(const std::string& text);  // throws DataError
  bool operator==(const FixedSum&) const = default;

 private:
  __int128 units_ = 0;
};

// The sums over a range of guesses. merge() is commutative and associative, bit for bit.
struct Tally {
  int64_t guesses = 0;
  int64_t accepted = 0;
  int64_t non_finite = 0;  // accepted, but the loss is not a finite number and in no sum
  FixedSum loss;           // sum over accepted guesses with a finite loss
  FixedSum loss_squared;

  void accept(double value);  // losses of 2^40 and more are not summed, but counted as not finite
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
  // Computes guesses [first, first + count) on the calling thread. Thread-safe. Gives the same bits
  // for every split of a range.
  virtual Tally run(uint64_t first, uint64_t count) const = 0;
  // Rough speed of one core, or of the GPU, in guesses per second. It decides the size of the first
  // ranges.
  virtual double expected_rate() const = 0;
  // The GPU that computes; empty = the calling thread does.
  virtual std::string gpu() const { return ""; }
};

// The reason why a program was ended early: at a step of its progress it was worse than the median
// of the cells that had reached that step.
struct Pruned {
  int64_t step = 0;
  double value = 0;
  double median = 0;
  std::string text() const;  // such as "at step 100 it had 0.9, the median of the others is 0.5"
  bool operator==(const Pruned&) const = default;
};

// The result of one cell that is computed as a whole.
struct CellOutcome {
  // The number that tables and figures show: a command's result, the loss of a training.
  double value = std::numeric_limits<double>::quiet_NaN();
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  int64_t steps = 0;
  // A JSON object that names the program that computed the outcome; empty = the workload alone
  // computed it.
  std::string program = {};
  // The GPU that computed the outcome; empty = the calling thread computed it.
  std::string gpu = {};
  // A command's further results, in the order of their names.
  std::vector<double> more = {};
  // A command's value at the step at which it may be pruned; NaN = the program did not print it.
  double at_step = std::numeric_limits<double>::quiet_NaN();
  std::optional<Pruned> pruned = {};  // if set, there is no value
};

// Closed forms to compare with the numbers; NaN = none or undefined.
struct ReferenceCurve {
  double prior_mean = std::numeric_limits<double>::quiet_NaN();
  double curve = std::numeric_limits<double>::quiet_NaN();
  double asymptote = std::numeric_limits<double>::quiet_NaN();
  // The exact acceptance probability, if a closed form exists.
  double acceptance = std::numeric_limits<double>::quiet_NaN();
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string name() const = 0;
  // Changes whenever the numbers of a cell may change, because of code, layout of random numbers or
  // mode. Results of different versions are kept apart.
  virtual std::string version() const = 0;
  // Throws ConfigError if the parameters do not belong to this workload.
  virtual std::unique_ptr<GuessExperiment> guesses(const Cell& cell) const = 0;
  // One value per cell, as if each cell were computed alone. Blocks; one thread.
  virtual std::vector<CellOutcome> compute(const std::vector<Cell>& cells) const = 0;
  virtual ReferenceCurve reference(const Cell& /*cell*/) const { return {}; }
  // The parameters along which the tables and figures of this workload may go; the first that
  // varies is used. Programs and functions often have parameters of these names.
  virtual std::vector<std::string> axes() const { return {"width", "depth"}; }
  // Parameters that may differ from seed to seed, such as data of a file.
  virtual std::vector<std::string> data_of_seeds() const { return {}; }
  // The names of a cell's results. The first result is the cell's value.
  virtual std::vector<std::string> metrics(const Cell& /*cell*/) const { return {"value"}; }
  // Called before the first cell. `others` returns the values of other cells at the step at which
  // cells may be pruned.
  virtual void compare_with(std::function<std::vector<double>()> /*others*/) {}
};

}  // namespace convoy::sweep
