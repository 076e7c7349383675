// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/plan_cost.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/core/base/text_as.h"
#include "convoy/machine/processes/run_child.h"

namespace convoy::sweep {
namespace {

using Clock = std::chrono::steady_clock;

// Number of sets that are measured of guesses, and of descents.
constexpr size_t kMostMeasured = 3;

// The cells with equal method and parameters.
struct CellSet {
  std::vector<Cell> some;  // a few of the set's cells
  double work = 0;         // guesses, or steps, of all cells of the set
  int64_t steps = 0;       // steps of one cell
  double foretold = 1;     // predicted seconds of a guess; 1 for descents, which nothing predicts
  double rate = 0;         // work per second of all workers together
};

int64_t steps_of(const Cell& cell, const DescentSteps& steps) {
  const auto parameters = nlohmann::json::parse(cell.parameters.str());
  return steps.parameter.empty() ? 1 : parameters.value(steps.parameter, steps.usual);
}

Cell of_steps(Cell cell, const DescentSteps& steps, int64_t count) {
  auto parameters = nlohmann::json::parse(cell.parameters.str());
  parameters[steps.parameter] = count;
  cell.parameters = parameters.dump();
  return cell;
}

std::vector<CellSet> sets_of(const std::vector<PlannedCell>& cells, bool guesses,
                             const DescentSteps& steps) {
  constexpr size_t kKept = 128;  // as many descents as a GPU computes together
  std::vector<CellSet> sets;
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (const PlannedCell& planned : cells) {
    if ((planned.guesses > 0) != guesses) continue;
    const auto [place, added] =
        places.try_emplace({planned.cell.method, planned.cell.parameters.str()}, sets.size());
    if (added) {
      sets.emplace_back();
      if (!guesses) sets.back().steps = steps_of(planned.cell, steps);
    }
    CellSet& set = sets[place->second];
    if (set.some.size() < kKept) set.some.push_back(planned.cell);
    set.work += static_cast<double>(guesses ? planned.guesses : set.steps);
  }
  return sets;
}

// Computes a rate in a process with a session of its own, like the workers. A system that divides
// its cores between sessions gives the threads of one session less.
class MeasuringProcess {
 public:
  explicit MeasuringProcess(const std::function<double()>& job)
      : process_(processes::fork_child([&] { return fmt::format("{}", job()); })) {}
  ~MeasuringProcess() {
    if (process_.pid < 0) return;
    ::kill(process_.pid, SIGKILL);
    processes::wait_for_child(process_.pid);
  }
  MeasuringProcess(const MeasuringProcess&) = delete;
  MeasuringProcess& operator=(const MeasuringProcess&) = delete;

  // Blocks until the process ends. Throws StateError.
  double rate() {
    const std::string text = processes::finish_child(process_).output;
    const auto rate = text_as<double>(text);
    if (!rate) throw StateError(fmt::format("cells cannot be measured: {}", text));
    return *rate;
  }

 private:
  processes::ChildProcess process_;
};

// Work per second of all workers together. CPU workers are measured in processes. A GPU that this
// process has opened is measured in this thread, at the same time.
double rate_of_all(const std::vector<CostEngine>& engines,
                   const std::function<double(const CostEngine&, int64_t)>& job) {
  std::vector<std::pair<std::unique_ptr<MeasuringProcess>, double>> processes;
  int64_t number = 0;
  for (const CostEngine& engine : engines)
    for (int64_t one = 0; !engine.is_gpu && one < engine.measured; ++one, ++number)
      processes.emplace_back(
          std::make_unique<MeasuringProcess>([&] { return job(engine, number); }),
          static_cast<double>(engine.workers) / static_cast<double>(engine.measured));
  double sum = 0;
  for (const CostEngine& engine : engines)
    if (engine.is_gpu) sum += job(engine, number++) * static_cast<double>(engine.workers);
  for (const auto& [process, workers] : processes) sum += process->rate() * workers;
  return sum;
}

double guess_rate(const CostEngine& engine, int64_t thread, const Cell& cell, double seconds) {
  const auto experiment = engine.workload->guesses(cell);
  auto first = static_cast<uint64_t>(thread) << 40;
  experiment->run(first, 1024);  // the cost of the first call is not part of the rate
  const auto slice = std::max<uint64_t>(1, static_cast<uint64_t>(experiment->expected_rate() / 50));
  uint64_t done = 0;
  const auto begin = Clock::now();
  while (seconds_since(begin) < seconds) {
    experiment->run(first + done, slice);
    done += slice;
  }
  return static_cast<double>(done) / seconds_since(begin);
}

// Steps per second of one worker, over all descents that it computes together. Takes more steps of
// each descent until their time can be measured.
double step_rate(const CostEngine& engine, const CellSet& set, const DescentSteps& steps,
                 double seconds) {
  for (int64_t count = 64;; count *= 4) {
    const int64_t wanted = std::min(count, set.steps);
    std::vector<Cell> cells;
    for (const Cell& cell : set.some)
      if (std::ssize(cells) < engine.cells_together) cells.push_back(of_steps(cell, steps, wanted));
    const auto begin = Clock::now();
    engine.workload->compute(cells);
    const double spent = seconds_since(begin);
    if (wanted == set.steps || spent > seconds / 3)
      return static_cast<double>(wanted) * static_cast<double>(cells.size()) / spent;
  }
}

// Sets the rate of every set. `rate` measures kMostMeasured of them, evenly spread in the order of
// their predicted costs. The rate of another set is its predicted rate times the ratio of measured
// to predicted rate of the nearest measured set.
void measure_sets(std::vector<CellSet>& sets, const std::function<double(const CellSet&)>& rate) {
  std::vector<size_t> order(sets.size());
  for (size_t at = 0; at < order.size(); ++at) order[at] = at;
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return sets[left].foretold < sets[right].foretold;
  });
  const size_t measured = std::min(kMostMeasured, sets.size());
  // For each measured set: its place in the order, and measured rate / predicted rate.
  std::vector<std::pair<size_t, double>> known;
  for (size_t at = 0; at < measured; ++at) {
    const size_t place = measured == 1 ? 0 : at * (sets.size() - 1) / (measured - 1);
    CellSet& set = sets[order[place]];
    known.emplace_back(place, rate(set) * set.foretold);
  }
  for (size_t place = 0; place < order.size(); ++place) {
    const auto nearest =
        std::min_element(known.begin(), known.end(), [&](const auto& left, const auto& right) {
          const auto distance = [&](size_t other) {
            return other > place ? other - place : place - other;
          };
          return distance(left.first) < distance(right.first);
        });
    CellSet& set = sets[order[place]];
    set.rate = nearest->second / set.foretold;
  }
}

}  // namespace

PlanTotals totals_of(const std::vector<PlannedCell>& cells, const DescentSteps& steps) {
  PlanTotals totals;
  for (const PlannedCell& planned : cells) {
    totals.may_end_early = totals.may_end_early || planned.stop.any();
    totals.guesses += planned.guesses;
    ++(planned.guesses > 0 ? totals.guess_cells : totals.descents);
  }
  for (const CellSet& set : sets_of(cells, false, steps))
    totals.steps += static_cast<int64_t>(set.work);
  return totals;
}

PlanCost measure_cost(const std::vector<PlannedCell>& cells, const DescentSteps& steps,
                      const std::vector<CostEngine>& engines, double seconds) {
  std::vector<CellSet> guesses = sets_of(cells, true, steps);
  std::vector<CellSet> descents = sets_of(cells, false, steps);
  const size_t measured =
      std::min(kMostMeasured, guesses.size()) + std::min(kMostMeasured, descents.size());
  const double each = seconds / static_cast<double>(std::max<size_t>(1, measured));
  for (CellSet& set : guesses)
    set.foretold = 1 / engines.front().workload->guesses(set.some.front())->expected_rate();
  measure_sets(guesses, [&](const CellSet& set) {
    return rate_of_all(engines, [&](const CostEngine& engine, int64_t thread) {
      return guess_rate(engine, thread, set.some.front(), each);
    });
  });
  measure_sets(descents, [&](const CellSet& set) {
    return rate_of_all(engines, [&](const CostEngine& engine, int64_t) {
      return step_rate(engine, set, steps, each);
    });
  });
  int64_t workers = 0;
  for (const CostEngine& engine : engines) workers += engine.workers;
  PlanCost cost;
  double guess_work = 0, guess_seconds = 0, step_work = 0, step_seconds = 0, longest = 0;
  for (const CellSet& set : guesses) {
    guess_work += set.work;
    guess_seconds += set.work / set.rate;
  }
  for (const CellSet& set : descents) {
    step_work += set.work;
    step_seconds += set.work / set.rate;
    // One descent cannot be divided between two workers.
    const auto together = static_cast<double>(
        std::min<int64_t>(engines.front().cells_together, std::ssize(set.some)));
    longest = std::max(longest, static_cast<double>(set.steps) * together *
                                    static_cast<double>(workers) / set.rate);
  }
  if (guess_seconds > 0) cost.guesses_per_second = guess_work / guess_seconds;
  if (step_seconds > 0) cost.steps_per_second = step_work / step_seconds;
  cost.seconds = guess_seconds + std::max(step_seconds, longest);
  return cost;
}

}  // namespace convoy::sweep
